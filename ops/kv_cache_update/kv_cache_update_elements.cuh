/* What the general kernels of both directions share: elements and pairs of tensors of any strides and dtypes. P is the
 * kernel's parameters. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_ELEMENTS_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_ELEMENTS_CUH

#include "ops/kv_cache_update/kv_cache_update_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

namespace kv_cache_update {

static __device__ __forceinline__ int64_t first_thread() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
static __device__ __forceinline__ int64_t all_threads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/* Elements move as bits, so that the payload of a NaN survives. */
static __device__ __forceinline__ void copy_element(const rg_device_tensor &target, int64_t to,
                                                    const rg_device_tensor &source, int64_t from) {
  switch (target.dtype) {
    case RG_F64:
      static_cast<uint64_t *>(target.data)[to] = static_cast<const uint64_t *>(source.data)[from];
      break;
    case RG_F32:
      static_cast<uint32_t *>(target.data)[to] = static_cast<const uint32_t *>(source.data)[from];
      break;
    default:
      static_cast<uint16_t *>(target.data)[to] = static_cast<const uint16_t *>(source.data)[from];
  }
}

/* Place of an element of a tensor [B, Hk, rows, D]. */
struct element {
  int64_t b, h, row, d;
  template <typename P>
  __device__ __forceinline__ element(const P &p, int64_t i, int64_t rows) {
    const int64_t all_rows = i / p.head_dim, all_heads = all_rows / rows;
    d = i - all_rows * p.head_dim;
    row = all_rows - all_heads * rows;
    b = all_heads / p.heads;
    h = all_heads - b * p.heads;
  }
};

/* The columns of a pair. */
struct columns {
  int64_t first, second;
};

template <typename P>
static __device__ __forceinline__ columns pair_columns(const P &p, int64_t pair) {
  if (p.interleaved) return {2 * pair, 2 * pair + 1};
  return {pair, pair + p.rotary_dim / 2};
}

template <typename Real>
static __device__ __forceinline__ rg_pair<Real> load_pair(const rg_device_tensor &tensor, int64_t row, int axis,
                                                          columns at) {
  return {rg_load<Real>(tensor, row + at.first * tensor.stride[axis]),
          rg_load<Real>(tensor, row + at.second * tensor.stride[axis])};
}

}  // namespace kv_cache_update

#endif
