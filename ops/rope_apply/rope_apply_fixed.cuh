/* The tuned kernels with everything fixed that can be, see rope_apply_fixed_params. Their code is short: with cold
 * caches the time that the instructions take to arrive from memory counts like the data's. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FIXED_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_FIXED_CUH

#include "ops/rope_apply/rope_apply_lanes.cuh"

/* What is compiled apart. TABLES: a gradient of a table is wanted. */
template <typename Payload, typename TableElement, uint32_t LANES_, uint32_t ROWS_, uint32_t GROUPS_, bool TABLES_,
          rg_cache_hint LOADS_, rg_cache_hint STORES_>
struct fixed_kind {
  typedef Payload T;
  typedef TableElement Table;
  static constexpr uint32_t LANES = LANES_, ROWS = ROWS_, GROUPS = GROUPS_;
  static constexpr bool TABLES = TABLES_;
  static constexpr rg_cache_hint LOADS = LOADS_, STORES = STORES_;
  static constexpr uint32_t THREADS = LANES * ROWS * GROUPS;
  static constexpr uint32_t HALF = LANES * ROPE_APPLY_VECTOR; /* elements of half a row */
};

/* ---- where threads and rows are ---- */

struct tile_place {
  uint32_t b, s, rows; /* positions [s, s + rows) of batch b */
};

static __device__ __forceinline__ tile_place tile_of_block(const rope_apply_tiles &tiles) {
  const uint32_t b = rg_divide(blockIdx.x, tiles.count);
  const uint32_t tile = blockIdx.x - b * tiles.count.divisor;
  return {b, tile * tiles.rows + min(tile, tiles.longer), tiles.rows + (tile < tiles.longer)};
}

struct fixed_place {
  uint32_t lane, row, group;
  tile_place tile;
  uint32_t b, s;
};

template <typename Kind>
static __device__ __forceinline__ fixed_place fixed_place_of_thread(const rope_apply_fixed_params &p) {
  fixed_place at;
  at.lane = threadIdx.x % Kind::LANES;
  at.row = threadIdx.x / Kind::LANES % Kind::ROWS;
  at.group = threadIdx.x / (Kind::LANES * Kind::ROWS);
  at.tile = tile_of_block(p.tiles);
  at.b = at.tile.b;
  at.s = at.tile.s + at.row;
  return at;
}

/* The row of a head: what is to be added to each pointer of its side. */
struct fixed_head {
  const rope_apply_fixed_side *side;
  uint32_t offset;
};

static __device__ __forceinline__ fixed_head fixed_head_at(const rope_apply_fixed_params &p, uint32_t b, uint32_t head,
                                                           uint32_t s) {
  const bool of_k = head >= p.heads_of_q;
  const rope_apply_fixed_side *side = &p.side[of_k];
  const uint32_t h = of_k ? head - p.heads_of_q : head;
  return {side, b * side->batch + h * side->head + s * side->position};
}

/* From a lane's first vector of a row to its second. */
template <typename Kind, typename T>
static constexpr uint32_t HALF_BYTES = Kind::HALF *static_cast<uint32_t>(sizeof(T));

template <typename Kind>
static __device__ __forceinline__ pair_tables fixed_load_tables(const rope_apply_fixed_params &p,
                                                                const fixed_place &at) {
  typedef typename Kind::Table Table;
  const uint32_t offset = at.b * p.table_batch + at.s * p.table_position +
                          at.lane * static_cast<uint32_t>(ROPE_APPLY_VECTOR * sizeof(Table));
  /* With same_half the sines of a pair are exchanged, by their addresses, so that nothing waits for the loads here. In
   * elements: so the compiler does without a branch around the loads, which cost up to 4 %. */
  const uint32_t first = p.same_half ? Kind::HALF : 0;
  const Table *const sine = reinterpret_cast<const Table *>(p.sine + offset);
  const packed_tables<Table> packed = {
      load_lane<RG_CACHE_DEFAULT, Table, V, true>(p.cosine + offset, HALF_BYTES<Kind, Table>),
      {load_vector<RG_CACHE_DEFAULT, Table, V, true>(reinterpret_cast<const char *>(sine + first)),
       load_vector<RG_CACHE_DEFAULT, Table, V, true>(reinterpret_cast<const char *>(sine + (Kind::HALF - first)))}};
  return pair_tables::of<false>(packed, p.same_half);
}

/* ---- the groups' sums, which meet in shared memory: [4][GROUPS][ROWS][LANES][ROPE_APPLY_VECTOR] ---- */

template <typename Kind>
static __device__ __forceinline__ void fixed_share(const lane_sums<float> &sums) {
  float4 *to = reinterpret_cast<float4 *>(rope_apply_shared) + threadIdx.x;
  const float(*value[4])[ROPE_APPLY_VECTOR] = {&sums.cosine.first, &sums.cosine.second, &sums.sine.first,
                                               &sums.sine.second};
#pragma unroll
  for (int v = 0; v < 4; ++v) {
    to[v * Kind::THREADS] = make_float4((*value[v])[0], (*value[v])[1], (*value[v])[2], (*value[v])[3]);
  }
}

/* A task: WIDTH neighbours of what is summed. So wide that most threads have one task and none has more than four. */
template <typename Kind>
static __device__ __forceinline__ void fixed_store_tables(const rope_apply_fixed_params &p, const tile_place &tile) {
  typedef typename Kind::Table Table;
  constexpr int WIDTH = Kind::GROUPS >= 16 ? 1 : Kind::GROUPS >= 8 ? 2 : 4;
  constexpr uint32_t PART = Kind::ROWS * Kind::HALF; /* elements of one of the four parts */
  constexpr uint32_t TASKS = 4 * PART / WIDTH;
  struct alignas(4 * WIDTH) parts {
    float element[WIDTH];
  };
#pragma unroll 1
  for (uint32_t task = threadIdx.x; TASKS == Kind::THREADS || task < TASKS; task += Kind::THREADS) {
    const uint32_t element = task * WIDTH, part = element / PART, place = element % PART;
    const uint32_t row = place / Kind::HALF, column = part % 2 * Kind::HALF + place % Kind::HALF;
    const parts *from =
        reinterpret_cast<const parts *>(rope_apply_shared) + (part * Kind::GROUPS * PART + place) / WIDTH;
    constexpr uint32_t RUNS = Kind::GROUPS < 4 ? Kind::GROUPS : 4; /* interleaved: few roundings follow each other */
    parts run[RUNS];
#pragma unroll
    for (uint32_t g = 0; g < Kind::GROUPS; ++g) {
      const parts sum = from[g * PART / WIDTH];
#pragma unroll
      for (int i = 0; i < WIDTH; ++i) {
        run[g % RUNS].element[i] = g < RUNS ? sum.element[i] : run[g % RUNS].element[i] + sum.element[i];
      }
    }
    float sum[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) {
      sum[i] = run[0].element[i];
      if (RUNS > 1) sum[i] += run[1 % RUNS].element[i];
      if (RUNS > 2) sum[i] += RUNS > 3 ? run[2 % RUNS].element[i] + run[3 % RUNS].element[i] : run[2 % RUNS].element[i];
    }
    char *table = p.grad_table[part / 2];
    if ((Kind::ROWS == 1 || row < tile.rows) && table != NULL) {
      Table *to =
          reinterpret_cast<Table *>(table + (tile.b * p.grad_table_batch + (tile.s + row) * p.grad_table_position)) +
          column;
      if constexpr (WIDTH * sizeof(Table) >= 4) {
        rg_store_packet<RG_CACHE_DEFAULT, Table, WIDTH>(to, rg_pack<Table, WIDTH>(sum));
      } else {
        *to = rg_from_real<Table>(sum[0]);
      }
    }
    if (TASKS == Kind::THREADS) break;
  }
}

/* ---- heads loaded straight into registers, UNROLL of them at a time ---- */

template <typename Kind, int UNROLL>
static __device__ __forceinline__ void direct(const rope_apply_fixed_params &p) {
  typedef typename Kind::T T;
  const fixed_place at = fixed_place_of_thread<Kind>(p);
  const uint32_t lane_at = at.lane * static_cast<uint32_t>(ROPE_APPLY_VECTOR * sizeof(T));
  lane_sums<float> sums = {};
  pair_tables tables;
  if (Kind::ROWS == 1 || at.row < at.tile.rows) {
#pragma unroll 1
    for (uint32_t h = at.group; h < p.heads; h += UNROLL * Kind::GROUPS) {
      lane_vectors<T, V> grad_y[UNROLL], x[UNROLL];
      char *grad_x[UNROLL];
      uint32_t offset[UNROLL];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        grad_x[u] = NULL;
        if (u > 0 && h + u * Kind::GROUPS >= p.heads) continue;
        const fixed_head head = fixed_head_at(p, at.b, h + u * Kind::GROUPS, at.s);
        offset[u] = head.offset + lane_at;
        grad_y[u] = load_lane<Kind::LOADS, T, V, true>(head.side->grad_y + offset[u], HALF_BYTES<Kind, T>);
        if (Kind::TABLES) x[u] = load_lane<Kind::LOADS, T, V, true>(head.side->x + offset[u], HALF_BYTES<Kind, T>);
        grad_x[u] = head.side->grad_x;
      }
      if (h < Kind::GROUPS && p.cosine != NULL) tables = fixed_load_tables<Kind>(p, at); /* behind the first heads */
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        if (u > 0 && h + u * Kind::GROUPS >= p.heads) continue;
        const lane_values<float, V> g = unpack_lane(grad_y[u]);
        if (Kind::TABLES) add_head<false>(g, unpack_lane(x[u]), &sums);
        if (grad_x[u] == NULL) continue;
        store_lane<Kind::STORES>(grad_x[u] + offset[u], HALF_BYTES<Kind, T>,
                                 pack_lane<T>(rotate_back<false>(g, tables)));
      }
    }
  }
  if (!Kind::TABLES) return;
  fixed_share<Kind>(sums);
  __syncthreads();
  fixed_store_tables<Kind>(p, at.tile);
}

#endif
