/* The plain copies that the floor is measured with on a GPU: vector loads and stores of every byte of a source and a
 * target, without arithmetic but the XOR by which each load must be waited for. */
#include "harness/cuda/floor_params.h"

namespace {

/* How a word goes over the memory system: kept as usual, or marked as not to be used again. */
enum hint { KEPT, STREAMED };

template <hint H, typename word>
__device__ __forceinline__ word load(const word *at) {
  return H == STREAMED ? __ldcs(at) : __ldg(at);
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

/* Word number `first + p * blockDim.x` of `words`, for every piece p. */
template <hint H, int PIECES, typename word>
__device__ __forceinline__ void load_pieces(const word *source, long long first, long long words,
                                            word (&value)[PIECES]) {
  if (first - threadIdx.x + (long long)blockDim.x * PIECES <= words) {
#pragma unroll
    for (int p = 0; p < PIECES; ++p) value[p] = load<H>(source + first + p * blockDim.x);
  } else {
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      const long long i = first + p * blockDim.x;
      value[p] = word{};
      if (i < words) value[p] = load<H>(source + i);
    }
  }
}

template <hint H, int PIECES, typename word>
__device__ __forceinline__ void store_pieces(word *target, long long first, long long words,
                                             const word (&value)[PIECES]) {
  if (first - threadIdx.x + (long long)blockDim.x * PIECES <= words) {
#pragma unroll
    for (int p = 0; p < PIECES; ++p) store<H>(target + first + p * blockDim.x, value[p]);
  } else {
#pragma unroll
    for (int p = 0; p < PIECES; ++p) {
      const long long i = first + p * blockDim.x;
      if (i < words) store<H>(target + i, value[p]);
    }
  }
}

template <typename word, int PIECES, hint H, bool READS_MORE>
__device__ __forceinline__ void copy(const rgh_floor_params &params) {
  const word *source = (const word *)params.source;
  word *target = (word *)params.target;
  for (long long chunk = blockIdx.x; chunk < params.chunks; chunk += gridDim.x) {
    const long long first = chunk * (blockDim.x * PIECES) + threadIdx.x;
    const long long share = params.short_share + (chunk < params.short_rest);
    const long long begin = chunk * params.short_share + min(chunk, params.short_rest);
    word value[PIECES];
    if (READS_MORE) {
      load_pieces<H>(source, first, params.long_words, value);
      store_pieces<H>(target, begin + threadIdx.x, begin + share, value);
    } else {
      load_pieces<H>(source, begin + threadIdx.x, begin + share, value);
      store_pieces<H>(target, first, params.long_words, value);
    }
    unsigned seen = 0;
#pragma unroll
    for (int p = 0; p < PIECES; ++p) seen ^= fold(value[p]);
    if (seen == params.never || params.all) atomicXor(params.seen, seen);
  }
  if (blockIdx.x != 0) return;
  const long long words = params.long_words, others = params.chunks * params.short_share + params.short_rest;
  if (threadIdx.x < params.read_tail) {
    const unsigned char byte = params.source[(READS_MORE ? words : others) * sizeof(word) + threadIdx.x];
    if (byte == params.never) *params.seen = byte;
  }
  if (threadIdx.x < params.write_tail) {
    params.target[(READS_MORE ? others : words) * sizeof(word) + threadIdx.x] = (unsigned char)params.never;
  }
}

}  // namespace

/* The host builds these names too: floor_copy_<word bytes>_<pieces>_<hint>_<longer side>. */
#define COPY(bytes, word, pieces, hint_name, HINT)                                 \
  extern "C" __global__ void floor_copy_##bytes##_##pieces##_##hint_name##_reads(  \
      const __grid_constant__ rgh_floor_params params) {                           \
    copy<word, pieces, HINT, true>(params);                                        \
  }                                                                                \
  extern "C" __global__ void floor_copy_##bytes##_##pieces##_##hint_name##_writes( \
      const __grid_constant__ rgh_floor_params params) {                           \
    copy<word, pieces, HINT, false>(params);                                       \
  }
#define COPIES(bytes, word, pieces)     \
  COPY(bytes, word, pieces, kept, KEPT) \
  COPY(bytes, word, pieces, streamed, STREAMED)

COPIES(16, uint4, 1)
COPIES(16, uint4, 2)
COPIES(16, uint4, 4)
COPIES(16, uint4, 8)
COPIES(8, uint2, 1)
COPIES(8, uint2, 2)
COPIES(8, uint2, 4)
COPIES(8, uint2, 8)

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
