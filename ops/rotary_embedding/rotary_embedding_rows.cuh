/* What the kernels of rotary_embedding for evenly spaced rows have in common: where rows lie, how a row's sum is put
 * together from several lanes, and the way taken where float32 is not enough. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_ROWS_CUH
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_ROWS_CUH

#include <float.h>

#include "ops/rotary_embedding/rotary_embedding_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

enum { WARP = 32 };
static const unsigned ALL_LANES = 0xffffffffu;

typedef rotary_embedding_rows_params rows_params;

/* Row `row` of a tensor whose rows are `stride` elements apart. */
template <typename T>
__device__ __forceinline__ const T *row_of(const void *tensor, uint32_t row, int32_t stride) {
  return static_cast<const T *>(tensor) + static_cast<int64_t>(static_cast<int32_t>(row)) * stride;
}

/* Element `first` of the frequencies that serve row `row`. Counted in 32 bits: they are few. */
__device__ __forceinline__ const float *frequencies(const rows_params &p, uint32_t row, uint32_t first) {
  const uint32_t batch = static_cast<uint32_t>((static_cast<uint64_t>(row) * p.batch_multiplier) >> p.batch_shift);
  return p.inv_freq + static_cast<int32_t>(batch * static_cast<uint32_t>(p.inv_freq_stride) + first);
}

/* Which row a thread shares in, and as which of the row's LANES lanes. A warp does 32 / LANES neighbours. Lanes past
 * the last row read that one again and store nothing. */
template <int LANES>
struct row_place {
  uint32_t lane, row;
  bool stores;

  __device__ __forceinline__ explicit row_place(const rows_params &p) {
    const uint32_t wanted = blockIdx.x * (blockDim.x / LANES) + threadIdx.x / LANES;
    lane = threadIdx.x % LANES;
    row = min(wanted, static_cast<uint32_t>(p.rows) - 1);
    stores = lane == 0 && wanted < static_cast<uint32_t>(p.rows);
  }
};

/* ---- where float32 is not enough ---- */

/* One term of a row's sum, in double. Of its own, and never inlined, so that redo_rows asks for few registers. */
template <typename T>
__device__ __noinline__ double term_in_double(const rows_params &p, uint32_t row, int j) {
  const T *c = row_of<T>(p.grad_cos, row, p.grad_cos_stride) + j;
  const T *s = row_of<T>(p.grad_sin, row, p.grad_sin_stride) + j;
  const double grad_cos = rg_to_real<double>(c[0]) + rg_to_real<double>(c[p.half]);
  const double grad_sin = rg_to_real<double>(s[0]) + rg_to_real<double>(s[p.half]);
  float sine, cosine;
  rg_sincos_slow(row_of<float>(p.emb, row, p.emb_stride)[j], &sine, &cosine);
  return *frequencies(p, row, j) * (grad_sin * cosine - grad_cos * sine);
}

/* Does again, by the whole warp, the rows of those lanes that are set in `lost`: for angles beyond RG_SINCOS_LIMIT,
 * for sums that float32 cannot hold although the scaled result may fit, and for inputs that are not finite. Never
 * inlined: it is rare, and its registers and code would slow down the common path. */
template <typename T>
__device__ __noinline__ void redo_rows(const rows_params &p, unsigned lost, uint32_t row) {
  const int lane = threadIdx.x % WARP;
#pragma unroll 1
  for (; lost != 0; lost &= lost - 1) {
    const uint32_t which = __shfl_sync(ALL_LANES, row, __ffs(lost) - 1);
    double sum = 0.0;
#pragma unroll 1
    for (int j = lane; j < p.half; j += WARP) sum += term_in_double<T>(p, which, j);
#pragma unroll 1
    for (int apart = WARP / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
    if (lane == 0) p.grad_position_ids[which] = static_cast<float>(p.scaling * sum);
  }
}

/* What a lane that stores leaves behind is right unless its sum is not finite. */
template <typename T>
__device__ __forceinline__ void redo_if_not_finite(const rows_params &p, bool stores, float sum, uint32_t row) {
  const unsigned lost = __ballot_sync(ALL_LANES, stores && !(fabsf(sum) <= FLT_MAX));
  if (lost != 0) redo_rows<T>(p, lost, row);
}

#endif
