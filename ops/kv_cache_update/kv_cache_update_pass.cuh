/* Passing through, out of place only: the rows of the caches' gradients that cache_position does not name are
 * copied. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_PASS_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_PASS_CUH

#include "ops/kv_cache_update/kv_cache_update_fixed.cuh"
#include "src/cuda/bulk.cuh"

namespace kv_cache_update {

/* ---- any size: a block takes all rows of its range, and marks those that are named ---- */

/* A thread copies a word of a row of both caches, of HEADS heads at a time. */
template <typename S, int HEADS>
static __device__ __forceinline__ void pass_any_size(const dense_params &p, uint32_t block, char *named) {
  const uint32_t lanes = p.lanes * S::WORDS, group_rows = blockDim.x / lanes;
  const uint32_t lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const uint32_t all_heads = divide(block, p.pass_groups), b = divide(all_heads, p.head_groups);
  const uint32_t first_row = (block - all_heads * p.pass_groups.divisor) * group_rows, m = first_row + row;
  const uint32_t begin = (all_heads - b * p.head_groups.divisor) * p.pass_heads;
  const uint32_t end = min(begin + p.pass_heads, p.heads);
  uint64_t from = offset_of(p.grad_cache_at, b, begin, m) + WORD_BYTES * lane;
  uint64_t to = offset_of(p.grad_cache_input_at, b, begin, m) + WORD_BYTES * lane;
  uint4 value[HEADS][2];
  auto load = [&](uint32_t h) {
#pragma unroll
    for (int k = 0; k < HEADS; ++k) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
        if (h + k < end && is_wanted<S>(p.grad_cache_input[kind])) {
          value[k][kind] = __ldcs(reinterpret_cast<const uint4 *>(p.grad_cache[kind] + from));
        }
      }
      from += p.grad_cache_at.head;
    }
  };
  const bool exists = row < group_rows && m < p.cache_rows;
  /* Whether the row is named is not known yet. In a prefill, which begins at row 0, the named ones are the first. */
  bool loaded = exists && m >= p.new_rows;
  if (loaded) load(begin);
  if (threadIdx.x < group_rows) named[threadIdx.x] = 0;
  __syncthreads();
  mark_named<S::AHEAD>(p, first_row, group_rows, named);
  __syncthreads();
  if (!exists || named[row] != 0) return;
#pragma unroll 1
  for (uint32_t h = begin; h < end; h += HEADS) {
    if (!loaded) load(h);
    loaded = false;
#pragma unroll
    for (int k = 0; k < HEADS; ++k) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
        if (h + k < end && is_wanted<S>(p.grad_cache_input[kind])) {
          *reinterpret_cast<uint4 *>(p.grad_cache_input[kind] + to) = value[k][kind];
        }
      }
      to += p.grad_cache_input_at.head;
    }
  }
}

/* ---- by bulk copies: what the gathering blocks do not answer for (kv_cache_update_fixed.cuh) ---- */

enum { PASS_SLOTS = 4 };

struct pass_space {
  alignas(128) char slot[PASS_SLOTS][KV_CACHE_UPDATE_PASS_BYTES];
  uint64_t barrier[PASS_SLOTS];
};

/* Copies rows from m on of heads [begin, begin + items / 2) by way of the slots, keys and values in turn. One thread
 * comes here. */
struct row_copier {
  const dense_params &p;
  uint32_t slots, barriers, items, bytes, begin, b, parity;

  __device__ __forceinline__ void fetch(uint32_t item, uint32_t slot, uint32_t m) const {
    const uint32_t barrier = barriers + slot * static_cast<uint32_t>(sizeof(uint64_t));
    rg_expect_bytes(barrier, bytes);
    rg_copy_bulk<RG_CACHE_DEFAULT>(slots + slot * KV_CACHE_UPDATE_PASS_BYTES,
                                   p.grad_cache[item % 2] + offset_of(p.grad_cache_at, b, begin + item / 2, m), bytes,
                                   barrier);
  }
  __device__ __forceinline__ void begin_at(uint32_t m) const {
#pragma unroll 1
    for (uint32_t i = 0; i < PASS_SLOTS && i < items; ++i) fetch(i, i, m);
  }
  __device__ __forceinline__ void wait(uint32_t slot, uint32_t phase) const {
    rg_wait_for_phase(barriers + slot * static_cast<uint32_t>(sizeof(uint64_t)), phase);
  }
  /* What begin_at asked for is not used after all. */
  __device__ __forceinline__ void discard() {
#pragma unroll 1
    for (uint32_t i = 0; i < PASS_SLOTS && i < items; ++i) wait(i, parity);
    parity ^= 1;
  }
  __device__ __forceinline__ void copy(uint32_t m) {
    uint32_t slot = 0;
#pragma unroll 1
    for (uint32_t item = 0; item < items; ++item) {
      wait(slot, parity);
      rg_store_bulk(p.grad_cache_input[item % 2] + offset_of(p.grad_cache_input_at, b, begin + item / 2, m),
                    slots + slot * KV_CACHE_UPDATE_PASS_BYTES, bytes);
      rg_commit_stores();
      /* The slot before this one is free when all stores but the last are through with theirs. */
      const uint32_t next = item + PASS_SLOTS - 1;
      if (item > 0 && next < items) {
        rg_wait_for_stores<1>();
        fetch(next, slot == 0 ? PASS_SLOTS - 1 : slot - 1, m);
      }
      if (++slot == PASS_SLOTS) {
        slot = 0;
        parity ^= 1;
      }
    }
    rg_wait_for_stores<0>();
  }
};

/* Which rows they are is not known before cache_position is read: that a prefill begins at row 0 is guessed. */
template <typename S>
static __device__ __forceinline__ void pass_by_bulk(const dense_params &p, uint32_t block, pass_space *space) {
  const uint32_t row_bytes = 2 * VECTOR * S::LANES * sizeof(typename S::T);
  const uint32_t group_rows = KV_CACHE_UPDATE_PASS_BYTES / row_bytes, others = p.cache_rows - p.new_rows;
  const uint32_t all_heads = divide(block, p.pass_groups), b = divide(all_heads, p.head_groups);
  const uint32_t first = (block - all_heads * p.pass_groups.divisor) * group_rows;
  const uint32_t rows = min(group_rows, others - first);
  const uint32_t begin = (all_heads - b * p.head_groups.divisor) * p.pass_heads;
  const uint32_t end = min(begin + p.pass_heads, p.heads);
  const uint32_t guess = first + p.new_rows;
  row_copier copier = {p,
                       rg_shared_address(space->slot),
                       rg_shared_address(space->barrier),
                       2 * (end - begin),
                       rows * row_bytes,
                       begin,
                       b,
                       0};
  if (threadIdx.x == 0) {
#pragma unroll 1
    for (uint32_t i = 0; i < PASS_SLOTS; ++i) {
      rg_make_barrier(copier.barriers + i * static_cast<uint32_t>(sizeof(uint64_t)));
    }
    rg_publish_barriers();
    copier.begin_at(guess);
  }
  const uint32_t gap_at = first_owned(p);
  const bool behind = first >= gap_at, before = first + rows <= gap_at;
  const bool clean = positions_within<S::AHEAD>(p, gap_at);
  if (__builtin_expect(!clean || !(behind || before), 0)) {
    if (threadIdx.x == 0) copier.discard();
    copy_unnamed<S>(p, b, begin, end, {first, rows, gap_at, p.new_rows}, space->slot[0]);
    return;
  }
  if (threadIdx.x != 0) return;
  if (!behind) {
    copier.discard();
    copier.begin_at(first);
  }
  copier.copy(behind ? guess : first);
}

}  // namespace kv_cache_update

#endif
