/* The tuned kernels of kv_cache_update_forward: rows of contiguous columns, all of one dtype, rotate_half over the whole
 * row. One launch, in which each byte moves once:
 *
 *   in place      a block takes some new rows and writes those that no later one replaces;
 *   out of place  a block takes some cache rows and fills each from its last new row or else from the cache.
 *
 * Either way a cache row is written by one thread group alone. Which rows cache_position names takes a look through all
 * of it; what is to be moved is asked for before that, by a guess where it depends on the outcome, so that the latency
 * of memory is paid once. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_DENSE_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_DENSE_CUH

#include "ops/kv_cache_update/kv_cache_update_forward_cuda.h"
#include "ops/kv_cache_update/kv_cache_update_pieces.cuh"

namespace kv_cache_update {

typedef kv_cache_update_forward_dense_params dense_params;

/* How a block is cut up. A thread has VECTOR columns of the first half of a row and the VECTOR columns of the second half
 * that they are paired with. */
template <typename T_, int VECTOR_, int LANES_, bool ANY_SIZE_, int AHEAD_>
struct block_shape {
  typedef T_ T;
  enum {
    VECTOR = VECTOR_,
    LANES = LANES_,       /* threads of a row; 0: known at run time */
    ANY_SIZE = ANY_SIZE_, /* any number of heads, and a cache may not be wanted; else both are */
    AHEAD = AHEAD_        /* see for_each_position */
  };
};

/* In place: ROWS new rows, and PARTS parts that the heads are dealt out to: part k has heads k, k + PARTS, ... */
template <typename T, int VECTOR, int LANES, int ROWS_, int PARTS_, bool ANY_SIZE, int AHEAD>
struct new_rows_shape : block_shape<T, VECTOR, LANES, ANY_SIZE, AHEAD> {
  enum { ROWS = ROWS_, PARTS = PARTS_ };
};

/* Out of place: as many cache rows as the block has threads for, HEADS heads at a time. */
template <typename T, int VECTOR, int LANES, int HEADS_, bool ANY_SIZE, int AHEAD>
struct cache_rows_shape : block_shape<T, VECTOR, LANES, ANY_SIZE, AHEAD> {
  enum { HEADS = HEADS_ };
};

/* ---- rows in registers ---- */

template <typename S>
struct table_pieces {
  pieces<S> cosine, sine;
};

/* Of batch b, new row n. `columns`: this thread's offset in a row, in bytes. */
template <typename S>
static __device__ __forceinline__ table_pieces<S> load_tables(const dense_params &p, uint32_t lanes, uint32_t b,
                                                              uint32_t n, uint32_t columns) {
  table_pieces<S> tables;
  if (!is_wanted<S>(p.cache[KV_CACHE_UPDATE_KEY])) return tables;
  const uint64_t offset = offset_of(p.table_at, b, 0, n) + columns;
  tables.cosine = load_pieces<RG_CACHE_DEFAULT, S>(lanes, p.cos, offset);
  tables.sine = load_pieces<RG_CACHE_DEFAULT, S>(lanes, p.sin, offset);
  return tables;
}

template <typename S>
static __device__ __forceinline__ pieces<S> rotate(const pieces<S> &key, const table_pieces<S> &tables) {
  pieces<S> turned;
#pragma unroll
  for (int q = 0; q < S::VECTOR / 4; ++q) {
    float k1[4], k2[4], c1[4], c2[4], s1[4], s2[4], first[4], second[4];
    unpack_quad(key.first, q, k1);
    unpack_quad(key.second, q, k2);
    unpack_quad(tables.cosine.first, q, c1);
    unpack_quad(tables.cosine.second, q, c2);
    unpack_quad(tables.sine.first, q, s1);
    unpack_quad(tables.sine.second, q, s2);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const rg_pair<float> k = {k1[i], k2[i]}, c = {c1[i], c2[i]}, s = {s1[i], s2[i]};
      const rg_pair<float> pair = rg_rotate<rg_once>(k, c, s);
      first[i] = pair.first;
      second[i] = pair.second;
    }
    pack_quad(&turned.first, q, first);
    pack_quad(&turned.second, q, second);
  }
  return turned;
}

/* ---- in place ---- */

/* Sets bit r of `replaced` where a later entry names the same cache row as the block's new row r. Entries that are in
 * pairs are compared as they lie in memory: to make a position of one would be to wait for it before the others are asked
 * for. */
template <typename S>
static __device__ __forceinline__ void find_replaced(const dense_params &p, uint32_t first_row, uint32_t *replaced) {
  uint32_t found = 0;
  if (p.positions_in_pairs) {
    const uint2 *entry = reinterpret_cast<const uint2 *>(p.cache_position);
    uint2 named[S::ROWS];
#pragma unroll
    for (int r = 0; r < S::ROWS; ++r) {
      named[r] = first_row + r < p.new_rows ? entry[first_row + r] : make_uint2(UINT32_MAX, UINT32_MAX);
    }
    for_each_position<S::AHEAD>(p, first_row, [&](uint32_t n, uint32_t lower, uint32_t upper) {
#pragma unroll
      for (int r = 0; r < S::ROWS; ++r) {
        if (lower == named[r].x && upper == named[r].y && n > first_row + r) found |= 1u << r;
      }
    });
  } else {
#pragma unroll 1
    for (uint32_t n = first_row + 1 + threadIdx.x; n < p.new_rows; n += blockDim.x) {
      const int32_t position = position_of(p, n);
#pragma unroll 1
      for (uint32_t r = 0; r < S::ROWS && first_row + r < n; ++r) {
        if (position == position_of(p, first_row + r)) found |= 1u << r;
      }
    }
  }
  if (found != 0) atomicOr(replaced, found);
}

template <typename S>
static __device__ __forceinline__ void in_place(const dense_params &p) {
  __shared__ uint32_t replaced;
  const place<S> at(p);
  const uint32_t columns = at.lane * static_cast<uint32_t>(S::VECTOR * sizeof(typename S::T));
  const uint32_t batches = divide(blockIdx.x, p.row_groups);
  const uint32_t first_row = (blockIdx.x - batches * p.row_groups.divisor) * S::ROWS, n = first_row + at.row;
  const uint32_t begin = batches * p.block_batches, end = min(begin + p.block_batches, p.batches);
  pieces<S> state[2];
  table_pieces<S> tables;
  auto load = [&](uint32_t b, uint32_t h) {
    const uint64_t from = offset_of(p.states_at, b, h, n) + columns;
#pragma unroll
    for (int kind = 0; kind < 2; ++kind) {
      if (is_wanted<S>(p.cache[kind])) state[kind] = load_pieces<RG_CACHE_STREAM, S>(at.lanes, p.states[kind], from);
    }
    tables = load_tables<S>(p, at.lanes, b, n, columns);
  };
  bool loaded = n < p.new_rows && at.part < p.heads;
  if (loaded) load(begin, at.part);
  if (p.new_rows > 1) {
    if (threadIdx.x == 0) replaced = 0;
    __syncthreads();
    find_replaced<S>(p, first_row, &replaced);
    __syncthreads();
  }
  const int32_t m = n < p.new_rows ? cache_row<S>(p, at, n) : -1;
  if (m < 0 || (p.new_rows > 1 && (replaced >> at.row & 1) != 0)) return;
#pragma unroll 1
  for (uint32_t b = begin; b < end; ++b) {
#pragma unroll 1
    for (uint32_t h = at.part; h < p.heads; h += S::PARTS) {
      if (!loaded) load(b, h);
      loaded = false;
      const uint64_t to = offset_of(p.cache_at, b, h, m) + columns;
      char *keys = p.cache[KV_CACHE_UPDATE_KEY], *values = p.cache[KV_CACHE_UPDATE_VALUE];
      if (is_wanted<S>(values)) store_pieces<S>(at.lanes, values, to, state[KV_CACHE_UPDATE_VALUE]);
      if (is_wanted<S>(keys)) store_pieces<S>(at.lanes, keys, to, rotate<S>(state[KV_CACHE_UPDATE_KEY], tables));
      if (!S::ANY_SIZE) break;
    }
  }
}

/* ---- out of place ---- */

enum : int32_t { NO_NEW_ROW = -1 };

/* Gives all entries of cache_position to take(n, position) of the block's threads. */
template <int AHEAD, typename F>
static __device__ __forceinline__ void each_position(const dense_params &p, F take) {
  if (p.positions_in_pairs) {
    return for_each_position<AHEAD>(p, 0, [&](uint32_t n, uint32_t lower, uint32_t upper) {
      take(n, narrow_position(static_cast<int32_t>(lower), static_cast<int32_t>(upper)));
    });
  }
#pragma unroll 1
  for (uint32_t n = threadIdx.x; n < p.new_rows; n += blockDim.x) take(n, position_of(p, n));
}

template <typename S>
static __device__ __forceinline__ void out_of_place(const dense_params &p) {
  __shared__ int32_t last[KV_CACHE_UPDATE_FORWARD_MOST_THREADS]; /* of the block's cache rows: the last new row */
  const uint32_t lanes = S::LANES > 0 ? S::LANES : p.lanes, lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const uint32_t columns = lane * static_cast<uint32_t>(S::VECTOR * sizeof(typename S::T));
  const uint32_t rows = blockDim.x / lanes;
  const uint32_t all_heads = divide(blockIdx.x, p.row_groups), b = divide(all_heads, p.head_groups);
  const uint32_t first_row = (blockIdx.x - all_heads * p.row_groups.divisor) * rows, m = first_row + row;
  const uint32_t begin = (all_heads - b * p.head_groups.divisor) * p.block_heads;
  const uint32_t end = min(begin + p.block_heads, p.heads);
  const bool exists = m < p.cache_rows;
  /* Not known yet. In a prefill, which begins at row 0, it is this: a wrong guess costs a read. */
  int32_t n = m < p.new_rows ? static_cast<int32_t>(m) : NO_NEW_ROW;
  pieces<S> piece[S::HEADS][2];
  table_pieces<S> tables;
  auto load = [&](uint32_t h) {
    const bool is_new = n != NO_NEW_ROW;
    const strides &at = is_new ? p.states_at : p.cache_input_at;
    const char *keys = is_new ? p.states[KV_CACHE_UPDATE_KEY] : p.cache_input[KV_CACHE_UPDATE_KEY];
    const char *values = is_new ? p.states[KV_CACHE_UPDATE_VALUE] : p.cache_input[KV_CACHE_UPDATE_VALUE];
    uint64_t from = offset_of(at, b, h, is_new ? n : m) + columns;
#pragma unroll
    for (int k = 0; k < S::HEADS; ++k, from += at.head) {
      if (S::HEADS > 1 && h + k >= end) break;
      if (is_wanted<S>(p.cache[KV_CACHE_UPDATE_KEY])) {
        piece[k][KV_CACHE_UPDATE_KEY] = load_pieces<RG_CACHE_STREAM, S>(lanes, keys, from);
      }
      if (is_wanted<S>(p.cache[KV_CACHE_UPDATE_VALUE])) {
        piece[k][KV_CACHE_UPDATE_VALUE] = load_pieces<RG_CACHE_STREAM, S>(lanes, values, from);
      }
    }
  };
  if (exists) {
    load(begin);
    if (n != NO_NEW_ROW) tables = load_tables<S>(p, lanes, b, n, columns);
  }
  if (threadIdx.x < rows) last[threadIdx.x] = NO_NEW_ROW;
  __syncthreads();
  each_position<S::AHEAD>(p, [&](uint32_t i, int32_t position) {
    if (position >= static_cast<int32_t>(p.cache_rows)) {
      atomicMax(p.error, RG_CUDA_ERROR_AT(i));
    } else if (static_cast<uint32_t>(position) - first_row < rows) {
      atomicMax(&last[static_cast<uint32_t>(position) - first_row], static_cast<int32_t>(i));
    }
  });
  __syncthreads();
  if (!exists) return;
  bool loaded = n == last[row];
  if (__builtin_expect(!loaded, 0)) {
    n = last[row];
    if (n != NO_NEW_ROW) tables = load_tables<S>(p, lanes, b, n, columns);
  }
#pragma unroll 1
  for (uint32_t h = begin; h < end; h += S::HEADS) {
    if (!loaded) load(h);
    loaded = false;
    uint64_t to = offset_of(p.cache_at, b, h, m) + columns;
#pragma unroll
    for (int k = 0; k < S::HEADS; ++k, to += p.cache_at.head) {
      if (S::HEADS > 1 && h + k >= end) break;
      if (is_wanted<S>(p.cache[KV_CACHE_UPDATE_VALUE])) {
        store_pieces<S>(lanes, p.cache[KV_CACHE_UPDATE_VALUE], to, piece[k][KV_CACHE_UPDATE_VALUE]);
      }
      if (is_wanted<S>(p.cache[KV_CACHE_UPDATE_KEY])) {
        pieces<S> key = piece[k][KV_CACHE_UPDATE_KEY];
        if (n != NO_NEW_ROW) key = rotate<S>(key, tables);
        store_pieces<S>(lanes, p.cache[KV_CACHE_UPDATE_KEY], to, key);
      }
    }
  }
}

}  // namespace kv_cache_update

#endif
