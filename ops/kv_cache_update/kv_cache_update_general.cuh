/* The general kernels of kv_cache_update: any strides, dtypes, style, rotary_dim and rounding. Three launches, in this
 * order on one stream:
 *
 *   gather  an element a thread: of grad_key_states and grad_value_states, and out of place of the caches' gradients,
 *           which are copied as if nothing were named;
 *   sum     the sums over heads, and over batches where one table serves them all: blocks of PAIRS pairs of columns
 *           times SLICES slices of the terms;
 *   clear   the named rows of the caches' gradients, when every reader of them is through. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_GENERAL_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_GENERAL_CUH

#include "ops/kv_cache_update/kv_cache_update_elements.cuh"
#include "src/cuda/sum.cuh"

namespace kv_cache_update {

typedef kv_cache_update_general_params general_params;

/* The cache row of new row n; -1: none, because the entry is negative or past the end. */
static __device__ __forceinline__ int64_t cache_row(const general_params &p, int64_t n) {
  const int64_t m = rg_load_index(p.cache_position, n * p.cache_position.stride[0]);
  return m < p.cache_rows ? m : -1;
}

static __device__ __forceinline__ void clear_element(const rg_device_tensor &target, int64_t to) {
  switch (target.dtype) {
    case RG_F64:
      static_cast<uint64_t *>(target.data)[to] = 0;
      break;
    case RG_F32:
      static_cast<uint32_t *>(target.data)[to] = 0;
      break;
    default:
      static_cast<uint16_t *>(target.data)[to] = 0;
  }
}

/* ---- gather ---- */

template <typename Real>
static __device__ __forceinline__ rg_pair<Real> rotate_back(rg_dtype product, rg_pair<Real> g, rg_pair<Real> c,
                                                            rg_pair<Real> s) {
  switch (product) {
    case RG_DTYPE_NONE:
      return rg_rotate_transpose<rg_once>(g, c, s);
    case RG_BF16:
      return rg_rotate_transpose<rg_eager<__nv_bfloat16>>(g, c, s);
    case RG_F16:
      return rg_rotate_transpose<rg_eager<__half>>(g, c, s);
    default: /* the dtype of Real */
      return rg_rotate_transpose<rg_eager<float>>(g, c, s);
  }
}

template <typename Real>
static __device__ __forceinline__ void gather_state(const general_params &p, int kind, int64_t i) {
  const rg_device_tensor &target = p.grad_states[kind], &cache = p.grad_cache[kind];
  const element e(p, i, p.new_rows);
  const int64_t m = cache_row(p, e.row), to = rg_offset(target, e.b, e.h, e.row, e.d);
  if (m < 0) return clear_element(target, to);
  if (kind == KV_CACHE_UPDATE_VALUE || e.d >= p.rotary_dim) {
    return copy_element(target, to, cache, rg_offset(cache, e.b, e.h, m, e.d));
  }
  const int64_t half = p.rotary_dim / 2;
  const bool is_second = p.interleaved ? e.d % 2 != 0 : e.d >= half;
  const columns at = pair_columns(p, p.interleaved ? e.d / 2 : e.d % half);
  const rg_pair<Real> back =
      rotate_back<Real>(p.table_product, load_pair<Real>(cache, rg_offset(cache, e.b, e.h, m), 3, at),
                        load_pair<Real>(p.cos, rg_offset(p.cos, e.b, e.row), 2, at),
                        load_pair<Real>(p.sin, rg_offset(p.sin, e.b, e.row), 2, at));
  rg_store(target, to, is_second ? back.second : back.first);
}

template <typename Real>
static __device__ __forceinline__ void general_gather(const general_params &p) {
  const int64_t states = p.batches * p.heads * p.new_rows * p.head_dim;
  const int64_t cached = p.in_place ? 0 : p.batches * p.heads * p.cache_rows * p.head_dim;
  for (int64_t n = first_thread(); n < p.new_rows; n += all_threads()) {
    const int64_t m = rg_load_index(p.cache_position, n * p.cache_position.stride[0]);
    if (m >= p.cache_rows) atomicMax(p.error, RG_CUDA_ERROR_AT(n));
  }
  for (int kind = 0; kind < 2; ++kind) {
    for (int64_t i = first_thread(); i < states && p.grad_states[kind].data != nullptr; i += all_threads()) {
      gather_state<Real>(p, kind, i);
    }
    const rg_device_tensor &target = p.grad_cache_input[kind], &source = p.grad_cache[kind];
    for (int64_t i = first_thread(); i < cached && target.data != nullptr; i += all_threads()) {
      const element e(p, i, p.cache_rows);
      copy_element(target, rg_offset(target, e.b, e.h, e.row, e.d), source, rg_offset(source, e.b, e.h, e.row, e.d));
    }
  }
}

/* ---- sum ---- */

/* Exact for float32 and less, unless `product` says that it is rounded. */
static __device__ __forceinline__ double key_product(rg_dtype product, float a, float b) {
  switch (product) {
    case RG_BF16:
      return rg_eager<__nv_bfloat16>::product(a, b);
    case RG_F16:
      return rg_eager<__half>::product(a, b);
    case RG_F32:
      return rg_eager<float>::product(a, b);
    default:
      return static_cast<double>(a) * static_cast<double>(b);
  }
}
static __device__ __forceinline__ double key_product(rg_dtype, double a, double b) { return __dmul_rn(a, b); }

enum { PAIRS = KV_CACHE_UPDATE_SUM_PAIRS, SLICES = KV_CACHE_UPDATE_SUM_SLICES, SUMS = 4 };

/* Of one pair of columns: grad_cos of its two columns, then grad_sin of both. */
template <typename Real>
struct pair_totals {
  rg_sum<Real> of[SUMS];
};

/* The terms that fall to a slice: heads in order, batch after batch, every SLICES-th. */
template <typename Real>
static __device__ __forceinline__ pair_totals<Real> sum_slice(const general_params &p, int64_t begin, int64_t end,
                                                              int64_t n, int64_t m, columns at, int slice) {
  pair_totals<Real> totals = {};
  int64_t b = begin, h = slice;
  while (p.heads > 0) {
    const int64_t batches = h / p.heads;
    b += batches;
    h -= batches * p.heads;
    if (b >= end) break;
    const rg_device_tensor &cache = p.grad_cache[KV_CACHE_UPDATE_KEY];
    const rg_pair<Real> g = load_pair<Real>(cache, rg_offset(cache, b, h, m), 3, at);
    const rg_pair<Real> k = load_pair<Real>(p.key_states, rg_offset(p.key_states, b, h, n), 3, at);
    totals.of[0].add(key_product(p.key_product, g.first, k.first));
    totals.of[1].add(key_product(p.key_product, g.second, k.second));
    totals.of[2].add(-key_product(p.key_product, g.first, k.second));
    totals.of[3].add(key_product(p.key_product, g.second, k.first));
    h += SLICES;
  }
  return totals;
}

template <typename Real>
static __device__ __forceinline__ void general_sum(const general_params &p) {
  __shared__ pair_totals<Real> share[SLICES][PAIRS];
  const int64_t pairs = p.rotary_dim / 2, pair_blocks = (pairs + PAIRS - 1) / PAIRS;
  const int64_t batches = p.table_batches == p.batches ? 1 : p.batches;
  const int lane = threadIdx.x % PAIRS, slice = threadIdx.x / PAIRS;
  for (int64_t i = blockIdx.x; i < p.table_batches * p.new_rows * pair_blocks; i += gridDim.x) {
    const int64_t row = i / pair_blocks, pair = (i - row * pair_blocks) * PAIRS + lane;
    const int64_t b = row / p.new_rows, n = row - b * p.new_rows, m = cache_row(p, n);
    const columns at = pair_columns(p, pair);
    if (pair < pairs) {
      share[slice][lane] = m < 0 ? pair_totals<Real>{} : sum_slice<Real>(p, b, b + batches, n, m, at, slice);
    }
    __syncthreads();
    if (pair < pairs && slice < SUMS) {
      rg_sum<Real> all = share[0][lane].of[slice];
      for (int k = 1; k < SLICES; ++k) all.add(share[k][lane].of[slice]);
      const rg_device_tensor &target = slice < 2 ? p.grad_cos : p.grad_sin;
      const int64_t to = rg_offset(target, b, n, slice % 2 == 0 ? at.first : at.second);
      if (target.data != nullptr) rg_store(target, to, all.value());
    }
    __syncthreads();
  }
}

/* ---- clear ---- */

static __device__ __forceinline__ void general_clear(const general_params &p) {
  const int64_t elements = p.batches * p.heads * p.new_rows * p.head_dim;
  for (int64_t i = first_thread(); i < elements; i += all_threads()) {
    const element e(p, i, p.new_rows);
    const int64_t m = cache_row(p, e.row);
    for (int kind = 0; kind < 2 && m >= 0; ++kind) {
      const rg_device_tensor &target = p.grad_cache_input[kind];
      if (target.data != nullptr) clear_element(target, rg_offset(target, e.b, e.h, m, e.d));
    }
  }
}

}  // namespace kv_cache_update

#endif
