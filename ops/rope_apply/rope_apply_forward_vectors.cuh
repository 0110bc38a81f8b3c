/* The tuned kernels of rope_apply's forward pass. A thread owns two vectors of the rows of a few heads: it asks for all
 * of them and for the tables before it uses the first, and nothing waits for another thread. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_VECTORS_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_VECTORS_CUH

#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "ops/rope_apply/rope_apply_row_vector.cuh"

/* What is compiled apart. V: elements of a vector. HEADS: of a thread. */
template <typename Payload, typename TableElement, int V_, int HEADS_, bool INTERLEAVED_, rg_cache_hint HINT_>
struct forward_kind {
  typedef Payload T;
  typedef TableElement Table;
  static constexpr int V = V_, HEADS = HEADS_;
  static constexpr bool INTERLEAVED = INTERLEAVED_;
  static constexpr rg_cache_hint HINT = HINT_;
};

/* ---- where threads and rows are ---- */

struct forward_place {
  uint32_t s, group;     /* the position, and which of the heads: those of q come first */
  uint32_t first, apart; /* the lane's first vector in a row, and how many there are from it to its second */
  bool rotates;

  __device__ __forceinline__ explicit forward_place(const rope_apply_forward_params &p) {
    const uint32_t tile = p.heads_inside ? blockIdx.y : blockIdx.x, chunk = p.heads_inside ? blockIdx.x : blockIdx.y;
    s = tile * blockDim.y + threadIdx.y;
    group = chunk * blockDim.z + threadIdx.z;
    rotates = threadIdx.x < p.pair_lanes;
    first = rotates ? threadIdx.x : threadIdx.x + p.pair_lanes;
    apart = rotates ? p.pair_lanes : blockDim.x - p.pair_lanes;
  }
};

/* The lane's first vector of its position in a head. */
template <typename T, int V>
static __device__ __forceinline__ char *row_at(const rope_apply_rows &rows, uint32_t head, const forward_place &at) {
  return rows.data + blockIdx.z * rows.batch +
         (head * rows.head + at.s * rows.position + at.first * static_cast<uint32_t>(V * sizeof(T)));
}

/* ---- a lane's share of a row ---- */

template <typename Kind>
static __device__ __forceinline__ lane_vectors<typename Kind::T, Kind::V> rotate_lane(
    const lane_vectors<typename Kind::T, Kind::V> &lane, const lane_values<float, Kind::V> &cosine,
    const lane_values<float, Kind::V> &sine) {
  constexpr bool I = Kind::INTERLEAVED;
  const lane_values<float, Kind::V> x = unpack_lane(lane);
  lane_values<float, Kind::V> y;
#pragma unroll
  for (int i = 0; i < Kind::V; ++i) {
    y.template set_pair<I>(
        i, rg_rotate<rg_once>(x.template pair<I>(i), cosine.template pair<I>(i), sine.template pair<I>(i)));
  }
  return pack_lane<typename Kind::T>(y);
}

template <typename Kind>
static __device__ __forceinline__ void forward(const rope_apply_forward_params &p) {
  typedef typename Kind::T T;
  typedef typename Kind::Table Table;
  constexpr int V = Kind::V;
  const forward_place at(p);
  if (at.s >= p.seq_len || at.group >= p.groups) return;
  const bool of_k = at.group >= p.groups_of_q;
  const rope_apply_forward_side &side = p.side[of_k];
  const uint32_t head = of_k ? at.group - p.groups_of_q : at.group;
  const uint32_t apart = at.apart * static_cast<uint32_t>(V * sizeof(T));
  const char *const from = row_at<T, V>(side.x, head, at);
  lane_vectors<T, V> lane[Kind::HEADS];
#pragma unroll
  for (uint32_t u = 0; u < Kind::HEADS; ++u) {
    if (u > 0 && head + u * side.groups >= side.heads) continue;
    lane[u] = load_lane<Kind::HINT, T, V>(from + static_cast<uint64_t>(u) * (side.groups * side.x.head), apart);
  }
  lane_values<float, V> cosine = {}, sine = {};
  if (at.rotates) {
    const uint32_t table_apart = at.apart * static_cast<uint32_t>(V * sizeof(Table));
    const auto c = load_lane<RG_CACHE_DEFAULT, Table, V>(row_at<Table, V>(p.cosine, 0, at), table_apart);
    const auto s = load_lane<RG_CACHE_DEFAULT, Table, V>(row_at<Table, V>(p.sine, 0, at), table_apart);
    cosine = unpack_lane(c);
    sine = unpack_lane(s);
  }
  char *const to = row_at<T, V>(side.y, head, at);
#pragma unroll
  for (uint32_t u = 0; u < Kind::HEADS; ++u) {
    if (u > 0 && head + u * side.groups >= side.heads) continue;
    store_lane<Kind::HINT>(to + static_cast<uint64_t>(u) * (side.groups * side.y.head), apart,
                           at.rotates ? rotate_lane<Kind>(lane[u], cosine, sine) : lane[u]);
  }
}

#endif
