/* The forward pass of rotary_embedding on CUDA. Bound by what it writes, 8 bytes an element in the suite's dtypes, and
 * the halves of a row repeat each other: a thread makes a packet of angles and stores each result twice. */
#include "ops/rotary_embedding/rotary_embedding_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/sincos.cuh"

typedef rotary_embedding_forward_rows_params rows_params;

template <typename T, int N>
static __device__ __forceinline__ void store_twice(T *tensor, int64_t at, uint32_t half, const float (&value)[N]) {
  const rg_packet<T, N> packet = rg_pack<T, N>(value);
  rg_store_packet<RG_CACHE_DEFAULT, T, N>(tensor + at, packet);
  rg_store_packet<RG_CACHE_DEFAULT, T, N>(tensor + at + half, packet);
}

/* Rounded once to the angles' dtype. */
static __device__ __forceinline__ float load_position(const rg_device_tensor &position_ids, int64_t offset) {
  if (position_ids.dtype == RG_I64) {
    return static_cast<float>(__ldg(static_cast<const long long *>(position_ids.data) + offset));
  }
  if (position_ids.dtype == RG_I32) {
    return static_cast<float>(__ldg(static_cast<const int *>(position_ids.data) + offset));
  }
  return __ldg(static_cast<const float *>(position_ids.data) + offset);
}

/* A thread has one packet of one row. HALF is D/2 where it is known; 0: p.half, and a block's threads are a multiple of
 * a row's. */
template <typename T, int HALF>
static __device__ __forceinline__ void rows(const rows_params &p) {
  enum { N = ROTARY_EMBEDDING_FORWARD_PACKET };
  const uint32_t half = HALF != 0 ? HALF : p.half, lanes = half / N;
  const uint32_t in_block = threadIdx.x / lanes, j = (threadIdx.x - in_block * lanes) * N;
  const uint32_t row = blockIdx.x * (blockDim.x / lanes) + in_block;
  if (row >= p.rows) return;
  const uint32_t b = static_cast<uint32_t>((static_cast<uint64_t>(row) * p.batch_multiplier) >> p.batch_shift);
  const uint32_t s = row - b * p.seq_len;
  const auto inv_freq = rg_load_packet<RG_CACHE_DEFAULT, float, N>(p.inv_freq + b * p.inv_freq_stride + j);
  const float position = load_position(p.position_ids, rg_offset(p.position_ids, b, s));
  const int64_t at = static_cast<int64_t>(row) * (2 * half) + j;
  float theta[N], sine[N], cosine[N];
#pragma unroll
  for (int i = 0; i < N; ++i) theta[i] = rg_angle_of(position, inv_freq.element[i]);
  if (p.emb != nullptr) store_twice<float, N>(p.emb, at, half, theta);
  rg_sincos_all<N>(theta, sine, cosine);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    sine[i] *= p.scaling;
    cosine[i] *= p.scaling;
  }
  if (p.cos != nullptr) store_twice<T, N>(static_cast<T *>(p.cos), at, half, cosine);
  if (p.sin != nullptr) store_twice<T, N>(static_cast<T *>(p.sin), at, half, sine);
}

#define ROWS(name, T, how, HALF)                                                                               \
  extern "C" __global__ void rotary_embedding_forward_##name##__##how(const __grid_constant__ rows_params p) { \
    rows<T, HALF>(p);                                                                                          \
  }
#define ROWS_OF(name, T)                             \
  ROWS(name, T, d128, ROTARY_EMBEDDING_FORWARD_HALF) \
  ROWS(name, T, any_d, 0)
ROWS_OF(f32, float)
ROWS_OF(bf16, __nv_bfloat16)
ROWS_OF(f16, __half)

/* A position, rounded once to the angles' dtype. */
template <typename Real>
static __device__ __forceinline__ Real position_at(const rg_device_tensor &position_ids, int64_t offset) {
  const bool integer = position_ids.dtype == RG_I64 || position_ids.dtype == RG_I32;
  return integer ? static_cast<Real>(rg_load_index(position_ids, offset)) : rg_load<Real>(position_ids, offset);
}

/* Any strides and dtypes: threads of a warp take neighbours along the frequencies. */
template <typename Real>
static __device__ __forceinline__ void general(const rotary_embedding_forward_general_params &p) {
  const int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  const Real scaling = static_cast<Real>(p.scaling);
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < p.angles; i += step) {
    const int64_t row = i / p.half, j = i - row * p.half;
    const int64_t b = row / p.seq_len, s = row - b * p.seq_len;
    const Real theta = rg_angle_of(position_at<Real>(p.position_ids, rg_offset(p.position_ids, b, s)),
                                   rg_load<Real>(p.inv_freq, rg_offset(p.inv_freq, b, j)));
    Real sine, cosine;
    rg_sincos(theta, &sine, &cosine);
    for (int64_t d = j; d < 2 * p.half; d += p.half) {
      if (p.emb.data != nullptr) rg_store(p.emb, rg_offset(p.emb, b, s, d), theta);
      if (p.cos.data != nullptr) rg_store(p.cos, rg_offset(p.cos, b, s, d), cosine * scaling);
      if (p.sin.data != nullptr) rg_store(p.sin, rg_offset(p.sin, b, s, d), sine * scaling);
    }
  }
}

extern "C" __global__ void rotary_embedding_forward_any__general(
    const __grid_constant__ rotary_embedding_forward_general_params p) {
  general<float>(p);
}
extern "C" __global__ void rotary_embedding_forward_f64__general(
    const __grid_constant__ rotary_embedding_forward_general_params p) {
  general<double>(p);
}
