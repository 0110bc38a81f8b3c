/* The forward pass of vision_rotary on CUDA. Bound by what it writes, 12 bytes an element in the suite's dtypes; at the
 * usual sizes by the latency of one patch's positions and what follows from them. */
#include "ops/vision_rotary/vision_rotary_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

enum { QUARTERS = 4, POSITION_AXES = 2 };

/* An angle is a product rounded by itself. */
static __device__ __forceinline__ float angle_of(float position, float inv_freq) {
  return __fmul_rn(position, inv_freq);
}
static __device__ __forceinline__ double angle_of(double position, double inv_freq) {
  return __dmul_rn(position, inv_freq);
}

/* `twice`: to the second half of the row as well. */
template <rg_cache_hint HINT, bool TWICE, typename T, int N>
static __device__ __forceinline__ void store(T *tensor, int64_t at, uint32_t half, const float (&value)[N]) {
  const rg_packet<T, N> packet = rg_pack<T, N>(value);
  rg_store_packet<HINT, T, N>(tensor + at, packet);
  if (TWICE) rg_store_packet<HINT, T, N>(tensor + at + half, packet);
}

/* A thread has a packet of neighbouring columns, which may lie in two quarters of the row. TWICE: of the row's first
 * half, and stores it to both; else of the whole row, so that a warp writes one run of memory. QUARTER is Q where it is
 * known; 0: p.quarter. */
template <typename T, int QUARTER, bool TWICE, rg_cache_hint HINT>
static __device__ __forceinline__ void dense(const vision_rotary_forward_dense_params &p) {
  enum { N = VISION_ROTARY_FORWARD_PACKET };
  const uint32_t quarter = QUARTER != 0 ? QUARTER : p.quarter, half = 2 * quarter;
  const uint32_t columns = TWICE ? half : 2 * half; /* that the threads of a row have */
  const uint32_t packet = blockIdx.x * blockDim.x + threadIdx.x;
  if (packet >= p.packets) return;
  const uint32_t row = packet / (columns / N), column = (packet - row * (columns / N)) * N;
  const longlong2 position = __ldg(reinterpret_cast<const longlong2 *>(p.pos_ids + row * p.pos_ids_stride));
  float inv_freq[N], theta[N], sine[N], cosine[N];
  bool of_column[N];
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const uint32_t in_half = !TWICE && column + i >= half ? column + i - half : column + i;
    of_column[i] = in_half >= quarter;
    inv_freq[i] = __ldg(p.inv_freq + (in_half - (of_column[i] ? quarter : 0)));
  }
  float of_row, of_col;
  /* Volatile: or the compiler selects before it converts, and converts, which takes long, for every column. */
  asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(of_row) : "l"(position.x));
  asm volatile("cvt.rn.f32.s64 %0, %1;" : "=f"(of_col) : "l"(position.y));
#pragma unroll
  for (int i = 0; i < N; ++i) theta[i] = angle_of(of_column[i] ? of_col : of_row, inv_freq[i]);
  const int64_t at = static_cast<int64_t>(row) * (2 * half) + column;
  if (p.emb != nullptr) store<HINT, TWICE, float, N>(p.emb, at, half, theta);
  rg_sincos_all<N>(theta, sine, cosine);
  if (p.cos != nullptr) store<HINT, TWICE, T, N>(static_cast<T *>(p.cos), at, half, cosine);
  if (p.sin != nullptr) store<HINT, TWICE, T, N>(static_cast<T *>(p.sin), at, half, sine);
}

#define DENSE(name, T, how, QUARTER, TWICE, HINT)                     \
  extern "C" __global__ void vision_rotary_forward_##name##__##how(   \
      const __grid_constant__ vision_rotary_forward_dense_params p) { \
    dense<T, QUARTER, TWICE, HINT>(p);                                \
  }
#define DENSE_SHAPES(name, T)                                                          \
  DENSE(name, T, d72, VISION_ROTARY_FORWARD_QUARTER, false, RG_CACHE_DEFAULT)          \
  DENSE(name, T, d72_once, VISION_ROTARY_FORWARD_QUARTER, false, RG_CACHE_STREAM)      \
  DENSE(name, T, d72_twice, VISION_ROTARY_FORWARD_QUARTER, true, RG_CACHE_DEFAULT)     \
  DENSE(name, T, d72_twice_once, VISION_ROTARY_FORWARD_QUARTER, true, RG_CACHE_STREAM) \
  DENSE(name, T, any_d, 0, false, RG_CACHE_DEFAULT)
DENSE_SHAPES(f32, float)
DENSE_SHAPES(bf16, __nv_bfloat16)
DENSE_SHAPES(f16, __half)

/* Any strides and dtypes: threads of a warp take neighbours along a row. */
template <typename Real>
static __device__ __forceinline__ void general(const vision_rotary_forward_general_params &p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x, half = 2 * p.quarter;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.angles; i += step) {
    const int64_t row = i / half, column = i - row * half;
    const int axis = column >= p.quarter;
    const Real position = static_cast<Real>(rg_load_index(p.pos_ids, rg_offset(p.pos_ids, row, axis)));
    const Real inv_freq = rg_load<Real>(p.inv_freq, (column - axis * p.quarter) * p.inv_freq.stride[0]);
    const Real theta = angle_of(position, inv_freq);
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
