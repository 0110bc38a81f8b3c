/* rotary_embedding for evenly spaced rows of any D that is a multiple of 8: LANES lanes a row, each with every
 * LANES-th vector. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_ANY_D_CUH
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_ANY_D_CUH

#include "ops/rotary_embedding/rotary_embedding_rows.cuh"

template <typename T, int LANES>
__device__ __forceinline__ void any_d(const rows_params &p) {
  enum { N = ROTARY_EMBEDDING_VECTOR };
  const row_place<LANES> at(p);
  const float *e = row_of<float>(p.emb, at.row, p.emb_stride), *f = frequencies(p, at.row, 0);
  const T *c = row_of<T>(p.grad_cos, at.row, p.grad_cos_stride);
  const T *s = row_of<T>(p.grad_sin, at.row, p.grad_sin_stride);
  double sum = 0.0; /* so that rounding errors do not grow with D */
  for (int j = at.lane * N; j < p.half; j += LANES * N) {
    const auto emb = rg_load_packet<RG_CACHE_STREAM, float, N>(e + j);
    const auto cos1 = rg_load_packet<RG_CACHE_STREAM, T, N>(c + j);
    const auto cos2 = rg_load_packet<RG_CACHE_STREAM, T, N>(c + p.half + j);
    const auto sin1 = rg_load_packet<RG_CACHE_STREAM, T, N>(s + j);
    const auto sin2 = rg_load_packet<RG_CACHE_STREAM, T, N>(s + p.half + j);
    const auto inv_freq = rg_load_packet<RG_CACHE_DEFAULT, float, N>(f + j);
    float grad_cos[N], grad_sin[N], theta[N], gradient[N], part = 0.0f;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      theta[i] = emb.element[i];
      grad_cos[i] = rg_to_real<float>(cos1.element[i]) + rg_to_real<float>(cos2.element[i]);
      grad_sin[i] = rg_to_real<float>(sin1.element[i]) + rg_to_real<float>(sin2.element[i]);
    }
    rg_angle_gradients<N>(grad_cos, grad_sin, theta, gradient);
#pragma unroll
    for (int i = 0; i < N; ++i) part = __fmaf_rn(inv_freq.element[i], gradient[i], part);
    sum += part;
  }
#pragma unroll
  for (int apart = LANES / 2; apart > 0; apart /= 2) sum += __shfl_xor_sync(ALL_LANES, sum, apart);
  if (at.stores) p.grad_position_ids[at.row] = static_cast<float>(p.scaling * sum);
  redo_if_not_finite<T>(p, at.stores, static_cast<float>(sum), at.row);
}

#endif
