/* Gathering for the sizes that are common and measured: one batch a block, at most PARTS * HEADS heads, every output.
 * Many of these sizes take a few microseconds, in which the code itself must come from memory too: what is short is
 * fast here.
 *
 * Out of place every cache row has one block that answers for it, so that no block need look through all entries to
 * know that a row of its own is named: with the entries a run from `first_owned` on, new row i is cache row
 * first_owned + i, and the block that gathers the one answers for the other; all rows beside those are left to the
 * blocks that copy (kv_cache_update_pass.cuh). Where the entries are no such run, those rows that nobody names are
 * copied by the block that answers for them. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FIXED_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FIXED_CUH

#include "ops/kv_cache_update/kv_cache_update_gather.cuh"

namespace kv_cache_update {

/* The first of the p.new_rows cache rows, at most as many as there are, that the gathering blocks answer for. */
static __device__ __forceinline__ uint32_t first_owned(const dense_params &p) {
  return min(static_cast<uint32_t>(max(position_of(p, 0), 0)), p.cache_rows - p.new_rows);
}

/* Some cache rows that a block answers for: `rows` from `first` on, where from `gap_at` on `gap` rows are left out. */
struct owned_rows {
  uint32_t first, rows, gap_at, gap;
  __device__ __forceinline__ uint32_t row(uint32_t i) const { return first + i + (first + i >= gap_at ? gap : 0); }
  /* NO_ROW and other large numbers for a row that is none of them. */
  __device__ __forceinline__ uint32_t index_of(uint32_t m) const {
    if (m < gap_at) return m - first;
    return m - gap_at < gap ? static_cast<uint32_t>(NO_ROW) : m - gap - first;
  }
};

/* Copies those of the rows that no entry names, of heads [begin, end) of batch b. `named`: a byte of shared memory for
 * each row. All threads of the block come here. */
template <typename S>
static __device__ __noinline__ void copy_unnamed(const dense_params &p, uint32_t b, uint32_t begin, uint32_t end,
                                                 owned_rows owned, char *named) {
  const uint32_t words = 2 * VECTOR * S::LANES * sizeof(typename S::T) / WORD_BYTES; /* of a row */
  __syncthreads();
  if (threadIdx.x < owned.rows) named[threadIdx.x] = 0;
  __syncthreads();
#pragma unroll 1
  for (uint32_t n = threadIdx.x; n < p.new_rows; n += blockDim.x) {
    const uint32_t i = owned.index_of(position_of(p, n));
    if (i < owned.rows) named[i] = 1;
  }
  __syncthreads();
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < owned.rows * (end - begin) * words; i += blockDim.x) {
    const uint32_t word = i % words, h = begin + i / words / owned.rows, k = i / words % owned.rows;
    if (named[k] != 0) continue;
    const uint64_t from = offset_of(p.grad_cache_at, b, h, owned.row(k)) + word * WORD_BYTES;
    const uint64_t to = offset_of(p.grad_cache_input_at, b, h, owned.row(k)) + word * WORD_BYTES;
#pragma unroll
    for (int kind = 0; kind < 2; ++kind) {
      *reinterpret_cast<uint4 *>(p.grad_cache_input[kind] + to) =
          __ldcs(reinterpret_cast<const uint4 *>(p.grad_cache[kind] + from));
    }
  }
}

/* Every load that can be comes before anything waits. Which cache row it is is not known yet, but a prefill begins at
 * row 0, so that it is row n: a wrong guess costs a read, a right one saves the latency of memory. */
template <typename S>
static __device__ __forceinline__ void gather_fixed(const dense_params &p, sum_space<S> *space) {
  typedef typename S::T T;
  const place<S> at(p);
  const gather_range<S> range(p);
  const uint32_t b = range.begin, n = range(at.row), none = S::PARTS * S::HEADS;
  const uint32_t first = n != NO_ROW ? at.part : none, heads = min(p.heads, none);
  head_pieces<S> head[S::HEADS];
  table_pieces<S> tables;
  pair_sums sums = {};
  int32_t m = -1;
  uint32_t owned = 0;
  auto load_heads = [&](uint32_t row) {
#pragma unroll
    for (int k = 0; k < S::HEADS; ++k) {
      if (first + k * S::PARTS < heads) load_cache_row(p, at, b, first + k * S::PARTS, row, &head[k]);
    }
  };
  if (n < p.cache_rows) load_heads(n);
#pragma unroll
  for (int k = 0; k < S::HEADS; ++k) {
    if (first + k * S::PARTS < heads) load_key(p, at, b, first + k * S::PARTS, n, &head[k]);
  }
  if (n != NO_ROW) {
    load_tables(p, at, b, n, &tables);
    m = cache_row(p, at, n);
    if (!S::IN_PLACE) owned = first_owned(p) + n;
  }
  if (S::IN_PLACE && p.new_rows > 1 && !positions_run<S::AHEAD>(p)) return gather_carefully(p, range.first_row, space);
  if (__builtin_expect(m != static_cast<int32_t>(n) && m >= 0, 0)) load_heads(m);
#pragma unroll
  for (int k = 0; k < S::HEADS; ++k) {
    const uint32_t h = first + k * S::PARTS;
    if (h >= heads) continue;
    if (__builtin_expect(m >= 0, 1)) {
      gather_head(p, at, b, h, n, head[k], tables, &sums);
      zero_cache_row(p, at, b, h, m);
    } else {
      zero_states(p, at, b, h, n);
    }
  }
  space->add(at, sums, false);
  /* A row that this block answers for may be one that nobody names. */
  const bool strays = n != NO_ROW && m != static_cast<int32_t>(owned);
  if (S::IN_PLACE) {
    __syncthreads();
    store_sums(p, at, b, range, space);
  } else {
    const bool any_strays = __syncthreads_or(strays);
    store_sums(p, at, b, range, space);
    if (!any_strays) return;
    const uint32_t rows = min(static_cast<uint32_t>(S::ROWS), p.new_rows - range.first_row);
    copy_unnamed<S>(p, b, 0, p.heads, {first_owned(p) + range.first_row, rows, 0, 0}, reinterpret_cast<char *>(space));
  }
}

}  // namespace kv_cache_update

#endif
