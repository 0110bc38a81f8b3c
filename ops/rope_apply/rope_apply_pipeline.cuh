/* The tuned kernels for compute capability 9.0 and later, for the layout of rope_apply_fixed.cuh where, besides, the
 * positions of each head are contiguous. Bulk copies bring them to shared memory several heads ahead: so much is on its
 * way that the memory never waits, and no registers are spent on it. A unit is as few groups of lanes as fill whole
 * warps; each has a ring of stages of its own, which its first thread refills, and waits for no other unit until the
 * sums meet. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_PIPELINE_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_PIPELINE_CUH

#include "ops/rope_apply/rope_apply_fixed.cuh"
#include "src/cuda/bulk.cuh"

template <uint32_t THREADS>
static __device__ __forceinline__ void wait_for_unit(uint32_t unit) {
  if (THREADS == 32) {
    __syncwarp();
  } else {
    asm volatile("bar.sync %0, %1;" ::"r"(unit + 1), "n"(THREADS) : "memory");
  }
}

static __device__ __forceinline__ void read_shared(uint32_t at, uint4 *word) {
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word->x), "=r"(word->y), "=r"(word->z), "=r"(word->w)
               : "r"(at)
               : "memory");
}
static __device__ __forceinline__ void read_shared(uint32_t at, uint2 *word) {
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(word->x), "=r"(word->y) : "r"(at) : "memory");
}

/* A lane's two vectors at `at` and half a row, in bytes, further on. */
template <typename T>
static __device__ __forceinline__ lane_values<float, V> read_lane(uint32_t at, uint32_t half) {
  lane_vectors<T, V> lane;
  read_shared(at, lane.first.word);
  read_shared(at + half, lane.second.word);
  return unpack_lane(lane);
}

/* Shared memory of a block: rings, [units][STAGES][UNIT_GROUPS][grad_y, x][ROWS][head_dim]; then the sums take their
 * place. */
template <typename Kind, uint32_t STAGES>
static __device__ __forceinline__ void pipeline(const rope_apply_fixed_params &p) {
  typedef typename Kind::T T;
  constexpr uint32_t GROUP_THREADS = Kind::ROWS * Kind::LANES;
  constexpr uint32_t UNIT_GROUPS = GROUP_THREADS % 32 == 0 ? 1 : GROUP_THREADS % 16 == 0 ? 2 : 4;
  constexpr uint32_t UNIT_THREADS = UNIT_GROUPS * GROUP_THREADS, UNITS = Kind::GROUPS / UNIT_GROUPS;
  constexpr uint32_t ROW_BYTES = 2 * Kind::HALF * sizeof(T), TENSOR_BYTES = Kind::ROWS * ROW_BYTES;
  constexpr uint32_t HEAD_BYTES = (Kind::TABLES ? 2 : 1) * TENSOR_BYTES, STAGE_BYTES = UNIT_GROUPS * HEAD_BYTES;
  static_assert(Kind::GROUPS % UNIT_GROUPS == 0 && UNIT_THREADS % 32 == 0 && UNITS < 16, "units are whole warps");
  constexpr uint32_t BARRIER_BYTES = 8;
  __shared__ uint64_t barriers[UNITS * STAGES];
  const fixed_place at = fixed_place_of_thread<Kind>(p);
  /* The same for all threads of a warp: said so that the compiler knows it. */
  const uint32_t unit = __shfl_sync(0xffffffff, threadIdx.x / UNIT_THREADS, 0);
  const bool leads = threadIdx.x % UNIT_THREADS == 0, active = at.row < at.tile.rows;
  const uint32_t barrier = rg_shared_address(barriers) + unit * STAGES * BARRIER_BYTES;
  const uint32_t ring = rg_shared_address(rope_apply_shared) + unit * STAGES * STAGE_BYTES;
  const uint32_t lane_at = at.lane * static_cast<uint32_t>(ROPE_APPLY_VECTOR * sizeof(T));
  const uint32_t mine = at.group % UNIT_GROUPS * HEAD_BYTES + at.row * ROW_BYTES + lane_at;
  if (leads) {
#pragma unroll 1
    for (uint32_t stage = 0; stage < STAGES; ++stage) rg_make_barrier(barrier + stage * BARRIER_BYTES);
    rg_publish_barriers();
  }
  wait_for_unit<UNIT_THREADS>(unit);
  lane_sums<float> sums = {};
  pair_tables tables;
  /* The first STAGES times round only fill the ring. Units go round equally often, also those that have a head less:
   * where they pass their barriers unequally often, compute-sanitizer's racecheck no longer matches the block's own. */
  uint32_t stage = 0, parity = 1;
  const int32_t heads = static_cast<int32_t>(p.heads), first = static_cast<int32_t>(unit * UNIT_GROUPS);
#pragma unroll 1
  for (int32_t h = first - static_cast<int32_t>(STAGES * Kind::GROUPS); h < heads + first; h += Kind::GROUPS) {
    const int32_t head = h + static_cast<int32_t>(at.group % UNIT_GROUPS);
    const bool works = h >= 0 && active && head < heads;
    lane_values<float, V> g, x;
    if (h >= 0) {
      if (h < static_cast<int32_t>(Kind::GROUPS) && active && p.cosine != NULL) {
        tables = fixed_load_tables<Kind>(p, at);
      }
      if (h < heads) rg_wait_for_phase(barrier + stage * BARRIER_BYTES, parity);
      if (works) {
        const uint32_t from = ring + stage * STAGE_BYTES + mine;
        g = read_lane<T>(from, ROW_BYTES / 2);
        if (Kind::TABLES) x = read_lane<T>(from + TENSOR_BYTES, ROW_BYTES / 2);
      }
      wait_for_unit<UNIT_THREADS>(unit); /* everyone has read */
    }
    const int32_t next = h + static_cast<int32_t>(STAGES * Kind::GROUPS);
    if (leads && next < heads) {
      const uint32_t bytes = at.tile.rows * ROW_BYTES;
      const uint32_t count = UNIT_GROUPS == 1 ? 1 : min(static_cast<uint32_t>(heads - next), UNIT_GROUPS);
      uint32_t to = ring + stage * STAGE_BYTES;
      rg_expect_bytes(barrier + stage * BARRIER_BYTES, count * bytes * (Kind::TABLES ? 2 : 1));
#pragma unroll 1
      for (uint32_t i = 0; i < count; ++i, to += HEAD_BYTES) {
        const fixed_head source = fixed_head_at(p, at.b, next + i, at.tile.s);
        rg_copy_bulk<Kind::LOADS>(to, source.side->grad_y + source.offset, bytes, barrier + stage * BARRIER_BYTES);
        if (Kind::TABLES) {
          rg_copy_bulk<Kind::LOADS>(to + TENSOR_BYTES, source.side->x + source.offset, bytes,
                                    barrier + stage * BARRIER_BYTES);
        }
      }
    }
    if (works) {
      const fixed_head out = fixed_head_at(p, at.b, head, at.s);
      if (Kind::TABLES) add_head<false>(g, x, &sums);
      if (out.side->grad_x != NULL) {
        char *to = out.side->grad_x + (out.offset + lane_at);
        store_lane<Kind::STORES>(to, HALF_BYTES<Kind, T>, pack_lane<T>(rotate_back<false>(g, tables)));
      }
    }
    if (++stage == STAGES) {
      stage = 0;
      parity ^= 1;
    }
  }
  if (!Kind::TABLES) return;
  __syncthreads(); /* every unit's copies have arrived and were read */
  fixed_share<Kind>(sums);
  __syncthreads();
  fixed_store_tables<Kind>(p, at.tile);
}

#endif
