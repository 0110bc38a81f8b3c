/* element.cuh: elements of tensors in device code: one at a time by a dtype known at run time (general kernels), and
 * several in one load or store by a dtype known at compile time (tuned kernels). */
#ifndef ROPEGRAD_SRC_CUDA_ELEMENT_CUH
#define ROPEGRAD_SRC_CUDA_ELEMENT_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "src/cuda/device_tensor.h"

template <typename Real, typename T>
__device__ __forceinline__ Real rg_to_real(T x) {
  return static_cast<Real>(x);
}
template <>
__device__ __forceinline__ float rg_to_real<float, __nv_bfloat16>(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <>
__device__ __forceinline__ float rg_to_real<float, __half>(__half x) {
  return __half2float(x);
}
template <>
__device__ __forceinline__ double rg_to_real<double, __nv_bfloat16>(__nv_bfloat16 x) {
  return __bfloat162float(x);
}
template <>
__device__ __forceinline__ double rg_to_real<double, __half>(__half x) {
  return __half2float(x);
}

/* Rounded to nearest even. */
template <typename T>
__device__ __forceinline__ T rg_from_real(float x) {
  return static_cast<T>(x);
}
template <>
__device__ __forceinline__ __nv_bfloat16 rg_from_real<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}
template <>
__device__ __forceinline__ __half rg_from_real<__half>(float x) {
  return __float2half_rn(x);
}

/* ---- one element, its dtype known at run time ---- */

/* Element `offset` (in elements) of a tensor. Real is double in the kernels for float64 tensors, else float. */
template <typename Real>
__device__ __forceinline__ Real rg_load(const rg_device_tensor &tensor, int64_t offset) {
  switch (tensor.dtype) {
    case RG_BF16:
      return rg_to_real<Real>(static_cast<const __nv_bfloat16 *>(tensor.data)[offset]);
    case RG_F16:
      return rg_to_real<Real>(static_cast<const __half *>(tensor.data)[offset]);
    case RG_F64:
      return static_cast<Real>(static_cast<const double *>(tensor.data)[offset]);
    default:
      return static_cast<const float *>(tensor.data)[offset];
  }
}

__device__ __forceinline__ void rg_store(const rg_device_tensor &tensor, int64_t offset, float value) {
  switch (tensor.dtype) {
    case RG_BF16:
      static_cast<__nv_bfloat16 *>(tensor.data)[offset] = __float2bfloat16_rn(value);
      break;
    case RG_F16:
      static_cast<__half *>(tensor.data)[offset] = __float2half_rn(value);
      break;
    default:
      static_cast<float *>(tensor.data)[offset] = value;
  }
}
__device__ __forceinline__ void rg_store(const rg_device_tensor &tensor, int64_t offset, double value) {
  static_cast<double *>(tensor.data)[offset] = value;
}

/* Offset in elements of [i0, i1, ...]. */
__device__ __forceinline__ int64_t rg_offset(const rg_device_tensor &t, int64_t i0, int64_t i1) {
  return i0 * t.stride[0] + i1 * t.stride[1];
}
__device__ __forceinline__ int64_t rg_offset(const rg_device_tensor &t, int64_t i0, int64_t i1, int64_t i2) {
  return rg_offset(t, i0, i1) + i2 * t.stride[2];
}
__device__ __forceinline__ int64_t rg_offset(const rg_device_tensor &t, int64_t i0, int64_t i1, int64_t i2,
                                             int64_t i3) {
  return rg_offset(t, i0, i1, i2) + i3 * t.stride[3];
}

/* Integers: positions and cache positions. */
__device__ __forceinline__ int64_t rg_load_index(const rg_device_tensor &tensor, int64_t offset) {
  return tensor.dtype == RG_I32 ? static_cast<const int32_t *>(tensor.data)[offset]
                                : static_cast<const int64_t *>(tensor.data)[offset];
}

/* ---- N elements of T as one load or store of N * sizeof(T) = 4, 8 or 16 bytes, aligned to as many ---- */

template <int BYTES>
struct rg_word;
template <>
struct rg_word<4> {
  typedef uint32_t type;
};
template <>
struct rg_word<8> {
  typedef uint2 type;
};
template <>
struct rg_word<16> {
  typedef uint4 type;
};

/* How the caches are asked to treat what is loaded or stored: as usual, or as used once. */
enum rg_cache_hint { RG_CACHE_DEFAULT, RG_CACHE_STREAM };

template <typename T, int N>
union rg_packet {
  typename rg_word<N * sizeof(T)>::type word;
  uint32_t part[N * sizeof(T) / 4];
  T element[N];
  __device__ __forceinline__ rg_packet() {}
};

template <rg_cache_hint HINT, typename T, int N>
__device__ __forceinline__ rg_packet<T, N> rg_load_packet(const T *from) {
  typedef typename rg_word<N * sizeof(T)>::type word;
  rg_packet<T, N> packet;
  const word *p = reinterpret_cast<const word *>(from);
  packet.word = HINT == RG_CACHE_STREAM ? __ldcs(p) : __ldg(p);
  return packet;
}

template <rg_cache_hint HINT, typename T, int N>
__device__ __forceinline__ void rg_store_packet(T *to, const rg_packet<T, N> &packet) {
  typedef typename rg_word<N * sizeof(T)>::type word;
  word *p = reinterpret_cast<word *>(to);
  if (HINT == RG_CACHE_STREAM) {
    __stcs(p, packet.word);
  } else {
    *p = packet.word;
  }
}

template <typename T, int N>
__device__ __forceinline__ void rg_unpack(const rg_packet<T, N> &packet, float (&value)[N]) {
#pragma unroll
  for (int i = 0; i < N; ++i) value[i] = rg_to_real<float>(packet.element[i]);
}

/* Two by two: packing elements of 16 bits one by one would go by way of the stack. */
template <int N>
__device__ __forceinline__ void rg_unpack(const rg_packet<__nv_bfloat16, N> &packet, float (&value)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 2) {
    value[i] = __uint_as_float(packet.part[i / 2] << 16);
    value[i + 1] = __uint_as_float(packet.part[i / 2] & 0xffff0000u);
  }
}

__device__ __forceinline__ uint32_t rg_pack_two(float first, float second, __nv_bfloat16) {
  const __nv_bfloat162 two = __floats2bfloat162_rn(first, second);
  return *reinterpret_cast<const uint32_t *>(&two);
}
__device__ __forceinline__ uint32_t rg_pack_two(float first, float second, __half) {
  const __half2 two = __floats2half2_rn(first, second);
  return *reinterpret_cast<const uint32_t *>(&two);
}

template <typename T, int N>
__device__ __forceinline__ rg_packet<T, N> rg_pack(const float (&value)[N]) {
  rg_packet<T, N> packet;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (sizeof(T) == 4) {
      packet.part[i] = __float_as_uint(value[i]);
    } else if (i % 2 == 0) {
      packet.part[i / 2] = rg_pack_two(value[i], value[i + 1], T());
    }
  }
  return packet;
}

#endif
