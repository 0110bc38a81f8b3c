/* The tuned kernels that load what they need straight into registers. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_VECTORS_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_VECTORS_CUH

#include "ops/rope_apply/rope_apply_lanes.cuh"

/* What is compiled apart. */
template <typename Payload, typename TableElement, int UNROLL_, bool TABLES_, bool LONG_>
struct vectors_kind {
  typedef Payload T;
  typedef TableElement Table;
  /* Heads whose loads are all on their way before the first is used. */
  static constexpr int UNROLL = UNROLL_;
  /* A gradient of a table is wanted. */
  static constexpr bool TABLES = TABLES_;
  /* Sums of any number of heads, and over the batch, in double; else at most ROPE_APPLY_HEADS_PER_SUM a group. */
  static constexpr bool LONG = LONG_;
};

/* Of a lane that holds pairs. */
static __device__ __forceinline__ lane_columns columns_of_pairs(const rope_apply_vectors_params &p, uint32_t lane) {
  if (p.interleaved) return {lane * ROPE_APPLY_LANE, lane * ROPE_APPLY_LANE + ROPE_APPLY_VECTOR, true};
  return {lane * ROPE_APPLY_VECTOR, (p.pair_lanes + lane) * ROPE_APPLY_VECTOR, false};
}

struct thread_place {
  uint32_t lane, row, group;
  bool rotates; /* holds pairs */
  lane_columns columns;
};

static __device__ __forceinline__ thread_place place_of_thread(const rope_apply_vectors_params &p) {
  thread_place at;
  const uint32_t slot = threadIdx.x / p.lanes;
  at.lane = threadIdx.x - slot * p.lanes;
  at.group = slot / p.rows;
  at.row = slot - at.group * p.rows;
  at.rotates = at.lane < p.pair_lanes;
  at.columns = columns_of_pairs(p, at.lane);
  if (!at.rotates) {
    at.columns = {at.lane * ROPE_APPLY_LANE, at.lane * ROPE_APPLY_LANE + ROPE_APPLY_VECTOR, at.columns.interleaved};
  }
  return at;
}

/* A row of a head of one of the sides. */
struct head_place {
  const rope_apply_side *side;
  uint32_t b, h, s;
};

static __device__ __forceinline__ head_place place_of_head(const rope_apply_vectors_params &p, uint32_t b,
                                                           uint32_t head, uint32_t s) {
  const bool of_k = head >= p.heads_of_q;
  return {&p.side[of_k], b, of_k ? head - p.heads_of_q : head, s};
}

template <typename T>
static __device__ __forceinline__ T *row_of(const rope_apply_rows &rows, const head_place &at) {
  return static_cast<T *>(rows.data) + (at.b * rows.batch + at.h * rows.head + at.s * rows.position);
}

template <typename T>
static __device__ __forceinline__ T *row_of(const rope_apply_table &table, uint32_t b, uint32_t s) {
  return static_cast<T *>(table.data) + (b * table.batch + s * table.position);
}

template <typename Kind>
static __device__ __forceinline__ lane_tables load_tables(const rope_apply_vectors_params &p, const thread_place &at,
                                                          uint32_t b, uint32_t s) {
  typedef typename Kind::Table Table;
  lane_tables tables = {};
  if (!at.rotates || p.cosine.data == NULL) return tables;
  /* Exchanged by their addresses, so that nothing waits for the loads here. */
  lane_columns of_sine = at.columns;
  if (p.same_half && !at.columns.interleaved) of_sine = {at.columns.second, at.columns.first, false};
  const lane_packets<Table> cosine = load_lane<RG_CACHE_DEFAULT>(row_of<const Table>(p.cosine, b, s), at.columns);
  const lane_packets<Table> sine = load_lane<RG_CACHE_DEFAULT>(row_of<const Table>(p.sine, b, s), of_sine);
  tables.cosine = unpack_lane(cosine, at.columns.interleaved);
  tables.sine = unpack_lane(sine, at.columns.interleaved);
  if (p.same_half && at.columns.interleaved) {
    const lane_pairs exchanged = tables.sine;
#pragma unroll
    for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) tables.sine.set(i, {exchanged.second[i], exchanged.first[i]});
  }
  return tables;
}

/* ---- the groups' sums, which meet in shared memory ---- */

template <typename Sum>
struct alignas(16) sum_vector {
  Sum element[ROPE_APPLY_VECTOR];
};

/* Shared memory: [4][groups][rows][lanes] of sum_vector, the two vectors of grad_cos, then those of grad_sin. */
template <typename Sum>
static __device__ __forceinline__ void share(int which, const Sum (&value)[ROPE_APPLY_VECTOR]) {
  sum_vector<Sum> vector;
#pragma unroll
  for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) vector.element[i] = value[i];
  reinterpret_cast<sum_vector<Sum> *>(rope_apply_shared)[which * blockDim.x + threadIdx.x] = vector;
}

static __device__ __forceinline__ void share_sums(const table_sums &sums) {
  share(0, sums.cosine.first);
  share(1, sums.cosine.second);
  share(2, sums.sine.first);
  share(3, sums.sine.second);
}

/* The sum of what the groups left at `from`, `stride` apart: in four interleaved runs, so that few roundings follow
 * each other. */
template <typename Sum>
static __device__ __forceinline__ void sum_groups(const sum_vector<Sum> *from, uint32_t stride, uint32_t groups,
                                                  float (&to)[ROPE_APPLY_VECTOR]) {
  sum_vector<Sum> run[4] = {};
#pragma unroll 1
  for (uint32_t g = 0; g < groups; g += 4) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if (g + k >= groups) continue;
      const sum_vector<Sum> part = from[(g + k) * stride];
#pragma unroll
      for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) run[k].element[i] += part.element[i];
    }
  }
#pragma unroll
  for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) {
    to[i] = static_cast<float>((run[0].element[i] + run[1].element[i]) + (run[2].element[i] + run[3].element[i]));
  }
}

/* Stores what was shared, after a barrier. A task is a lane of a row of grad_cos or grad_sin. */
template <typename Kind, typename Sum>
static __device__ __forceinline__ void store_tables(const rope_apply_vectors_params &p, const tile_place &tile) {
  typedef typename Kind::Table Table;
  const uint32_t width = p.rows * p.lanes; /* of a group */
#pragma unroll 1
  for (uint32_t task = threadIdx.x; task < 2 * width; task += blockDim.x) {
    const bool of_sine = task >= width;
    const uint32_t place = of_sine ? task - width : task;
    const uint32_t row = place / p.lanes;
    const uint32_t lane = place - row * p.lanes;
    const rope_apply_table &table = of_sine ? p.grad_sin : p.grad_cos;
    if (row >= tile.rows || table.data == NULL || lane >= p.pair_lanes) continue;
    const sum_vector<Sum> *from =
        reinterpret_cast<const sum_vector<Sum> *>(rope_apply_shared) + (of_sine ? 2 * blockDim.x : 0) + place;
    lane_pairs sums;
    sum_groups(from, width, p.groups, sums.first);
    sum_groups(from + blockDim.x, width, p.groups, sums.second);
    const lane_columns columns = columns_of_pairs(p, lane);
    store_lane<RG_CACHE_DEFAULT>(row_of<Table>(table, tile.b, tile.s + row), columns,
                                 pack_lane<Table>(sums, columns.interleaved));
  }
}

/* What a thread has of UNROLL heads. */
template <typename Kind>
struct head_packets {
  lane_packets<typename Kind::T> grad_y[Kind::UNROLL], x[Kind::UNROLL];
};

/* Heads h, h + groups, ... below end. */
template <typename Kind>
static __device__ __forceinline__ void load_heads(const rope_apply_vectors_params &p, const thread_place &at,
                                                  uint32_t b, uint32_t s, uint32_t h, uint32_t end,
                                                  head_packets<Kind> *heads) {
  typedef const typename Kind::T T;
#pragma unroll
  for (int u = 0; u < Kind::UNROLL; ++u) {
    if (h + u * p.groups >= end) continue;
    const head_place head = place_of_head(p, b, h + u * p.groups, s);
    heads->grad_y[u] = load_lane<RG_CACHE_DEFAULT>(row_of<T>(head.side->grad_y, head), at.columns);
    if (Kind::TABLES && at.rotates) {
      heads->x[u] = load_lane<RG_CACHE_DEFAULT>(row_of<T>(head.side->x, head), at.columns);
    }
  }
}

template <typename Kind>
static __device__ __forceinline__ void finish_heads(const rope_apply_vectors_params &p, const thread_place &at,
                                                    uint32_t b, uint32_t s, uint32_t h, uint32_t end,
                                                    const lane_tables &tables, const head_packets<Kind> &heads,
                                                    table_sums *sums) {
  typedef typename Kind::T T;
#pragma unroll
  for (int u = 0; u < Kind::UNROLL; ++u) {
    if (h + u * p.groups >= end) continue;
    const head_place head = place_of_head(p, b, h + u * p.groups, s);
    const lane_pairs g = unpack_lane(heads.grad_y[u], at.columns.interleaved);
    if (head.side->grad_x.data != NULL) {
      store_lane<RG_CACHE_DEFAULT>(row_of<T>(head.side->grad_x, head), at.columns,
                                   at.rotates ? rotate_back<T>(g, tables, at.columns.interleaved) : heads.grad_y[u]);
    }
    if (Kind::TABLES && at.rotates) sums->add(g, unpack_lane(heads.x[u], at.columns.interleaved));
  }
}

/* Heads group, group + groups, ... of position s of batch b, from `begin` on and below `end`. */
template <typename Kind>
static __device__ __forceinline__ void do_heads(const rope_apply_vectors_params &p, const thread_place &at, uint32_t b,
                                                uint32_t s, uint32_t begin, uint32_t end, lane_tables *tables,
                                                table_sums *sums) {
#pragma unroll 1
  for (uint32_t h = begin + at.group; h < end; h += Kind::UNROLL * p.groups) {
    head_packets<Kind> heads;
    load_heads<Kind>(p, at, b, s, h, end, &heads);
    if (h < p.groups) *tables = load_tables<Kind>(p, at, b, s); /* once, behind the first heads */
    finish_heads<Kind>(p, at, b, s, h, end, *tables, heads, sums);
  }
}

/* A thread's sums over more heads than float32 is trusted with. */
struct long_sums {
  double cos_first[ROPE_APPLY_VECTOR], cos_second[ROPE_APPLY_VECTOR];
  double sin_first[ROPE_APPLY_VECTOR], sin_second[ROPE_APPLY_VECTOR];

  __device__ __forceinline__ void take(table_sums *sums) {
#pragma unroll
    for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) {
      cos_first[i] += sums->cosine.first[i];
      cos_second[i] += sums->cosine.second[i];
      sin_first[i] += sums->sine.first[i];
      sin_second[i] += sums->sine.second[i];
    }
    sums->clear();
  }
};

template <typename Kind>
static __device__ __forceinline__ void long_vectors(const rope_apply_vectors_params &p) {
  const tile_place tile = tile_of_block(p.tiles);
  const thread_place at = place_of_thread(p);
  table_sums sums = {};
  lane_tables tables = {};
  long_sums totals = {};
  const uint32_t step = ROPE_APPLY_HEADS_PER_SUM / Kind::UNROLL * Kind::UNROLL * p.groups;
  for (uint32_t b = tile.b; at.row < tile.rows && b < tile.b + p.batches; ++b) {
    for (uint32_t begin = 0; begin < p.heads; begin += step) {
      const uint32_t end = p.heads - begin < step ? p.heads : begin + step;
      do_heads<Kind>(p, at, b, tile.s + at.row, begin, end, &tables, &sums);
      totals.take(&sums);
    }
  }
  share(0, totals.cos_first);
  share(1, totals.cos_second);
  share(2, totals.sin_first);
  share(3, totals.sin_second);
  __syncthreads();
  store_tables<Kind, double>(p, tile);
}

template <typename Kind>
static __device__ __forceinline__ void vectors(const rope_apply_vectors_params &p) {
  if (Kind::LONG) {
    long_vectors<Kind>(p);
    return;
  }
  const tile_place tile = tile_of_block(p.tiles);
  const thread_place at = place_of_thread(p);
  table_sums sums = {};
  lane_tables tables = {};
  if (at.row < tile.rows) do_heads<Kind>(p, at, tile.b, tile.s + at.row, 0, p.heads, &tables, &sums);
  if (!Kind::TABLES) return;
  share_sums(sums);
  __syncthreads();
  store_tables<Kind, float>(p, tile);
}

#endif
