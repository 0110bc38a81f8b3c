/* The tuned kernels for any head_dim, rotary_dim, style and layout in whole vectors: what bounds them at usual sizes is
 * the number of instructions. So a thread has few heads, asks for all of them before it uses the first, and does it
 * without a loop or a division; only the long kernels go round. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_VECTORS_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_VECTORS_CUH

#include "ops/rope_apply/rope_apply_lanes.cuh"
#include "ops/rope_apply/rope_apply_tune.h"

/* What is compiled apart. */
template <typename Payload, typename TableElement, bool INTERLEAVED_, bool TABLES_>
struct vectors_kind {
  typedef Payload T;
  typedef TableElement Table;
  static constexpr bool INTERLEAVED = INTERLEAVED_;
  static constexpr bool TABLES = TABLES_; /* a gradient of a table is wanted */
};

static constexpr int HELD = ROPE_APPLY_HEADS_HELD;

/* As used once, see rope_apply_tune_vectors. */
static constexpr rg_cache_hint HINT = RG_CACHE_STREAM;

/* ---- where threads and rows are ---- */

struct thread_place {
  uint32_t s;            /* the position */
  uint32_t first, apart; /* the lane's first vector in a row, and how many there are from it to its second */
  bool rotates, active;

  __device__ __forceinline__ explicit thread_place(const rope_apply_vectors_params &p) {
    const uint32_t lane = blockIdx.y * blockDim.x + threadIdx.x;
    s = blockIdx.x * blockDim.y + threadIdx.y;
    rotates = lane < p.pair_lanes;
    active = lane < p.lanes && s < p.seq_len;
    first = rotates ? lane : lane + p.pair_lanes;
    apart = rotates ? p.pair_lanes : p.lanes - p.pair_lanes;
  }
};

/* The bytes of so many vectors. */
template <typename T>
static __device__ __forceinline__ uint32_t bytes_of(uint32_t vectors) {
  return vectors * static_cast<uint32_t>(sizeof(row_vector<T, V>));
}

/* The lane's first vector of its position. */
template <typename T>
static __device__ __forceinline__ char *row_at(const rope_apply_rows &rows, uint32_t b, uint32_t head,
                                               const thread_place &at) {
  return rows.data + b * rows.batch + (head * rows.head + at.s * rows.position + bytes_of<T>(at.first));
}

/* The same of the thread's heads, `groups` apart. */
template <typename T>
struct head_rows {
  char *row;
  uint32_t step;

  __device__ __forceinline__ head_rows(const rope_apply_rows &rows, uint32_t b, uint32_t head, uint32_t groups,
                                       const thread_place &at)
      : row(row_at<T>(rows, b, head, at)), step(rows.head * groups) {}
  __device__ __forceinline__ char *at(uint32_t i) const { return row + static_cast<uint64_t>(i) * step; }
};

/* ---- the tables ---- */

template <typename Kind>
static __device__ __forceinline__ packed_tables<typename Kind::Table> load_tables(const rope_apply_vectors_params &p,
                                                                                  const thread_place &at) {
  typedef typename Kind::Table Table;
  const rope_apply_rows *const of = p.table + p.none; /* cos, sin */
  packed_tables<Table> tables = {};
  if (!at.rotates || of[0].data == NULL) return tables;
  const uint32_t apart = bytes_of<Table>(at.apart);
  /* Exchanged by their addresses, so that nothing waits for the loads here. */
  const uint32_t exchanged = p.same_half && !Kind::INTERLEAVED ? apart : 0;
  const char *sine = row_at<Table>(of[1], blockIdx.z, 0, at);
  tables.cosine = load_lane<RG_CACHE_DEFAULT, Table, V, true>(row_at<Table>(of[0], blockIdx.z, 0, at), apart);
  tables.sine = {load_vector<RG_CACHE_DEFAULT, Table, V, true>(sine + exchanged),
                 load_vector<RG_CACHE_DEFAULT, Table, V, true>(sine + (apart - exchanged))};
  return tables;
}

/* ---- a thread's heads ---- */

/* The thread's heads of batch b from `head` on, side.groups apart: HELD of them at most. */
template <typename Kind>
static __device__ __forceinline__ void do_heads(const rope_apply_vectors_params &p, const thread_place &at,
                                                const rope_apply_side &side, uint32_t b, uint32_t head,
                                                lane_sums<float> *sums) {
  typedef typename Kind::T T;
  const uint32_t apart = bytes_of<T>(at.apart);
  const packed_tables<typename Kind::Table> packed = load_tables<Kind>(p, at);
  const head_rows<T> from_grad_y(side.grad_y, b, head, side.groups, at), from_x(side.x, b, head, side.groups, at);
  lane_vectors<T, V> grad_y[HELD] = {}, x[HELD] = {}; /* heads that there are not add nothing to the sums */
#pragma unroll
  for (uint32_t u = 0; u < HELD; ++u) {
    if (u > 0 && head + u * side.groups >= side.heads) continue;
    grad_y[u] = load_lane<HINT, T, V>(from_grad_y.at(u), apart);
    if (Kind::TABLES && at.rotates) x[u] = load_lane<HINT, T, V>(from_x.at(u), apart);
  }
  if (at.rotates) {
    const pair_tables tables = pair_tables::of<Kind::INTERLEAVED>(packed, p.same_half);
#pragma unroll
    for (uint32_t u = 0; u < HELD; ++u) {
      const lane_values<float, V> g = unpack_lane(grad_y[u]);
      if (Kind::TABLES) add_head<Kind::INTERLEAVED>(g, unpack_lane(x[u]), sums);
      grad_y[u] = pack_lane<T>(rotate_back<Kind::INTERLEAVED>(g, tables));
    }
  }
  if (side.grad_x.data == NULL) return;
  const head_rows<T> to(side.grad_x, b, head, side.groups, at);
#pragma unroll
  for (uint32_t u = 0; u < HELD; ++u) {
    if (u == 0 || head + u * side.groups < side.heads) store_lane<HINT>(to.at(u), apart, grad_y[u]);
  }
}

/* ---- the groups' sums, which meet in shared memory: [4][threads] of a vector's; two of cos, two of sin ---- */

template <typename Real>
struct alignas(16) vector_sums {
  Real element[V];
};

template <typename Real>
static __device__ __forceinline__ void share(const Real (&sums)[V], vector_sums<Real> *to) {
  vector_sums<Real> vector;
#pragma unroll
  for (int i = 0; i < V; ++i) vector.element[i] = sums[i];
  *to = vector;
}

/* Adds what the threads at the same place of every group left: in four interleaved runs, so that few roundings follow
 * each other. */
template <typename Real>
static __device__ __forceinline__ void sum_groups(const vector_sums<Real> *from, uint32_t stride, uint32_t groups,
                                                  float (&to)[V]) {
  constexpr uint32_t AT_ONCE = 8, RUNS = 4;
  vector_sums<Real> run[RUNS] = {};
#pragma unroll 1
  for (uint32_t g = 0; g < groups; g += AT_ONCE, from += AT_ONCE * stride) {
    vector_sums<Real> part[AT_ONCE] = {};
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; ++k) {
      if (g + k < groups) part[k] = from[k * stride];
    }
#pragma unroll
    for (uint32_t k = 0; k < AT_ONCE; ++k) {
#pragma unroll
      for (int i = 0; i < V; ++i) run[k % RUNS].element[i] += part[k].element[i];
    }
  }
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to[i] = static_cast<float>((run[0].element[i] + run[1].element[i]) + (run[2].element[i] + run[3].element[i]));
  }
}

template <typename Kind, typename Real>
static __device__ __forceinline__ void store_tables(const rope_apply_vectors_params &p, const thread_place &at,
                                                    const lane_sums<Real> &mine) {
  typedef typename Kind::Table Table;
  if (blockIdx.y * blockDim.x >= p.pair_lanes) return; /* the block only copies */
  const uint32_t group = blockDim.x * blockDim.y, threads = group * blockDim.z;
  vector_sums<Real> *const sums =
      reinterpret_cast<vector_sums<Real> *>(rope_apply_shared) + (threadIdx.y * blockDim.x + threadIdx.x);
  vector_sums<Real> *const to = sums + threadIdx.z * group;
  share(mine.cosine.first, to);
  share(mine.cosine.second, to + threads);
  share(mine.sine.first, to + 2 * threads);
  share(mine.sine.second, to + 3 * threads);
  __syncthreads();
  if (!at.active || !at.rotates) return;
#pragma unroll 1
  for (uint32_t i = threadIdx.z; i < 4; i += blockDim.z) {
    const rope_apply_rows &table = p.grad_table[i / 2];
    if (table.data == NULL) continue;
    float sum[V];
    sum_groups(sums + i * threads, group, blockDim.z, sum);
    store_vector<RG_CACHE_DEFAULT>(row_at<Table>(table, blockIdx.z, 0, at) + bytes_of<Table>(i % 2 * at.apart),
                                   pack_vector<Table, V>(sum));
  }
}

/* ---- the kernels ---- */

/* Which of a side's heads are the thread's, by the number of its group: those of q come first. */
struct group_place {
  bool of_k;
  uint32_t head;

  __device__ __forceinline__ explicit group_place(const rope_apply_vectors_params &p)
      : of_k(threadIdx.z >= p.groups_of_q), head(of_k ? threadIdx.z - p.groups_of_q : threadIdx.z) {}
};

template <typename Kind>
static __device__ __forceinline__ void vectors(const rope_apply_vectors_params &p) {
  const thread_place at(p);
  lane_sums<float> sums = {};
  if (at.active) {
    const group_place group(p);
    do_heads<Kind>(p, at, p.side[group.of_k], blockIdx.z, group.head, &sums);
  }
  if (Kind::TABLES) store_tables<Kind>(p, at, sums);
}

static __device__ __forceinline__ void take(lane_values<float, V> *from, lane_values<double, V> *to) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    to->first[i] += from->first[i];
    to->second[i] += from->second[i];
  }
  *from = lane_values<float, V>();
}

/* Any number of heads, and of batches that share their tables. */
template <typename Kind>
static __device__ __forceinline__ void long_vectors(const rope_apply_vectors_params &p) {
  const thread_place at(p);
  const group_place group(p);
  const rope_apply_side &side = p.side[group.of_k];
  lane_sums<float> sums = {};
  lane_sums<double> totals = {};
#pragma unroll 1
  for (uint32_t b = 0; at.active && b < p.batches; ++b) {
#pragma unroll 1
    for (uint32_t head = group.head; head < side.heads; head += HELD * side.groups) {
      do_heads<Kind>(p, at, side, blockIdx.z + b, head, &sums);
      take(&sums.cosine, &totals.cosine);
      take(&sums.sine, &totals.sine);
    }
  }
  if (Kind::TABLES) store_tables<Kind>(p, at, totals);
}

#endif
