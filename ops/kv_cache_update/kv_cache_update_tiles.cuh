/* Gathering in place by bulk copies, for many new rows: a tile of neighbouring new rows passes head by head through
 * shared memory, several heads ahead, in pieces that are contiguous in memory. The sums over heads stay in registers. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_TILES_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_TILES_CUH

#include "ops/kv_cache_update/kv_cache_update_gather.cuh"
#include "src/cuda/bulk.cuh"

namespace kv_cache_update {

enum { TILE_STAGES = 6 };

/* Of one head: the tile's rows of both caches and of key_states. */
struct tile_stage {
  char grad_cache[2][KV_CACHE_UPDATE_TILE_BYTES], key[KV_CACHE_UPDATE_TILE_BYTES];
};

struct tile_space {
  alignas(128) tile_stage stage[TILE_STAGES];
  alignas(128) char zeros[KV_CACHE_UPDATE_TILE_BYTES];
  uint64_t barrier[TILE_STAGES];
};

/* The copies of a tile's `bytes`: new rows from n on, cache rows from m on. One thread uses it. */
struct tile_copier {
  const dense_params &p;
  uint32_t stages, zeros, barriers, b, n, m, bytes;

  __device__ __forceinline__ uint32_t barrier(uint32_t stage) const {
    return barriers + stage * static_cast<uint32_t>(sizeof(uint64_t));
  }
  __device__ __forceinline__ void fetch(uint32_t h, uint32_t stage) const {
    const uint32_t to = stages + stage * static_cast<uint32_t>(sizeof(tile_stage));
    const uint64_t offset = offset_of(p.grad_cache_at, b, h, m);
    rg_expect_bytes(barrier(stage), 3 * bytes);
    rg_copy_bulk<RG_CACHE_DEFAULT>(to, p.grad_cache[KEY] + offset, bytes, barrier(stage));
    rg_copy_bulk<RG_CACHE_DEFAULT>(to + KV_CACHE_UPDATE_TILE_BYTES, p.grad_cache[VALUE] + offset, bytes,
                                   barrier(stage));
    rg_copy_bulk<RG_CACHE_DEFAULT>(to + 2 * KV_CACHE_UPDATE_TILE_BYTES,
                                   p.key_states + offset_of(p.key_states_at, b, h, n), bytes, barrier(stage));
  }
  __device__ __forceinline__ void begin() const {
#pragma unroll 1
    for (uint32_t h = 0; h < TILE_STAGES && h < p.heads; ++h) fetch(h, h);
  }
  /* grad_value_states, and the named rows' zeros. */
  __device__ __forceinline__ void store(uint32_t h, uint32_t stage) const {
    const uint64_t cleared = offset_of(p.grad_cache_input_at, b, h, m);
    rg_store_bulk(p.grad_states[VALUE] + offset_of(p.grad_states_at, b, h, n),
                  stages + stage * static_cast<uint32_t>(sizeof(tile_stage)) + KV_CACHE_UPDATE_TILE_BYTES, bytes);
    rg_store_bulk(p.grad_cache_input[KEY] + cleared, zeros, bytes);
    rg_store_bulk(p.grad_cache_input[VALUE] + cleared, zeros, bytes);
    rg_commit_stores();
  }
};

template <typename S>
static __device__ __forceinline__ pieces<S> read_pieces(const char *row, uint32_t lane, uint32_t lanes) {
  typedef typename S::T T;
  pieces<S> read;
  const T *from = reinterpret_cast<const T *>(row) + lane * VECTOR;
  read.first.word = *reinterpret_cast<const typename rg_word<VECTOR * sizeof(T)>::type *>(from);
  read.second.word = *reinterpret_cast<const typename rg_word<VECTOR * sizeof(T)>::type *>(from + lanes * VECTOR);
  return read;
}

/* S: a row a block, its PARTS the rows of a tile here. */
template <typename S>
static __device__ __forceinline__ void gather_tile(const dense_params &p, tile_space *space) {
  typedef typename S::T T;
  static_assert(sizeof(sum_space<S>) <= sizeof space->stage, "a careful gathering takes the place of the stages");
  const uint32_t row_bytes = 2 * VECTOR * S::LANES * sizeof(T), tile_rows = S::PARTS;
  const uint32_t lane = threadIdx.x % S::LANES, row = threadIdx.x / S::LANES, b = divide(blockIdx.x, p.row_groups);
  const uint32_t first = (blockIdx.x - b * p.row_groups.divisor) * tile_rows, n = first + row;
  const uint32_t rows = min(tile_rows, p.new_rows - first);
  const bool exists = row < rows, leads = threadIdx.x == 0;
  const place<S> at(p); /* its row is always the first */
  /* As a prefill begins at row 0, cache row n is fetched for new row n before its entry is known. */
  tile_copier copier = {p,
                        rg_shared_address(space->stage),
                        rg_shared_address(space->zeros),
                        rg_shared_address(space->barrier),
                        b,
                        first,
                        first,
                        rows * row_bytes};
  uint32_t parity = 0;
  if (leads) {
#pragma unroll 1
    for (uint32_t stage = 0; stage < TILE_STAGES; ++stage) rg_make_barrier(copier.barrier(stage));
    rg_publish_barriers();
    copier.begin();
  }
  table_pieces<S> tables;
  if (exists) load_tables(p, at, b, n, &tables);
  reinterpret_cast<uint4 *>(space->zeros)[threadIdx.x] = make_uint4(0, 0, 0, 0);
#pragma unroll
  for (int i = 1; i < S::WORDS; ++i) {
    reinterpret_cast<uint4 *>(space->zeros)[threadIdx.x + i * S::THREADS] = make_uint4(0, 0, 0, 0);
  }
  rg_publish_shared();
  const uint32_t begin = position_of(p, 0);
  /* Its barrier publishes the zeros too. */
  const bool run = positions_run<S::AHEAD>(p) && begin <= p.cache_rows - p.new_rows;
  if (__builtin_expect(!run || begin != 0, 0)) {
    if (leads) {
#pragma unroll 1
      for (uint32_t h = 0; h < TILE_STAGES && h < p.heads; ++h) rg_wait_for_phase(copier.barrier(h), 0);
    }
    /* Nothing arrives any more. While the first phase lasts, waiting for the second one's parity would not wait. */
    __syncthreads();
    if (!run) {
#pragma unroll 1
      for (uint32_t i = 0; i < rows; ++i) {
        gather_carefully(p, first + i, reinterpret_cast<sum_space<S> *>(space->stage));
        __syncthreads();
      }
      return;
    }
    parity = 1;
    copier.m = begin + first;
    if (leads) copier.begin();
  }
  pair_sums sums = {};
  uint32_t stage = 0;
#pragma unroll 1
  for (uint32_t h = 0; h < p.heads; ++h) {
    rg_wait_for_phase(copier.barrier(stage), parity);
    const tile_stage &filled = space->stage[stage];
    pieces<S> rotated;
    if (exists) {
      const pieces<S> grad_key = read_pieces<S>(filled.grad_cache[KEY] + row * row_bytes, lane, S::LANES);
      add_products(grad_key, read_pieces<S>(filled.key + row * row_bytes, lane, S::LANES), &sums);
      rotated = rotate_back(grad_key, tables);
    }
    __syncthreads(); /* everyone has read */
    if (leads) {
      copier.store(h, stage);
      const uint32_t next = h + TILE_STAGES - 1;
      if (h > 0 && next < p.heads) {
        rg_wait_for_stores<1>();
        copier.fetch(next, stage == 0 ? TILE_STAGES - 1 : stage - 1);
      }
    }
    if (exists) store_columns(at, p.grad_states[KEY], offset_of(p.grad_states_at, b, h, n), rotated);
    if (++stage == TILE_STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (exists) {
    const uint64_t to = offset_of(p.grad_table_at, b, 0, n);
    pieces<S> packed;
    packed.first = rg_pack<T, VECTOR>(sums.cos_first);
    packed.second = rg_pack<T, VECTOR>(sums.cos_second);
    store_columns(at, p.grad_cos, to, packed);
    packed.first = rg_pack<T, VECTOR>(sums.sin_first);
    packed.second = rg_pack<T, VECTOR>(sums.sin_second);
    store_columns(at, p.grad_sin, to, packed);
  }
  if (leads) rg_wait_for_stores<0>();
}

}  // namespace kv_cache_update

#endif
