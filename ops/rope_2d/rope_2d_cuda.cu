/* rope_2d on CUDA. Bound by memory: 12 bytes an element in the suite's dtypes against one sine and cosine. */
#include "ops/rope_2d/rope_2d_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

/* A vector a thread: at the suite's sizes many threads with little each have more loads in flight than few with much. */
template <typename T, rg_cache_hint HINT>
static __device__ __forceinline__ void dense(const rope_2d_dense_params &p) {
  enum { N = ROPE_2D_VECTOR };
  const T *grad_cos = static_cast<const T *>(p.grad_cos), *grad_sin = static_cast<const T *>(p.grad_sin);
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first + N <= p.elements) {
    const auto packed_cos = rg_load_packet<HINT, T, N>(grad_cos + first);
    const auto packed_sin = rg_load_packet<HINT, T, N>(grad_sin + first);
    const auto packed_theta = rg_load_packet<HINT, float, N>(p.idx_theta + first);
    float c[N], s[N], theta[N], gradient[N];
    rg_unpack(packed_cos, c);
    rg_unpack(packed_sin, s);
    rg_unpack(packed_theta, theta);
    rg_angle_gradients<N>(c, s, theta, gradient);
    rg_store_packet<HINT, float, N>(p.grad_idx_theta + first, rg_pack<float, N>(gradient));
    return;
  }
  for (int64_t i = first; i < p.elements; ++i) {
    p.grad_idx_theta[i] =
        rg_angle_gradient(rg_to_real<float>(grad_cos[i]), rg_to_real<float>(grad_sin[i]), p.idx_theta[i]);
  }
}

#define DENSE(name, T)                                                                                      \
  extern "C" __global__ void rope_2d_##name##__dense(const __grid_constant__ rope_2d_dense_params p) {      \
    dense<T, RG_CACHE_DEFAULT>(p);                                                                          \
  }                                                                                                         \
  extern "C" __global__ void rope_2d_##name##__dense_once(const __grid_constant__ rope_2d_dense_params p) { \
    dense<T, RG_CACHE_STREAM>(p);                                                                           \
  }
DENSE(f32, float)
DENSE(bf16, __nv_bfloat16)
DENSE(f16, __half)

/* Any strides and dtypes: threads of a warp take neighbours along head_dim. */
template <typename Real>
static __device__ __forceinline__ void general(const rope_2d_general_params &p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.elements; i += step) {
    const int64_t row = i / p.head_dim, d = i - row * p.head_dim;
    const int64_t b = row / p.seq_len, s = row - b * p.seq_len;
    const Real grad_cos = rg_load<Real>(p.grad_cos, rg_offset(p.grad_cos, b, s, d));
    const Real grad_sin = rg_load<Real>(p.grad_sin, rg_offset(p.grad_sin, b, s, d));
    const Real theta = rg_load<Real>(p.idx_theta, rg_offset(p.idx_theta, b, s, d));
    rg_store(p.grad_idx_theta, rg_offset(p.grad_idx_theta, b, s, d), rg_angle_gradient(grad_cos, grad_sin, theta));
  }
}

extern "C" __global__ void rope_2d_any__general(const __grid_constant__ rope_2d_general_params p) { general<float>(p); }
extern "C" __global__ void rope_2d_f64__general(const __grid_constant__ rope_2d_general_params p) {
  general<double>(p);
}
