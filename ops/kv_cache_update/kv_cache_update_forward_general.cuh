/* The general kernels of kv_cache_update_forward: any strides, dtypes, style and rotary_dim. In this order on one stream:
 *
 *   copy    out of place: the caches as they are, an element a thread;
 *   mark    finds the last new row that names each cache row;
 *   put     writes the new rows that are the last to name theirs, an element a thread;
 *   unmark  clears what mark has written.
 *
 * Of a few new rows put sees for itself which is the last. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_GENERAL_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_GENERAL_CUH

#include "ops/kv_cache_update/kv_cache_update_elements.cuh"
#include "ops/kv_cache_update/kv_cache_update_forward_cuda.h"

namespace kv_cache_update {

typedef kv_cache_update_forward_general_params forward_params;

static __device__ __forceinline__ int64_t entry(const forward_params &p, int64_t n) {
  return rg_load_index(p.cache_position, n * p.cache_position.stride[0]);
}

/* Is it one of the launch's cache rows? */
static __device__ __forceinline__ bool is_treated(const forward_params &p, int64_t m) {
  return m >= p.first_row && m - p.first_row < p.rows;
}

static __device__ __forceinline__ bool is_last(const forward_params &p, int64_t n, int64_t m) {
  if (p.last != nullptr) return p.last[m - p.first_row] == static_cast<unsigned long long>(n) + 1;
  for (int64_t later = n + 1; later < p.new_rows; ++later) {
    if (entry(p, later) == m) return false;
  }
  return true;
}

static __device__ __forceinline__ void general_copy(const forward_params &p) {
  const int64_t elements = p.batches * p.heads * p.cache_rows * p.head_dim;
  for (int kind = 0; kind < 2; ++kind) {
    const rg_device_tensor &target = p.cache[kind], &source = p.cache_input[kind];
    for (int64_t i = first_thread(); i < elements && target.data != nullptr; i += all_threads()) {
      const element e(p, i, p.cache_rows);
      copy_element(target, rg_offset(target, e.b, e.h, e.row, e.d), source, rg_offset(source, e.b, e.h, e.row, e.d));
    }
  }
}

static __device__ __forceinline__ void general_mark(const forward_params &p) {
  for (int64_t n = first_thread(); n < p.new_rows; n += all_threads()) {
    const int64_t m = entry(p, n);
    if (is_treated(p, m)) atomicMax(&p.last[m - p.first_row], static_cast<unsigned long long>(n) + 1);
  }
}

static __device__ __forceinline__ void general_unmark(const forward_params &p) {
  for (int64_t n = first_thread(); n < p.new_rows; n += all_threads()) {
    const int64_t m = entry(p, n);
    if (is_treated(p, m)) p.last[m - p.first_row] = 0;
  }
}

template <typename Real>
static __device__ __forceinline__ void put_key(const forward_params &p, const element &e, int64_t to) {
  const rg_device_tensor &target = p.cache[KV_CACHE_UPDATE_KEY], &source = p.states[KV_CACHE_UPDATE_KEY];
  const int64_t half = p.rotary_dim / 2;
  const bool is_second = p.interleaved ? e.d % 2 != 0 : e.d >= half;
  const columns at = pair_columns(p, p.interleaved ? e.d / 2 : e.d % half);
  const rg_pair<Real> turned = rg_rotate<rg_once>(load_pair<Real>(source, rg_offset(source, e.b, e.h, e.row), 3, at),
                                                  load_pair<Real>(p.cos, rg_offset(p.cos, e.b, e.row), 2, at),
                                                  load_pair<Real>(p.sin, rg_offset(p.sin, e.b, e.row), 2, at));
  rg_store(target, to, is_second ? turned.second : turned.first);
}

/* The launch of the first cache rows also tells of entries past the end. */
template <typename Real>
static __device__ __forceinline__ void general_put(const forward_params &p) {
  for (int64_t n = first_thread(); n < p.new_rows && p.first_row == 0; n += all_threads()) {
    if (entry(p, n) >= p.cache_rows) atomicMax(p.error, RG_CUDA_ERROR_AT(n));
  }
  const int64_t elements = p.batches * p.heads * p.new_rows * p.head_dim;
  for (int64_t i = first_thread(); i < elements; i += all_threads()) {
    const element e(p, i, p.new_rows);
    const int64_t m = entry(p, e.row);
    if (!is_treated(p, m) || !is_last(p, e.row, m)) continue;
    for (int kind = 0; kind < 2; ++kind) {
      const rg_device_tensor &target = p.cache[kind], &source = p.states[kind];
      if (target.data == nullptr) continue;
      const int64_t to = rg_offset(target, e.b, e.h, m, e.d);
      if (kind == KV_CACHE_UPDATE_VALUE || e.d >= p.rotary_dim) {
        copy_element(target, to, source, rg_offset(source, e.b, e.h, e.row, e.d));
      } else {
        put_key<Real>(p, e, to);
      }
    }
  }
}

}  // namespace kv_cache_update

#endif
