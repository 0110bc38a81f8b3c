/* The plain copies that the floor is measured with on a GPU: vector loads and stores of every byte of a source and a
 * target, without arithmetic but the XOR by which each load must be waited for.
 *
 * Small cases are over in the time of a few instruction fetches from memory, so these kernels are short: 32-bit
 * places, one path for whole and for partial chunks, and a block for every chunk. (Grids of only as many blocks as the
 * GPU holds, which go round, were tried over the 96 cases of the default suite and won in one, by 1 %.) */
#include "harness/cuda/floor_params.h"

namespace {

/* How a word goes over the memory system: kept in the caches as usual; marked as not to be used again; or fetched
 * into the L2 together with the rest of its 256 bytes. */
enum hint { KEPT, STREAMED, WIDE };

template <hint H>
__device__ __forceinline__ uint4 load(const uint4 *at) {
  if (H == STREAMED) return __ldcs(at);
  if (H == KEPT) return __ldg(at);
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

template <hint H>
__device__ __forceinline__ uint2 load(const uint2 *at) {
  if (H == STREAMED) return __ldcs(at);
  if (H == KEPT) return __ldg(at);
  uint2 v;
  asm volatile("ld.global.nc.L1::no_allocate.L2::256B.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(at));
  return v;
}

template <hint H, typename word>
__device__ __forceinline__ void store(word *at, word value) {
  if (H == STREAMED) {
    __stcs(at, value);
  } else {
    *at = value;
  }
}

__device__ __forceinline__ unsigned fold(uint2 a) { return a.x ^ a.y; }
__device__ __forceinline__ unsigned fold(uint4 a) { return a.x ^ a.y ^ a.z ^ a.w; }

/* Which words a chunk has: as the longer side has them, or its equal share of the shorter side. */
enum side { LONGER, SHORTER };

struct range {
  unsigned first; /* of this thread; the next is blockDim.x further */
  unsigned end;   /* of the words that there are */
};

template <side S, int PIECES>
__device__ __forceinline__ range range_of(const rgh_floor_params &params, unsigned chunk, unsigned words) {
  if (S == LONGER) return {chunk * (blockDim.x * PIECES) + threadIdx.x, words};
  const unsigned begin = chunk * params.short_share + min(chunk, params.short_rest);
  return {begin + threadIdx.x, begin + params.short_share + (chunk < params.short_rest)};
}

template <typename word, int PIECES, hint H, side READS, side WRITES>
__device__ __forceinline__ void copy(const rgh_floor_params &params) {
  const word *source = (const word *)params.source;
  word *target = (word *)params.target;
  const unsigned chunk = blockIdx.x;
  word value[PIECES];
  const range read = range_of<READS, PIECES>(params, chunk, params.reads);
#pragma unroll
  for (int p = 0; p < PIECES; ++p) {
    const unsigned i = read.first + p * blockDim.x;
    value[p] = word{};
    if (i < read.end) value[p] = load<H>(&source[i]);
  }
  const range write = range_of<WRITES, PIECES>(params, chunk, params.writes);
#pragma unroll
  for (int p = 0; p < PIECES; ++p) {
    const unsigned i = write.first + p * blockDim.x;
    if (i < write.end) store<H>(&target[i], value[p]);
  }
  unsigned seen = 0;
#pragma unroll
  for (int p = 0; p < PIECES; ++p) seen ^= fold(value[p]);
  if (seen == params.never || params.all) atomicXor(params.seen, seen);
  if (params.tails == 0 || chunk != 0) return;
  if (threadIdx.x < params.tails % 256) {
    const unsigned byte = params.source[params.reads * sizeof(word) + threadIdx.x];
    if (byte == params.never) atomicXor(params.seen, byte);
  }
  if (threadIdx.x < params.tails / 256) {
    params.target[params.writes * sizeof(word) + threadIdx.x] = (unsigned char)params.never;
  }
}

}  // namespace

/* The host builds these names too: floor_copy_<word bytes>_<pieces>_<hint>_<how the shorter side is dealt out>. */
#define COPY(bytes, word, pieces, hint_name, HINT, mapping, READS, WRITES)            \
  extern "C" __global__ void floor_copy_##bytes##_##pieces##_##hint_name##_##mapping( \
      const __grid_constant__ rgh_floor_params params) {                              \
    copy<word, pieces, HINT, READS, WRITES>(params);                                  \
  }
#define MAPPINGS(bytes, word, pieces, hint_name, HINT)                       \
  COPY(bytes, word, pieces, hint_name, HINT, front, LONGER, LONGER)          \
  COPY(bytes, word, pieces, hint_name, HINT, spread_writes, LONGER, SHORTER) \
  COPY(bytes, word, pieces, hint_name, HINT, spread_reads, SHORTER, LONGER)
#define HINTS(bytes, word, pieces)                  \
  MAPPINGS(bytes, word, pieces, kept, KEPT)         \
  MAPPINGS(bytes, word, pieces, streamed, STREAMED) \
  MAPPINGS(bytes, word, pieces, wide, WIDE)

HINTS(16, uint4, 1)
HINTS(16, uint4, 2)
HINTS(16, uint4, 4)
HINTS(16, uint4, 8)
HINTS(8, uint2, 1)
HINTS(8, uint2, 2)
HINTS(8, uint2, 4)
HINTS(8, uint2, 8)

/* Fills memory with random bits: what is copied must be as hard to move as real data is. */
extern "C" __global__ void floor_fill(unsigned long long *at, long long words, unsigned long long seed) {
  const long long step = (long long)gridDim.x * blockDim.x;
  for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += step) {
    unsigned long long z = seed + (unsigned long long)i * 0x9E3779B97F4A7C15ull;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    at[i] = z ^ (z >> 31);
  }
}
