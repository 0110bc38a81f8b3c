/* The forward pass of rope_2d on CUDA. Bound by memory: 8 bytes an element in the suite's dtypes against one sine and
 * cosine. */
#include "ops/rope_2d/rope_2d_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

/* PACKETS packets a thread, a block's width apart, all loaded before the first is used. */
template <typename T, int PACKETS, rg_cache_hint HINT>
static __device__ __forceinline__ void dense(const rope_2d_forward_dense_params &p) {
  enum { N = ROPE_2D_FORWARD_PACKET };
  T *to_cos = static_cast<T *>(p.cos), *to_sin = static_cast<T *>(p.sin);
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * (PACKETS * blockDim.x) + threadIdx.x) * N;
  const uint32_t apart = blockDim.x * N;
  rg_packet<float, N> packed_theta[PACKETS];
#pragma unroll
  for (int k = 0; k < PACKETS; ++k) {
    const int64_t i = first + k * apart;
    if (i + N <= p.elements) packed_theta[k] = rg_load_packet<HINT, float, N>(p.idx_theta + i);
  }
#pragma unroll
  for (int k = 0; k < PACKETS; ++k) {
    const int64_t i = first + k * apart;
    if (i + N <= p.elements) {
      float theta[N], sine[N], cosine[N];
      rg_unpack(packed_theta[k], theta);
      rg_sincos_all<N>(theta, sine, cosine);
      if (to_cos != nullptr) rg_store_packet<HINT, T, N>(to_cos + i, rg_pack<T, N>(cosine));
      if (to_sin != nullptr) rg_store_packet<HINT, T, N>(to_sin + i, rg_pack<T, N>(sine));
    } else {
#pragma unroll 1
      for (int64_t last = i; last < p.elements; ++last) {
        float sine, cosine;
        rg_sincos(p.idx_theta[last], &sine, &cosine);
        if (to_cos != nullptr) to_cos[last] = rg_from_real<T>(cosine);
        if (to_sin != nullptr) to_sin[last] = rg_from_real<T>(sine);
      }
    }
  }
}

#define DENSE(name, T, how, PACKETS, HINT)                         \
  extern "C" __global__ void rope_2d_forward_##name##__dense##how( \
      const __grid_constant__ rope_2d_forward_dense_params p) {    \
    dense<T, PACKETS, HINT>(p);                                    \
  }
#define DENSE_SHAPES(name, T)                \
  DENSE(name, T, 1, 1, RG_CACHE_DEFAULT)     \
  DENSE(name, T, 1_once, 1, RG_CACHE_STREAM) \
  DENSE(name, T, 2, 2, RG_CACHE_DEFAULT)     \
  DENSE(name, T, 2_once, 2, RG_CACHE_STREAM)
DENSE_SHAPES(f32, float)
DENSE_SHAPES(bf16, __nv_bfloat16)
DENSE_SHAPES(f16, __half)

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
