/* rotary_embedding for any strides and dtypes: `lanes` neighbouring lanes a row, which take neighbours along the last
 * dimension. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_GENERAL_CUH
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_GENERAL_CUH

#include "ops/rotary_embedding/rotary_embedding_rows.cuh"
#include "src/cuda/sum.cuh"

/* Terms of float32 tensors are put together in double all the same: no sum overflows before it is scaled. */
template <typename Real>
__device__ __forceinline__ double general_term(const rotary_embedding_general_params &p, int64_t b, int64_t s,
                                               int64_t j) {
  const double grad_cos = rg_load<double>(p.grad_cos, rg_offset(p.grad_cos, b, s, j)) +
                          rg_load<double>(p.grad_cos, rg_offset(p.grad_cos, b, s, j + p.half));
  const double grad_sin = rg_load<double>(p.grad_sin, rg_offset(p.grad_sin, b, s, j)) +
                          rg_load<double>(p.grad_sin, rg_offset(p.grad_sin, b, s, j + p.half));
  Real sine, cosine;
  rg_sincos(rg_load<Real>(p.emb, rg_offset(p.emb, b, s, j)), &sine, &cosine);
  return rg_load<double>(p.inv_freq, rg_offset(p.inv_freq, b, j)) * (grad_sin * cosine - grad_cos * sine);
}

template <typename Real>
__device__ __forceinline__ void general(const rotary_embedding_general_params &p) {
  const int lane = threadIdx.x % p.lanes;
  const int64_t rows_a_step = static_cast<int64_t>(gridDim.x) * blockDim.x / p.lanes;
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / p.lanes;
  const int64_t warps_first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x / WARP * WARP) / p.lanes;
  for (int64_t step = 0; warps_first + step < p.rows; step += rows_a_step) {
    const int64_t row = first + step;
    const bool exists = row < p.rows;
    const int64_t b = row / p.seq_len, s = row - b * p.seq_len;
    rg_exact_sum sum = {};
    for (int64_t j = lane; exists && j < p.half; j += p.lanes) sum.add(general_term<Real>(p, b, s, j));
    for (int apart = p.lanes / 2; apart > 0; apart /= 2) {
      sum.add(rg_exact_sum{__shfl_xor_sync(ALL_LANES, sum.sum, apart), __shfl_xor_sync(ALL_LANES, sum.lost, apart)});
    }
    if (exists && lane == 0) {
      rg_store(p.grad_position_ids, rg_offset(p.grad_position_ids, b, s), static_cast<Real>(p.scaling * sum.value()));
    }
  }
}

#endif
