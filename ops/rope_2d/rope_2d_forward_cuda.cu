/* The forward pass of rope_2d on CUDA. Bound by memory: 8 bytes an element in the suite's dtypes against one sine and
 * cosine. */
#include "ops/rope_2d/rope_2d_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

/* A packet a thread. */
template <typename T, rg_cache_hint HINT>
static __device__ __forceinline__ void dense(const rope_2d_forward_dense_params &p) {
  enum { N = ROPE_2D_FORWARD_PACKET };
  T *to_cos = static_cast<T *>(p.cos), *to_sin = static_cast<T *>(p.sin);
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first + N <= p.elements) {
    float theta[N], sine[N], cosine[N];
    rg_unpack(rg_load_packet<HINT, float, N>(p.idx_theta + first), theta);
    rg_sincos_all<N>(theta, sine, cosine);
    if (to_cos != nullptr) rg_store_packet<HINT, T, N>(to_cos + first, rg_pack<T, N>(cosine));
    if (to_sin != nullptr) rg_store_packet<HINT, T, N>(to_sin + first, rg_pack<T, N>(sine));
    return;
  }
#pragma unroll 1
  for (int64_t i = first; i < p.elements; ++i) {
    float sine, cosine;
    rg_sincos(p.idx_theta[i], &sine, &cosine);
    if (to_cos != nullptr) to_cos[i] = rg_from_real<T>(cosine);
    if (to_sin != nullptr) to_sin[i] = rg_from_real<T>(sine);
  }
}

#define DENSE(name, T)                                                                                                 \
  extern "C" __global__ void rope_2d_forward_##name##__dense(const __grid_constant__ rope_2d_forward_dense_params p) { \
    dense<T, RG_CACHE_DEFAULT>(p);                                                                                     \
  }                                                                                                                    \
  extern "C" __global__ void rope_2d_forward_##name##__dense_once(                                                     \
      const __grid_constant__ rope_2d_forward_dense_params p) {                                                        \
    dense<T, RG_CACHE_STREAM>(p);                                                                                      \
  }
DENSE(f32, float)
DENSE(bf16, __nv_bfloat16)
DENSE(f16, __half)

/* Any strides and dtypes: threads of a warp take neighbours along head_dim. */
template <typename Real>
static __device__ __forceinline__ void general(const rope_2d_forward_general_params &p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.elements; i += step) {
    const int64_t row = i / p.head_dim, d = i - row * p.head_dim;
    const int64_t b = row / p.seq_len, s = row - b * p.seq_len;
    Real sine, cosine;
    rg_sincos(rg_load<Real>(p.idx_theta, rg_offset(p.idx_theta, b, s, d)), &sine, &cosine);
    if (p.cos.data != nullptr) rg_store(p.cos, rg_offset(p.cos, b, s, d), cosine);
    if (p.sin.data != nullptr) rg_store(p.sin, rg_offset(p.sin, b, s, d), sine);
  }
}

extern "C" __global__ void rope_2d_forward_any__general(const __grid_constant__ rope_2d_forward_general_params p) {
  general<float>(p);
}
extern "C" __global__ void rope_2d_forward_f64__general(const __grid_constant__ rope_2d_forward_general_params p) {
  general<double>(p);
}
