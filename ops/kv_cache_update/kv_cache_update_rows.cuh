/* The tuned kernels of kv_cache_update have rows of contiguous columns, all of one dtype, rotate_half over the whole
 * row. This is what they share: how a block is cut up, where a thread stands, and its share of a row. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_CUH

#include "ops/kv_cache_update/kv_cache_update_pieces.cuh"

namespace kv_cache_update {

typedef kv_cache_update_dense_params dense_params;

enum { KEY = KV_CACHE_UPDATE_KEY, VALUE = KV_CACHE_UPDATE_VALUE, VECTOR = KV_CACHE_UPDATE_VECTOR };

/* A word is what a thread moves at a time where it does not matter which columns it has. */
enum { WORD_BYTES = sizeof(uint4) };

/* How a block that gathers is cut up. A thread has VECTOR columns of the first half of a row and the VECTOR columns of
 * the second half that they are paired with. */
template <typename T_, int LANES_, int ROWS_, int PARTS_, int HEADS_, bool IN_PLACE_, int AHEAD_>
struct block_shape {
  typedef T_ T;
  enum {
    VECTOR = KV_CACHE_UPDATE_VECTOR,
    LANES = LANES_, /* threads of a row; 0: known at run time, at most MOST_LANES */
    ROWS = ROWS_,   /* new rows of a block */
    PARTS = PARTS_, /* parts that the heads are dealt out to: part k has heads k, k + PARTS, ... */
    HEADS = HEADS_, /* of a part, all on their way at once; 0: any number, and any outputs that are wanted */
    MOST_LANES = LANES_ > 0 ? LANES_ : KV_CACHE_UPDATE_MOST_LANES,
    THREADS = MOST_LANES * ROWS * PARTS,         /* at most */
    WORDS = 2 * VECTOR * sizeof(T) / WORD_BYTES, /* of a thread's share of a row */
    IN_PLACE = IN_PLACE_,
    ANY_SIZE = HEADS == 0,
    AHEAD = AHEAD_ /* see for_each_position */
  };
};

enum : uint32_t { NO_ROW = UINT32_MAX };

template <typename S>
static __device__ __forceinline__ bool wants_sums(const dense_params &p) {
  return is_wanted<S>(p.grad_cos) || is_wanted<S>(p.grad_sin);
}

/* ---- a thread's columns of the row at `offset`, in bytes ---- */

template <rg_cache_hint HINT, typename S>
static __device__ __forceinline__ pieces<S> load_columns(const place<S> &at, const char *tensor, uint64_t offset) {
  return load_pieces<HINT, S>(at.lanes, tensor, offset + at.lane * VECTOR * sizeof(typename S::T));
}

template <typename S>
static __device__ __forceinline__ void store_columns(const place<S> &at, char *tensor, uint64_t offset,
                                                     const pieces<S> &stored) {
  store_pieces<S>(at.lanes, tensor, offset + at.lane * VECTOR * sizeof(typename S::T), stored);
}

/* ---- a thread's share of a row that is copied or cleared: whole words, half as many accesses as pieces take ---- */

template <typename S>
struct share {
  uint4 word[S::WORDS];
};

template <typename S>
static __device__ __forceinline__ share<S> load_share(const place<S> &at, const char *tensor, uint64_t offset) {
  share<S> loaded;
  const uint4 *from = reinterpret_cast<const uint4 *>(tensor + offset) + at.lane;
#pragma unroll
  for (int i = 0; i < S::WORDS; ++i) loaded.word[i] = __ldcs(from + i * at.lanes);
  return loaded;
}

template <typename S>
static __device__ __forceinline__ void store_share(const place<S> &at, char *tensor, uint64_t offset,
                                                   const share<S> &stored) {
  uint4 *to = reinterpret_cast<uint4 *>(tensor + offset) + at.lane;
#pragma unroll
  for (int i = 0; i < S::WORDS; ++i) to[i * at.lanes] = stored.word[i];
}

/* Zeroes new row n of grad_key_states and grad_value_states. */
template <typename S>
static __device__ __forceinline__ void zero_states(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                   uint32_t n) {
  const uint64_t offset = offset_of(p.grad_states_at, b, h, n);
#pragma unroll
  for (int kind = 0; kind < 2; ++kind) {
    if (is_wanted<S>(p.grad_states[kind])) store_share(at, p.grad_states[kind], offset, share<S>{});
  }
}

/* Zeroes cache row m. In place a thread clears no columns but those that it has read itself, as others may not yet
 * have read theirs: of the keys its pieces, of the values its share. */
template <typename S>
static __device__ __forceinline__ void zero_cache_row(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                      uint32_t m) {
  const uint64_t offset = offset_of(p.grad_cache_input_at, b, h, m);
  if (is_wanted<S>(p.grad_cache_input[KEY])) {
    if (S::IN_PLACE) {
      const float zero[VECTOR] = {};
      pieces<S> zeros;
      zeros.first = zeros.second = rg_pack<typename S::T, VECTOR>(zero);
      store_columns(at, p.grad_cache_input[KEY], offset, zeros);
    } else {
      store_share(at, p.grad_cache_input[KEY], offset, share<S>{});
    }
  }
  if (is_wanted<S>(p.grad_cache_input[VALUE])) store_share(at, p.grad_cache_input[VALUE], offset, share<S>{});
}

/* ---- the arithmetic ---- */

/* What four pairs add to the gradients of the tables. */
struct pair_sums {
  float cos_first[VECTOR], cos_second[VECTOR], sin_first[VECTOR], sin_second[VECTOR];
};

template <typename S>
struct table_pieces {
  pieces<S> cosine, sine;
};

template <typename S>
static __device__ __forceinline__ pieces<S> rotate_back(const pieces<S> &grad_key, const table_pieces<S> &tables) {
  typedef typename S::T T;
  float g1[VECTOR], g2[VECTOR], c1[VECTOR], c2[VECTOR], s1[VECTOR], s2[VECTOR];
  rg_unpack(grad_key.first, g1);
  rg_unpack(grad_key.second, g2);
  rg_unpack(tables.cosine.first, c1);
  rg_unpack(tables.cosine.second, c2);
  rg_unpack(tables.sine.first, s1);
  rg_unpack(tables.sine.second, s2);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    const rg_pair<float> g = {g1[i], g2[i]}, c = {c1[i], c2[i]}, s = {s1[i], s2[i]};
    const rg_pair<float> back = rg_rotate_transpose<rg_once>(g, c, s);
    g1[i] = back.first;
    g2[i] = back.second;
  }
  pieces<S> rotated;
  rotated.first = rg_pack<T, VECTOR>(g1);
  rotated.second = rg_pack<T, VECTOR>(g2);
  return rotated;
}

template <typename S>
static __device__ __forceinline__ void add_products(const pieces<S> &grad_key, const pieces<S> &key, pair_sums *sums) {
  float g1[VECTOR], g2[VECTOR], k1[VECTOR], k2[VECTOR];
  rg_unpack(grad_key.first, g1);
  rg_unpack(grad_key.second, g2);
  rg_unpack(key.first, k1);
  rg_unpack(key.second, k2);
#pragma unroll
  for (int i = 0; i < VECTOR; ++i) {
    rg_pair<float> cosine = {sums->cos_first[i], sums->cos_second[i]}, sine = {sums->sin_first[i], sums->sin_second[i]};
    const rg_pair<float> g = {g1[i], g2[i]}, k = {k1[i], k2[i]};
    rg_add_grad_cos<rg_once>(g, k, &cosine);
    rg_add_grad_sin<rg_once>(g, k, &sine);
    sums->cos_first[i] = cosine.first;
    sums->cos_second[i] = cosine.second;
    sums->sin_first[i] = sine.first;
    sums->sin_second[i] = sine.second;
  }
}

}  // namespace kv_cache_update

#endif
