/* The tuned kernels of rope_apply's forward pass. A thread owns two vectors of the rows of a few heads: it asks for all
 * of them and for the tables before it uses the first, and nothing waits for another thread. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_VECTORS_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_VECTORS_CUH

#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

/* What is compiled apart. V: elements of a vector. LANES_, ROWS_, GROUPS_: 0 where the launch says. */
template <typename Payload, typename TableElement, int V_, bool INTERLEAVED_, uint32_t LANES_, uint32_t ROWS_,
          uint32_t GROUPS_, int UNROLL_, rg_cache_hint LOADS_, rg_cache_hint STORES_>
struct forward_kind {
  typedef Payload T;
  typedef TableElement Table;
  static constexpr int V = V_, UNROLL = UNROLL_;
  static constexpr bool INTERLEAVED = INTERLEAVED_;
  static constexpr uint32_t LANES = LANES_, ROWS = ROWS_, GROUPS = GROUPS_;
  static constexpr rg_cache_hint LOADS = LOADS_, STORES = STORES_;
};

/* ---- vectors ---- */

/* V elements of T in memory: a word, or two where the tables are wider than q and k. */
template <typename T, int V>
struct forward_vector {
  static constexpr int BYTES = V * sizeof(T) < 16 ? V * sizeof(T) : 16, WORDS = V * sizeof(T) / BYTES;
  static constexpr int PER_WORD = V / WORDS;
  typedef typename rg_word<BYTES>::type word_type;
  word_type word[WORDS];
};

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ forward_vector<T, V> load_vector(const char *at) {
  typedef forward_vector<T, V> vector;
  const typename vector::word_type *from = reinterpret_cast<const typename vector::word_type *>(at);
  vector loaded;
#pragma unroll
  /* Not by way of the read-only cache: in place the same memory is written. */
  for (int i = 0; i < vector::WORDS; ++i) loaded.word[i] = HINT == RG_CACHE_STREAM ? __ldcs(from + i) : from[i];
  return loaded;
}

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ void store_vector(char *at, const forward_vector<T, V> &vector) {
  static_assert(forward_vector<T, V>::WORDS == 1, "only tables have wider vectors");
  typename forward_vector<T, V>::word_type *to = reinterpret_cast<typename forward_vector<T, V>::word_type *>(at);
  if (HINT == RG_CACHE_STREAM) {
    __stcs(to, vector.word[0]);
  } else {
    *to = vector.word[0];
  }
}

template <typename T, int V>
static __device__ __forceinline__ void unpack_vector(const forward_vector<T, V> &vector, float (&value)[V]) {
  constexpr int N = forward_vector<T, V>::PER_WORD;
#pragma unroll
  for (int w = 0; w < forward_vector<T, V>::WORDS; ++w) {
    rg_packet<T, N> packet;
    float part[N];
    packet.word = vector.word[w];
    rg_unpack(packet, part);
#pragma unroll
    for (int i = 0; i < N; ++i) value[w * N + i] = part[i];
  }
}

template <typename T, int V>
static __device__ __forceinline__ forward_vector<T, V> pack_vector(const float (&value)[V]) {
  forward_vector<T, V> vector;
  vector.word[0] = rg_pack<T, V>(value).word;
  return vector;
}

/* ---- a lane's share of a row ---- */

template <typename T, int V>
struct lane_vectors {
  forward_vector<T, V> first, second;
};

template <int V>
struct lane_values {
  float first[V], second[V];
};

template <typename T, int V>
static __device__ __forceinline__ lane_values<V> unpack_lane(const lane_vectors<T, V> &lane) {
  lane_values<V> values;
  unpack_vector(lane.first, values.first);
  unpack_vector(lane.second, values.second);
  return values;
}

/* Pairs are neighbours within a vector. */
template <int V>
static __device__ __forceinline__ void rotate_neighbours(float (&x)[V], const float (&cosine)[V],
                                                         const float (&sine)[V]) {
#pragma unroll
  for (int i = 0; i < V; i += 2) {
    const rg_pair<float> y =
        rg_rotate<rg_once>(rg_pair<float>{x[i], x[i + 1]}, {cosine[i], cosine[i + 1]}, {sine[i], sine[i + 1]});
    x[i] = y.first;
    x[i + 1] = y.second;
  }
}

template <typename Kind>
static __device__ __forceinline__ lane_vectors<typename Kind::T, Kind::V> rotate_lane(
    const lane_vectors<typename Kind::T, Kind::V> &lane, const lane_values<Kind::V> &cosine,
    const lane_values<Kind::V> &sine) {
  lane_values<Kind::V> x = unpack_lane(lane);
  if (Kind::INTERLEAVED) {
    rotate_neighbours(x.first, cosine.first, sine.first);
    rotate_neighbours(x.second, cosine.second, sine.second);
  } else {
#pragma unroll
    for (int i = 0; i < Kind::V; ++i) {
      const rg_pair<float> y = rg_rotate<rg_once>(rg_pair<float>{x.first[i], x.second[i]},
                                                  {cosine.first[i], cosine.second[i]}, {sine.first[i], sine.second[i]});
      x.first[i] = y.first;
      x.second[i] = y.second;
    }
  }
  return {pack_vector<typename Kind::T, Kind::V>(x.first), pack_vector<typename Kind::T, Kind::V>(x.second)};
}

/* ---- where threads and rows are ---- */

struct forward_place {
  uint32_t b, s, head; /* the first of the thread's heads; the others follow `step` apart */
  uint32_t step;
  uint32_t first; /* the lane's first vector in a row */
  uint32_t apart; /* vectors from there to its second */
  bool rotates;
};

template <typename Kind>
static __device__ __forceinline__ forward_place place_of_thread(const rope_apply_forward_params &p) {
  const uint32_t lanes = Kind::LANES ? Kind::LANES : p.lanes.divisor, rows = Kind::ROWS ? Kind::ROWS : p.rows.divisor;
  const uint32_t slot = Kind::LANES ? threadIdx.x / Kind::LANES : rg_divide(threadIdx.x, p.lanes);
  const uint32_t group = Kind::ROWS ? slot / Kind::ROWS : rg_divide(slot, p.rows);
  const uint32_t lane = threadIdx.x - slot * lanes, row = slot - group * rows;
  const uint32_t pair_lanes = Kind::LANES ? Kind::LANES : p.pair_lanes;
  const uint32_t rest = rg_divide(blockIdx.x, p.inner), inner = blockIdx.x - rest * p.inner.divisor;
  forward_place at;
  at.b = rg_divide(rest, p.outer);
  const uint32_t outer = rest - at.b * p.outer.divisor;
  const uint32_t tile = p.chunks_inside ? outer : inner, chunk = p.chunks_inside ? inner : outer;
  at.s = tile * rows + row;
  at.step = Kind::GROUPS ? Kind::GROUPS : p.groups;
  at.head = chunk * (at.step * Kind::UNROLL) + group;
  at.rotates = Kind::LANES || lane < pair_lanes;
  at.first = at.rotates ? lane : lane + pair_lanes;
  at.apart = at.rotates ? pair_lanes : lanes - pair_lanes;
  return at;
}

/* The lane's first vector of its position in head 0. */
template <typename T, int V>
static __device__ __forceinline__ char *row_at(const rope_apply_forward_rows &rows, const forward_place &at) {
  return rows.data + at.b * rows.batch + at.s * rows.position + at.first * static_cast<uint32_t>(V * sizeof(T));
}

/* The same in each head of q and k, [0, heads). */
struct head_rows {
  char *q, *k;
  int64_t q_step, k_step;

  __device__ __forceinline__ char *at(uint32_t head, bool of_k) const {
    return (of_k ? k : q) + head * (of_k ? k_step : q_step);
  }
};

template <typename T, int V>
static __device__ __forceinline__ head_rows head_rows_at(const rope_apply_forward_rows &q,
                                                         const rope_apply_forward_rows &k, uint32_t heads_of_q,
                                                         const forward_place &at) {
  return {row_at<T, V>(q, at), row_at<T, V>(k, at) - heads_of_q * k.head, q.head, k.head};
}

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ lane_vectors<T, V> load_lane(const char *row, uint32_t apart) {
  return {load_vector<HINT, T, V>(row), load_vector<HINT, T, V>(row + apart * static_cast<uint32_t>(V * sizeof(T)))};
}

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ void store_lane(char *row, uint32_t apart, const lane_vectors<T, V> &lane) {
  store_vector<HINT>(row, lane.first);
  store_vector<HINT>(row + apart * static_cast<uint32_t>(V * sizeof(T)), lane.second);
}

template <typename Kind>
static __device__ __forceinline__ void forward(const rope_apply_forward_params &p) {
  typedef typename Kind::T T;
  typedef typename Kind::Table Table;
  constexpr int V = Kind::V;
  const forward_place at = place_of_thread<Kind>(p);
  if (at.s >= p.seq_len) return;
  const head_rows from = head_rows_at<T, V>(p.side[0].x, p.side[1].x, p.heads_of_q, at);
  lane_vectors<T, V> x[Kind::UNROLL];
#pragma unroll
  for (int u = 0; u < Kind::UNROLL; ++u) {
    const uint32_t head = at.head + u * at.step;
    if (head < p.heads) x[u] = load_lane<Kind::LOADS, T, V>(from.at(head, head >= p.heads_of_q), at.apart);
  }
  lane_values<V> cosine = {}, sine = {};
  if (at.rotates) {
    const auto c = load_lane<RG_CACHE_DEFAULT, Table, V>(row_at<Table, V>(p.cosine, at), at.apart);
    const auto s = load_lane<RG_CACHE_DEFAULT, Table, V>(row_at<Table, V>(p.sine, at), at.apart);
    cosine = unpack_lane(c);
    sine = unpack_lane(s);
  }
  const head_rows to = head_rows_at<T, V>(p.side[0].y, p.side[1].y, p.heads_of_q, at);
#pragma unroll
  for (int u = 0; u < Kind::UNROLL; ++u) {
    const uint32_t head = at.head + u * at.step;
    if (head >= p.heads) continue;
    const lane_vectors<T, V> y = at.rotates ? rotate_lane<Kind>(x[u], cosine, sine) : x[u];
    store_lane<Kind::STORES>(to.at(head, head >= p.heads_of_q), at.apart, y);
  }
}

#endif
