/* vision_rotary's kernels for rows of contiguous columns and float32 angles.
 *
 * A lane takes VECTOR neighbouring columns of a row, so a row has 4*Q / VECTOR lanes; a block has SLOTS rows of them,
 * and a lane ROWS rows, SLOTS apart, all loaded before the first is used. A lane's sums, one a column, meet those of
 * the block's other lanes in shared memory, and PARTS threads an output add them up.
 *
 * Every instruction before the loads and after the last of them shows in the time of a small call: addresses take 32
 * bits, what can be computed early is, and the code is short (instructions too have to be fetched). */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_DENSE_CUH
#define ROPEGRAD_OPS_VISION_ROTARY_DENSE_CUH

#include "ops/vision_rotary/vision_rotary_cuda.h"
#include "ops/vision_rotary/vision_rotary_partials.cuh"
#include "src/cuda/sincos.cuh"

enum { QUARTERS = 4, POSITION_AXES = 2 };

/* QUARTER is Q where it is known: rows then follow each other without a gap, and threads are whole warps. 0: p.quarter,
 * any row stride, and threads that have nothing to load may follow. MANY: a lane may have more than ROWS rows; after
 * ROWS of them what it has summed in float32 goes into double, so that the error does not grow with their number. */
template <typename Element, int Quarter, int Vector, int Slots, int Rows, bool Many>
struct dense_shape {
  typedef Element T;
  enum { QUARTER = Quarter, VECTOR = Vector, SLOTS = Slots, ROWS = Rows, MANY = Many };
};

/* Threads that add up one output of a block. */
enum { PARTS = 16 };

/* What a lane reads. */
template <typename S>
struct lane_rows {
  rg_packet<typename S::T, S::VECTOR> grad_cos[S::ROWS], grad_sin[S::ROWS];
  rg_packet<float, S::VECTOR> emb[S::ROWS];
  longlong2 position[S::ROWS];
};

/* Rows row, row + SLOTS, ... of the block, which begins with patch `first`; those from `end` on are zero. */
template <typename S>
static __device__ __forceinline__ void load_rows(const vision_rotary_dense_params &p, int row, int column, int first,
                                                 int end, lane_rows<S> &lane) {
  typedef typename S::T T;
  enum { VECTOR = S::VECTOR, SLOTS = S::SLOTS, PACKED = QUARTERS * S::QUARTER };
  const T *grad_cos = static_cast<const T *>(p.grad_cos), *grad_sin = static_cast<const T *>(p.grad_sin);
#pragma unroll
  for (int r = 0; r < S::ROWS; ++r) {
    if (row + r * SLOTS < end) {
      const int64_t at = first + row + r * SLOTS;
      const int64_t packed = static_cast<uint32_t>((first + row + r * SLOTS) * PACKED + column);
      lane.emb[r] =
          rg_load_packet<RG_CACHE_DEFAULT, float, VECTOR>(p.emb + (PACKED != 0 ? packed : at * p.emb_stride + column));
      lane.grad_cos[r] = rg_load_packet<RG_CACHE_DEFAULT, T, VECTOR>(
          grad_cos + (PACKED != 0 ? packed : at * p.grad_cos_stride + column));
      lane.grad_sin[r] = rg_load_packet<RG_CACHE_DEFAULT, T, VECTOR>(
          grad_sin + (PACKED != 0 ? packed : at * p.grad_sin_stride + column));
      lane.position[r] = __ldg(reinterpret_cast<const longlong2 *>(
          p.pos_ids + at * (PACKED != 0 ? static_cast<int>(POSITION_AXES) : p.pos_ids_stride)));
    } else {
      lane.position[r] = make_longlong2(0, 0);
#pragma unroll
      for (int i = 0; i < VECTOR; ++i) {
        lane.emb[r].element[i] = 0.0f;
        lane.grad_cos[r].element[i] = rg_from_real<T>(0.0f);
        lane.grad_sin[r].element[i] = rg_from_real<T>(0.0f);
      }
    }
  }
}

/* Bit i: the patch's second position weighs the lane's column i, which lies in quarter 1 or 3. */
template <typename S>
static __device__ __forceinline__ unsigned weighed_by_second(int column, int quarter) {
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < S::VECTOR; ++i) {
    const int at = column + i;
    if ((at >= quarter && at < 2 * quarter) || at >= 3 * quarter) bits |= 1u << i;
  }
  return bits;
}

/* Adds the lane's rows to the sums of its columns. The sums mean nothing where an angle is beyond RG_SINCOS_LIMIT. */
template <typename S>
static __device__ __forceinline__ void add_rows(const lane_rows<S> &lane, unsigned second, float (&sum)[S::VECTOR],
                                                float *largest_angle) {
  enum { VECTOR = S::VECTOR };
#pragma unroll
  for (int r = 0; r < S::ROWS; ++r) {
    float row, col;
    /* Volatile, so that it stays in front of the arithmetic: a conversion from 64 bits takes long. */
    asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(row) : "l"(lane.position[r].x));
    asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(col) : "l"(lane.position[r].y));
    float c[VECTOR], s[VECTOR], theta[VECTOR];
    rg_unpack(lane.grad_cos[r], c);
    rg_unpack(lane.grad_sin[r], s);
    rg_unpack(lane.emb[r], theta);
#pragma unroll
    for (int i = 0; i < VECTOR; ++i) {
      float sine, cosine;
      unsigned halves;
      rg_sincos_unsigned(theta[i], &sine, &cosine, &halves);
      const float gradient = rg_negate_odd(halves, __fmaf_rn(-c[i], sine, s[i] * cosine));
      sum[i] = __fmaf_rn((second >> i & 1) != 0 ? col : row, gradient, sum[i]);
      *largest_angle = fmaxf(*largest_angle, fabsf(theta[i]));
    }
  }
}

/* The sums of a lane that has met a huge angle, from the beginning: rare, and so all that it needs is read again. */
template <typename S>
static __device__ __noinline__ void sums_with_huge_angles(const vision_rotary_dense_params &p, int row, int column,
                                                          int first, int end, unsigned second, float *sum) {
  typedef typename S::T T;
  const T *grad_cos = static_cast<const T *>(p.grad_cos), *grad_sin = static_cast<const T *>(p.grad_sin);
#pragma unroll 1
  for (int i = 0; i < S::VECTOR; ++i, ++column, second >>= 1) {
    double total = 0;
#pragma unroll 1
    for (int r = row; r < end; r += S::SLOTS) {
      const int64_t at = first + r;
      const float gradient = rg_angle_gradient(rg_to_real<float>(grad_cos[at * p.grad_cos_stride + column]),
                                               rg_to_real<float>(grad_sin[at * p.grad_sin_stride + column]),
                                               p.emb[at * p.emb_stride + column]);
      total += static_cast<double>(static_cast<float>(p.pos_ids[at * p.pos_ids_stride + (second & 1)])) * gradient;
    }
    sum[i] = static_cast<float>(total);
  }
}

/* The sums of the lane's columns. `meanwhile` is called while the first loads are under way. */
template <typename S, typename Meanwhile>
static __device__ __forceinline__ void lane_sums(const vision_rotary_dense_params &p, int row, int column, int quarter,
                                                 Meanwhile meanwhile, float (&sum)[S::VECTOR]) {
  const int first = blockIdx.x * p.block_rows, end = row < S::SLOTS ? min(p.block_rows, p.patches - first) : 0;
  lane_rows<S> lane;
  load_rows<S>(p, row, column, first, end, lane);
  meanwhile();
  unsigned second = weighed_by_second<S>(column, quarter);
  asm volatile("" : "+r"(second)); /* now, not when the loads are there */
#pragma unroll
  for (int i = 0; i < S::VECTOR; ++i) sum[i] = 0.0f;
  /* Nearly always so, but a branch: without it the compiler takes the last loads behind the first arithmetic. */
  float largest_angle = 0.0f;
  if (p.block_rows > 0) add_rows<S>(lane, second, sum, &largest_angle);
  if constexpr (S::MANY) {
    double total[S::VECTOR];
#pragma unroll
    for (int i = 0; i < S::VECTOR; ++i) total[i] = sum[i];
    for (int next = row + S::SLOTS * S::ROWS; next < end; next += S::SLOTS * S::ROWS) {
#pragma unroll
      for (int i = 0; i < S::VECTOR; ++i) sum[i] = 0.0f;
      load_rows<S>(p, next, column, first, end, lane);
      add_rows<S>(lane, second, sum, &largest_angle);
#pragma unroll
      for (int i = 0; i < S::VECTOR; ++i) total[i] += sum[i];
    }
#pragma unroll
    for (int i = 0; i < S::VECTOR; ++i) sum[i] = static_cast<float>(total[i]);
  }
  if (largest_angle > RG_SINCOS_LIMIT) {
    float again[S::VECTOR];
    sums_with_huge_angles<S>(p, row, column, first, end, second, again);
#pragma unroll
    for (int i = 0; i < S::VECTOR; ++i) sum[i] = again[i];
  }
}

/* The sum of the block's rows for output threadIdx.x / PARTS, in each of the PARTS threads that share it; what threads
 * past the last output get means nothing. */
template <typename S, typename Meanwhile>
static __device__ __forceinline__ float block_sum(const vision_rotary_dense_params &p, Meanwhile meanwhile) {
  enum { VECTOR = S::VECTOR };
  extern __shared__ float4 shared[];
  float *sums = reinterpret_cast<float *>(shared); /* [SLOTS][4*Q], which is [4*SLOTS][Q] */
  const int quarter = S::QUARTER != 0 ? S::QUARTER : p.quarter, lanes = quarter * (QUARTERS / VECTOR);
  const int row = threadIdx.x / lanes, column = (threadIdx.x - row * lanes) * VECTOR;
  float sum[VECTOR];
  lane_sums<S>(p, row, column, quarter, meanwhile, sum);
  if (S::QUARTER != 0 || row < S::SLOTS) {
    rg_store_packet<RG_CACHE_DEFAULT, float, VECTOR>(sums + threadIdx.x * VECTOR, rg_pack<float, VECTOR>(sum));
  }
  __syncthreads();
  float total = 0.0f;
  if (threadIdx.x < (quarter * PARTS + WARP - 1) / WARP * WARP) { /* whole warps */
    const int output = min(static_cast<int>(threadIdx.x) / PARTS, quarter - 1), part = threadIdx.x % PARTS;
    float partial[2] = {};
#pragma unroll
    for (int k = 0; k < QUARTERS * S::SLOTS / PARTS; ++k) partial[k % 2] += sums[(part + k * PARTS) * quarter + output];
    total = partial[0] + partial[1];
#pragma unroll
    for (int step = PARTS / 2; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
  }
  return total;
}

/* ---- from block to block through the second-level cache ---- */

/* Partial sums that overflow float32 where their sum need not; the cells are full. */
static __device__ __noinline__ float sum_in_double(const uint4 *cells, int count, int word) {
  double sum = 0;
#pragma unroll 1
  for (int i = 0; i < count; ++i) {
    const uint4 bits = peek_floats(cells + i);
    sum += __uint_as_float(word == 0 ? bits.x : word == 1 ? bits.y : word == 2 ? bits.z : bits.w);
  }
  return static_cast<float>(sum);
}

/* Four sums a lane to one: lane 8*word to 8*word + 7 hold the warp's sum of that word. */
static __device__ __forceinline__ float warp_sum_of_words(const float (&sum)[VISION_ROTARY_CELL_OUTPUTS], int lane) {
  const bool upper = (lane & 16) != 0, odd = (lane & 8) != 0;
  const float even_word = (upper ? sum[2] : sum[0]) + __shfl_xor_sync(~0u, upper ? sum[0] : sum[2], 16);
  const float odd_word = (upper ? sum[3] : sum[1]) + __shfl_xor_sync(~0u, upper ? sum[1] : sum[3], 16);
  float total = (odd ? odd_word : even_word) + __shfl_xor_sync(~0u, odd ? even_word : odd_word, 8);
  total += __shfl_xor_sync(~0u, total, 4);
  total += __shfl_xor_sync(~0u, total, 2);
  total += __shfl_xor_sync(~0u, total, 1);
  return total;
}

/* A warp adds up the `count` cells of a group of outputs, CELLS a lane at a time, and leaves them empty. */
template <int CELLS>
static __device__ __forceinline__ void collect(const vision_rotary_dense_params &p, int quarter, int group, int count) {
  const int lane = threadIdx.x % WARP, outputs = quarter - VISION_ROTARY_CELL_OUTPUTS * group;
  uint4 *cells = static_cast<uint4 *>(p.cells) + group * count;
  /* Words that nobody writes count as written. */
  const uint32_t y = outputs < 2, z = outputs < 3, w = outputs < 4;
  float sum[VISION_ROTARY_CELL_OUTPUTS] = {};
#pragma unroll 1
  for (int first = lane; first < count; first += WARP * CELLS) {
    uint4 bits[CELLS];
    bool full;
    do {
#pragma unroll
      for (int k = 0; k < CELLS; ++k) {
        bits[k] = make_uint4(0x80000000u, 0x80000000u, 0x80000000u, 0x80000000u);
        if (first + k * WARP < count) bits[k] = peek_floats(cells + first + k * WARP);
      }
      full = true;
#pragma unroll
      for (int k = 0; k < CELLS; ++k) {
        full = full && bits[k].x != 0 && (bits[k].y | y) != 0 && (bits[k].z | z) != 0 && (bits[k].w | w) != 0;
      }
    } while (!full);
#pragma unroll
    for (int k = 0; k < CELLS; ++k) {
      sum[0] += __uint_as_float(bits[k].x);
      sum[1] += __uint_as_float(bits[k].y);
      sum[2] += __uint_as_float(bits[k].z);
      sum[3] += __uint_as_float(bits[k].w);
    }
  }
  __syncwarp();
  float total = warp_sum_of_words(sum, lane);
  const int word = lane / 8;
  if (lane % 8 == 0 && word < outputs) {
    if (!isfinite(total)) total = sum_in_double(cells, count, word);
    p.grad_inv_freq[VISION_ROTARY_CELL_OUTPUTS * group + word] = total;
  }
  __syncwarp();
#pragma unroll 1
  for (int i = lane; i < count; i += WARP) clear(cells + i);
}

static __device__ __forceinline__ float *cell_word(const vision_rotary_dense_params &p, int output, int from,
                                                   int count) {
  uint4 *cell = static_cast<uint4 *>(p.cells) + output / VISION_ROTARY_CELL_OUTPUTS * count + from;
  return reinterpret_cast<float *>(cell) + output % VISION_ROTARY_CELL_OUTPUTS;
}

static __device__ __forceinline__ void fetch_ahead(const void *address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address));
}

/* Every block passes its sums on, and the last one collects. */
template <typename S, int CELLS>
static __device__ __forceinline__ void blocks(const vision_rotary_dense_params &p) {
  const int quarter = S::QUARTER != 0 ? S::QUARTER : p.quarter;
  const int output = threadIdx.x / PARTS, count = gridDim.x, warps = blockDim.x / WARP;
  const bool passes = threadIdx.x % PARTS == 0 && output < quarter;
  float *word = cell_word(p, output, blockIdx.x, count);
  /* So that the page's address translation is there when the sum is. */
  const float total = block_sum<S>(p, [&]() {
    if (passes) fetch_ahead(word);
  });
  if (passes) pass(word, total);
  if (blockIdx.x != count - 1) return;
  __syncwarp();
  /* A look that finds a cell empty costs a whole round trip before the next one. */
  const int start = clock();
  while (static_cast<int>(clock()) - start < p.poll_delay) {
  }
#pragma unroll 1
  for (int group = threadIdx.x / WARP; group * VISION_ROTARY_CELL_OUTPUTS < quarter; group += warps) {
    collect<CELLS>(p, quarter, group, count);
  }
}

/* ---- from block to block of a cluster, through shared memory ---- */

static __device__ __noinline__ float sum_in_double(const float *sums, int stride, int count) {
  double sum = 0;
#pragma unroll 1
  for (int k = 0; k < count; ++k) sum += sums[k * stride];
  return static_cast<float>(sum);
}

/* The grid is one cluster, whose blocks send their sums to the first block's shared memory. A barrier there counts what
 * has arrived, so that this block alone waits. */
template <typename S>
static __device__ __forceinline__ void clustered(const vision_rotary_dense_params &p) {
#if __CUDA_ARCH__ >= 900
  enum { QUARTER = S::QUARTER, BLOCKS = VISION_ROTARY_CLUSTER };
  __shared__ float received[BLOCKS][QUARTER];
  __shared__ uint64_t sends;
  const uint32_t barrier = static_cast<uint32_t>(__cvta_generic_to_shared(&sends));
  const float total = block_sum<S>(p, [&]() {
    if (blockIdx.x == 0 && threadIdx.x == 0) {
      asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier) : "memory");
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
      asm volatile("mbarrier.arrive.expect_tx.relaxed.cta.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                   "n"(sizeof received)
                   : "memory");
      fetch_ahead(p.grad_inv_freq);
    }
    __syncwarp();
    asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
  });
  const int output = threadIdx.x / PARTS;
  if (threadIdx.x % PARTS == 0 && output < QUARTER) {
    uint32_t to, remote_barrier;
    const uint32_t here = static_cast<uint32_t>(__cvta_generic_to_shared(&received[blockIdx.x][output]));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(to) : "r"(here));
    asm volatile("mapa.shared::cluster.u32 %0, %1, 0;" : "=r"(remote_barrier) : "r"(barrier));
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(to),
                 "r"(__float_as_uint(total)), "r"(remote_barrier)
                 : "memory");
  }
  if (blockIdx.x != 0 || threadIdx.x >= QUARTER) return;
  uint32_t done;
  do {
    asm volatile(
        "{ .reg .pred complete;\n"
        "  mbarrier.try_wait.parity.shared::cta.b64 complete, [%1], 0;\n"
        "  selp.u32 %0, 1, 0, complete; }"
        : "=r"(done)
        : "r"(barrier)
        : "memory");
  } while (!done);
  float sum[4] = {};
#pragma unroll
  for (int k = 0; k < BLOCKS; ++k) sum[k % 4] += received[k][threadIdx.x];
  float result = (sum[0] + sum[1]) + (sum[2] + sum[3]);
  if (!isfinite(result)) result = sum_in_double(&received[0][threadIdx.x], QUARTER, BLOCKS);
  p.grad_inv_freq[threadIdx.x] = result;
#else
  blocks<S, 1>(p); /* should a build have no code for a device's own architecture */
#endif
}

#endif
