/* What the kernels for any size of rows have in common, forward and backward: vectors in memory and as numbers, and a
 * lane's share of a row. A lane is a thread that owns two vectors of each row of its heads. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_ROW_VECTOR_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_ROW_VECTOR_CUH

#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

/* V elements of T in memory: a word, or two where the tables are wider than q and k. */
template <typename T, int V>
struct row_vector {
  static constexpr int BYTES = V * sizeof(T) < 16 ? V * sizeof(T) : 16, WORDS = V * sizeof(T) / BYTES;
  static constexpr int PER_WORD = V / WORDS;
  typedef typename rg_word<BYTES>::type word_type;
  word_type word[WORDS];
};

/* READ_ONLY: by the read-only path, which is not for memory that the call writes: in place the forward pass writes what
 * it reads. */
template <rg_cache_hint HINT, typename T, int V, bool READ_ONLY = false>
static __device__ __forceinline__ row_vector<T, V> load_vector(const char *at) {
  typedef row_vector<T, V> vector;
  const typename vector::word_type *from = reinterpret_cast<const typename vector::word_type *>(at);
  vector loaded;
#pragma unroll
  for (int i = 0; i < vector::WORDS; ++i) {
    loaded.word[i] = HINT == RG_CACHE_STREAM ? __ldcs(from + i) : READ_ONLY ? __ldg(from + i) : from[i];
  }
  return loaded;
}

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ void store_vector(char *at, const row_vector<T, V> &vector) {
  typedef typename row_vector<T, V>::word_type word;
  word *to = reinterpret_cast<word *>(at);
#pragma unroll
  for (int i = 0; i < row_vector<T, V>::WORDS; ++i) {
    if (HINT == RG_CACHE_STREAM) {
      __stcs(to + i, vector.word[i]);
    } else {
      to[i] = vector.word[i];
    }
  }
}

template <typename T, int V>
static __device__ __forceinline__ void unpack_vector(const row_vector<T, V> &vector, float (&value)[V]) {
  constexpr int N = row_vector<T, V>::PER_WORD;
#pragma unroll
  for (int w = 0; w < row_vector<T, V>::WORDS; ++w) {
    rg_packet<T, N> packet;
    float part[N];
    packet.word = vector.word[w];
    rg_unpack(packet, part);
#pragma unroll
    for (int i = 0; i < N; ++i) value[w * N + i] = part[i];
  }
}

template <typename T, int V>
static __device__ __forceinline__ row_vector<T, V> pack_vector(const float (&value)[V]) {
  static_assert(row_vector<T, V>::WORDS == 1, "only tables have wider vectors, and nothing packs those");
  row_vector<T, V> vector;
  vector.word[0] = rg_pack<T, V>(value).word;
  return vector;
}

/* ---- a lane's share of a row ---- */

/* As it lies in memory. */
template <typename T, int V>
struct lane_vectors {
  row_vector<T, V> first, second;
};

/* As numbers. Its V pairs are the elements of both vectors with the same number, or neighbours within a vector. */
template <typename Real, int V>
struct lane_values {
  Real first[V], second[V];

  template <bool INTERLEAVED>
  __device__ __forceinline__ rg_pair<Real> pair(int i) const {
    if (!INTERLEAVED) return {first[i], second[i]};
    return i < V / 2 ? rg_pair<Real>{first[2 * i], first[2 * i + 1]}
                     : rg_pair<Real>{second[2 * i - V], second[2 * i - V + 1]};
  }
  template <bool INTERLEAVED>
  __device__ __forceinline__ void set_pair(int i, rg_pair<Real> pair) {
    if (!INTERLEAVED) {
      first[i] = pair.first;
      second[i] = pair.second;
    } else if (i < V / 2) {
      first[2 * i] = pair.first;
      first[2 * i + 1] = pair.second;
    } else {
      second[2 * i - V] = pair.first;
      second[2 * i - V + 1] = pair.second;
    }
  }
};

/* `apart`: bytes from the first vector to the second. */
template <rg_cache_hint HINT, typename T, int V, bool READ_ONLY = false>
static __device__ __forceinline__ lane_vectors<T, V> load_lane(const char *first, uint32_t apart) {
  return {load_vector<HINT, T, V, READ_ONLY>(first), load_vector<HINT, T, V, READ_ONLY>(first + apart)};
}

template <rg_cache_hint HINT, typename T, int V>
static __device__ __forceinline__ void store_lane(char *first, uint32_t apart, const lane_vectors<T, V> &lane) {
  store_vector<HINT>(first, lane.first);
  store_vector<HINT>(first + apart, lane.second);
}

template <typename T, int V>
static __device__ __forceinline__ lane_values<float, V> unpack_lane(const lane_vectors<T, V> &lane) {
  lane_values<float, V> values;
  unpack_vector(lane.first, values.first);
  unpack_vector(lane.second, values.second);
  return values;
}

template <typename T, int V>
static __device__ __forceinline__ lane_vectors<T, V> pack_lane(const lane_values<float, V> &values) {
  return {pack_vector<T, V>(values.first), pack_vector<T, V>(values.second)};
}

#endif
