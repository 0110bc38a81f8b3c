/* The forward pass of vision_rotary on CUDA. Bound by what it writes, 12 bytes an element in the suite's dtypes; at the
 * usual sizes by the latency of one patch's positions and what follows from them. */
#include "ops/vision_rotary/vision_rotary_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

enum { QUARTERS = 4, POSITION_AXES = 2 };

template <typename T, int N>
static __device__ __forceinline__ void store(T *tensor, int64_t at, const float (&value)[N]) {
  rg_store_packet<RG_CACHE_DEFAULT, T, N>(tensor + at, rg_pack<T, N>(value));
}

/* A thread has a packet of neighbouring columns, which may lie in two quarters of the row; a warp writes one run of
 * memory. QUARTER is Q where it is known; 0: p.quarter. */
template <typename T, int QUARTER>
static __device__ __forceinline__ void dense(const vision_rotary_forward_dense_params &p) {
  enum { N = VISION_ROTARY_FORWARD_PACKET };
  const uint32_t quarter = QUARTER != 0 ? QUARTER : p.quarter, half = 2 * quarter;
  const uint32_t packet = blockIdx.x * blockDim.x + threadIdx.x;
  if (packet >= p.packets) return;
  const uint32_t row = packet / quarter, column = (packet - row * quarter) * N;
  const longlong2 position = __ldg(reinterpret_cast<const longlong2 *>(p.pos_ids + row * p.pos_ids_stride));
  float inv_freq[N], theta[N], sine[N], cosine[N];
  bool of_column[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const uint32_t in_half = column + i >= half ? column + i - half : column + i;
    of_column[i] = in_half >= quarter;
    inv_freq[i] = __ldg(p.inv_freq + (in_half - (of_column[i] ? quarter : 0)));
  }
  float of_row, of_col;
  /* Volatile: or the compiler selects before it converts, and converts, which takes long, for every column. */
  asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(of_row) : "l"(position.x));
  asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(of_col) : "l"(position.y));
#pragma unroll
  for (int i = 0; i < N; ++i) theta[i] = rg_angle_of(of_column[i] ? of_col : of_row, inv_freq[i]);
  const int64_t at = static_cast<int64_t>(row) * (2 * half) + column;
  if (p.emb != nullptr) store(p.emb, at, theta);
  rg_sincos_all<N>(theta, sine, cosine);
  if (p.cos != nullptr) store(static_cast<T *>(p.cos), at, cosine);
  if (p.sin != nullptr) store(static_cast<T *>(p.sin), at, sine);
}

#define DENSE(name, T, how, QUARTER)                                  \
  extern "C" __global__ void vision_rotary_forward_##name##__##how(   \
      const __grid_constant__ vision_rotary_forward_dense_params p) { \
    dense<T, QUARTER>(p);                                             \
  }
#define DENSE_OF(name, T)                            \
  DENSE(name, T, d72, VISION_ROTARY_FORWARD_QUARTER) \
  DENSE(name, T, any_d, 0)
DENSE_OF(f32, float)
DENSE_OF(bf16, __nv_bfloat16)
DENSE_OF(f16, __half)

/* Any strides and dtypes: threads of a warp take neighbours along a row. */
template <typename Real>
static __device__ __forceinline__ void general(const vision_rotary_forward_general_params &p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, half = 2 * p.quarter;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.angles; i += step) {
    const int64_t row = i / half, column = i - row * half;
    const int axis = column >= p.quarter;
    const Real position = static_cast<Real>(rg_load_index(p.pos_ids, rg_offset(p.pos_ids, row, axis)));
    const Real inv_freq = rg_load<Real>(p.inv_freq, (column - axis * p.quarter) * p.inv_freq.stride[0]);
    const Real theta = rg_angle_of(position, inv_freq);
    Real sine, cosine;
    rg_sincos(theta, &sine, &cosine);
    for (int64_t d = column; d < 2 * half; d += half) {
      if (p.emb.data != nullptr) rg_store(p.emb, rg_offset(p.emb, row, d), theta);
      if (p.cos.data != nullptr) rg_store(p.cos, rg_offset(p.cos, row, d), cosine);
      if (p.sin.data != nullptr) rg_store(p.sin, rg_offset(p.sin, row, d), sine);
    }
  }
}

extern "C" __global__ void vision_rotary_forward_any__general(
    const __grid_constant__ vision_rotary_forward_general_params p) {
  general<float>(p);
}
extern "C" __global__ void vision_rotary_forward_f64__general(
    const __grid_constant__ vision_rotary_forward_general_params p) {
  general<double>(p);
}
