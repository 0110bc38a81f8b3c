/* Gathering: a block reads the rows of the caches that its new rows name, writes grad_key_states, grad_value_states,
 * grad_cos and grad_sin, and zeroes the named rows of the caches' gradients. Here for any number of batches and heads
 * a block, and for entries of cache_position that are no run. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_CUH

#include "ops/kv_cache_update/kv_cache_update_positions.cuh"
#include "ops/kv_cache_update/kv_cache_update_sums.cuh"

namespace kv_cache_update {

/* What a thread reads for one head of one new row. */
template <typename S>
struct head_pieces {
  pieces<S> grad_key, key;
  share<S> grad_value;
};

template <typename S>
static __device__ __forceinline__ void load_cache_row(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                      uint32_t m, head_pieces<S> *head) {
  const uint64_t offset = offset_of(p.grad_cache_at, b, h, m);
  if (wants_sums<S>(p) || is_wanted<S>(p.grad_states[KEY])) {
    head->grad_key = load_columns<RG_CACHE_STREAM>(at, p.grad_cache[KEY], offset);
  }
  if (is_wanted<S>(p.grad_states[VALUE])) head->grad_value = load_share(at, p.grad_cache[VALUE], offset);
}

template <typename S>
static __device__ __forceinline__ void load_key(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                uint32_t n, head_pieces<S> *head) {
  if (!wants_sums<S>(p)) return;
  head->key = load_columns<RG_CACHE_STREAM>(at, p.key_states, offset_of(p.key_states_at, b, h, n));
}

template <typename S>
static __device__ __forceinline__ void load_tables(const dense_params &p, const place<S> &at, uint32_t b, uint32_t n,
                                                   table_pieces<S> *tables) {
  if (!is_wanted<S>(p.grad_states[KEY])) return;
  const uint64_t offset = offset_of(p.table_at, b, 0, n);
  tables->cosine = load_columns<RG_CACHE_DEFAULT>(at, p.cos, offset);
  tables->sine = load_columns<RG_CACHE_DEFAULT>(at, p.sin, offset);
}

/* One head of new row n; what it adds to the gradients of the tables is added to `sums`. */
template <typename S>
static __device__ __forceinline__ void gather_head(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                   uint32_t n, const head_pieces<S> &head,
                                                   const table_pieces<S> &tables, pair_sums *sums) {
  const uint64_t state = offset_of(p.grad_states_at, b, h, n);
  if (is_wanted<S>(p.grad_states[VALUE])) store_share(at, p.grad_states[VALUE], state, head.grad_value);
  if (is_wanted<S>(p.grad_states[KEY])) {
    store_columns(at, p.grad_states[KEY], state, rotate_back(head.grad_key, tables));
  }
  if (wants_sums<S>(p)) add_products(head.grad_key, head.key, sums);
}

/* This thread's heads of new row n, which is cache row m, of one batch; NO_ROW: none. With `zeroes` the cache row's
 * gradient becomes zero. All threads of the block come here. */
template <typename S, typename F>
static __device__ __forceinline__ void gather_rows(const dense_params &p, const place<S> &at, uint32_t b, uint32_t n,
                                                   int32_t m, bool zeroes, F row_of, sum_space<S> *space) {
  bool begun = false; /* this thread's sums */
  table_pieces<S> tables;
  if (n != NO_ROW && m >= 0) load_tables(p, at, b, n, &tables);
#pragma unroll 1
  for (uint32_t h = at.part; h < p.heads && n != NO_ROW; h += S::PARTS) {
    if (m < 0) {
      zero_states(p, at, b, h, n);
      continue;
    }
    head_pieces<S> head;
    pair_sums sums = {};
    load_cache_row(p, at, b, h, m, &head);
    load_key(p, at, b, h, n, &head);
    gather_head(p, at, b, h, n, head, tables, &sums);
    if (wants_sums<S>(p)) space->add(at, sums, begun);
    if (zeroes) zero_cache_row(p, at, b, h, m);
    begun = true;
  }
  if (!wants_sums<S>(p)) return;
  if (!begun) space->add(at, pair_sums{}, false);
  __syncthreads();
  store_sums(p, at, b, row_of, space);
  __syncthreads();
}

/* Which rows a block gathers: ROWS new rows from first_row on, of batches [begin, end). */
template <typename S>
struct gather_range {
  uint32_t new_rows, first_row, begin, end;
  __device__ __forceinline__ explicit gather_range(const dense_params &p) {
    const uint32_t batches = divide(blockIdx.x, p.row_groups);
    new_rows = p.new_rows;
    first_row = (blockIdx.x - batches * p.row_groups.divisor) * S::ROWS;
    begin = S::ANY_SIZE ? batches * p.gather_batches : batches;
    end = S::ANY_SIZE ? min(begin + p.gather_batches, p.batches) : begin + 1;
  }
  __device__ __forceinline__ uint32_t operator()(uint32_t row) const {
    return first_row + row < new_rows ? first_row + row : static_cast<uint32_t>(NO_ROW);
  }
};

/* ---- in place, where the entries of cache_position are no run ---- */

/* Does another entry name cache row m as well? For the block: of any of its rows. */
template <typename S>
static __device__ __forceinline__ bool names_shared_row(const dense_params &p, const place<S> &at, uint32_t n,
                                                        int32_t m) {
  bool shared = false;
#pragma unroll 1
  for (uint32_t i = at.part * at.lanes + at.lane; i < p.new_rows && m >= 0; i += at.lanes * S::PARTS) {
    shared = shared || (i != n && position_of(p, i) == m);
  }
  return __syncthreads_or(shared);
}

/* For a block that names a row that other entries name too: its new rows one by one. One that is the first to name its
 * row takes all that name it, in turns of ROWS, and zeroes the row when all have read it; the others are left to the
 * block of the first. */
template <typename S>
static __device__ __forceinline__ void gather_shared(const dense_params &p, const place<S> &at,
                                                     const gather_range<S> &range, sum_space<S> *space) {
#pragma unroll 1
  for (uint32_t i = range.first_row; i < range.first_row + S::ROWS && i < p.new_rows; ++i) {
    const int32_t m = cache_row(p, at, i);
    bool earlier = false;
#pragma unroll 1
    for (uint32_t k = threadIdx.x; k < i && m >= 0; k += blockDim.x) earlier = earlier || position_of(p, k) == m;
    if (__syncthreads_or(earlier)) continue;
    const uint32_t end = m < 0 ? i + 1 : p.new_rows;
#pragma unroll 1
    for (uint32_t base = i; base < end; base += S::ROWS) {
      auto row_of = [&](uint32_t row) {
        const uint32_t n = base + row;
        return n == i || (n < end && position_of(p, n) == m) ? n : static_cast<uint32_t>(NO_ROW);
      };
      const uint32_t n = row_of(at.row);
      if (!__syncthreads_or(n != NO_ROW)) continue;
#pragma unroll 1
      for (uint32_t b = range.begin; b < range.end; ++b) gather_rows(p, at, b, n, m, false, row_of, space);
    }
    __syncthreads();
    if (m < 0 || at.row != 0) continue;
#pragma unroll 1
    for (uint32_t b = range.begin; b < range.end; ++b) {
#pragma unroll 1
      for (uint32_t h = at.part; h < p.heads; h += S::PARTS) {
        zero_cache_row(p, at, b, h, m);
      }
    }
  }
}

/* The block's new rows from first_row on. Begins anew, so that its caller need keep nothing. */
template <typename S>
static __device__ __noinline__ void gather_carefully(const dense_params &p, uint32_t first_row, sum_space<S> *space) {
  const place<S> at(p);
  gather_range<S> range(p);
  range.first_row = first_row;
  const uint32_t n = range(at.row);
  const int32_t m = n == NO_ROW ? -1 : cache_row(p, at, n);
  if (names_shared_row(p, at, n, m)) return gather_shared(p, at, range, space);
#pragma unroll 1
  for (uint32_t b = range.begin; b < range.end; ++b) gather_rows(p, at, b, n, m, true, range, space);
}

/* ---- any size ---- */

template <typename S>
static __device__ __forceinline__ void gather_any_size(const dense_params &p, sum_space<S> *space) {
  const place<S> at(p);
  const gather_range<S> range(p);
  const uint32_t n = range(at.row);
  const int32_t m = n == NO_ROW ? -1 : cache_row(p, at, n);
  if (S::IN_PLACE && p.new_rows > 1 && !positions_run<S::AHEAD>(p)) return gather_carefully(p, range.first_row, space);
#pragma unroll 1
  for (uint32_t b = range.begin; b < range.end; ++b) gather_rows(p, at, b, n, m, true, range, space);
}

}  // namespace kv_cache_update

#endif
