/* What the tuned kernels of rope_apply have in common. A lane is a thread that owns two vectors of each row of a head:
 * ROPE_APPLY_VECTOR pairs, or what is copied past rotary_dim. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_LANES_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_LANES_CUH

#include "ops/rope_apply/rope_apply_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

/* ---- a lane's share of a row ---- */

/* As numbers: the first and second elements of its pairs. */
struct lane_pairs {
  float first[ROPE_APPLY_VECTOR], second[ROPE_APPLY_VECTOR];

  __device__ __forceinline__ rg_pair<float> at(int i) const { return {first[i], second[i]}; }
  __device__ __forceinline__ void set(int i, rg_pair<float> pair) {
    first[i] = pair.first;
    second[i] = pair.second;
  }
};

/* As it lies in memory: two vectors, at columns `first` and `second` of the row. Words and not rg_packets, whose unions
 * the compiler puts on the stack where they are set in one branch and used in another. */
template <typename T>
struct lane_packets {
  typedef typename rg_word<ROPE_APPLY_VECTOR * sizeof(T)>::type word;
  word first, second;
};

template <typename T>
static __device__ __forceinline__ T from_bits(uint32_t bits);
template <>
__device__ __forceinline__ __nv_bfloat16 from_bits(uint32_t bits) {
  return __ushort_as_bfloat16(static_cast<unsigned short>(bits));
}
template <>
__device__ __forceinline__ __half from_bits(uint32_t bits) {
  return __ushort_as_half(static_cast<unsigned short>(bits));
}
static __device__ __forceinline__ uint32_t to_bits(__nv_bfloat16 x) { return __bfloat16_as_ushort(x); }
static __device__ __forceinline__ uint32_t to_bits(__half x) { return __half_as_ushort(x); }

template <typename T>
static __device__ __forceinline__ void unpack_word(uint4 word, float (&x)[ROPE_APPLY_VECTOR]) {
  x[0] = __uint_as_float(word.x);
  x[1] = __uint_as_float(word.y);
  x[2] = __uint_as_float(word.z);
  x[3] = __uint_as_float(word.w);
}
template <typename T>
static __device__ __forceinline__ void unpack_word(uint2 word, float (&x)[ROPE_APPLY_VECTOR]) {
  x[0] = rg_to_real<float>(from_bits<T>(word.x));
  x[1] = rg_to_real<float>(from_bits<T>(word.x >> 16));
  x[2] = rg_to_real<float>(from_bits<T>(word.y));
  x[3] = rg_to_real<float>(from_bits<T>(word.y >> 16));
}

static __device__ __forceinline__ void pack_word(const float (&x)[ROPE_APPLY_VECTOR], float, uint4 *word) {
  *word = make_uint4(__float_as_uint(x[0]), __float_as_uint(x[1]), __float_as_uint(x[2]), __float_as_uint(x[3]));
}
template <typename T>
static __device__ __forceinline__ void pack_word(const float (&x)[ROPE_APPLY_VECTOR], T, uint2 *word) {
  *word = make_uint2(to_bits(rg_from_real<T>(x[0])) | to_bits(rg_from_real<T>(x[1])) << 16,
                     to_bits(rg_from_real<T>(x[2])) | to_bits(rg_from_real<T>(x[3])) << 16);
}

struct lane_columns {
  uint32_t first, second;
  bool interleaved; /* pairs are neighbours, and not element i of each vector */
};

template <rg_cache_hint HINT, typename T>
static __device__ __forceinline__ lane_packets<T> load_lane(const T *row, lane_columns columns) {
  return {rg_load_packet<HINT, T, ROPE_APPLY_VECTOR>(row + columns.first).word,
          rg_load_packet<HINT, T, ROPE_APPLY_VECTOR>(row + columns.second).word};
}

template <rg_cache_hint HINT, typename T>
static __device__ __forceinline__ void store_lane(T *row, lane_columns columns, const lane_packets<T> &packets) {
  rg_packet<T, ROPE_APPLY_VECTOR> first, second;
  first.word = packets.first;
  second.word = packets.second;
  rg_store_packet<HINT, T, ROPE_APPLY_VECTOR>(row + columns.first, first);
  rg_store_packet<HINT, T, ROPE_APPLY_VECTOR>(row + columns.second, second);
}

/* (a0 a1 a2 a3, b0 b1 b2 b3) to (a0 a2 b0 b2, a1 a3 b1 b3). */
static __device__ __forceinline__ void separate(lane_pairs &x) {
  const lane_pairs y = x;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    x.first[i] = y.first[2 * i];
    x.second[i] = y.first[2 * i + 1];
    x.first[i + 2] = y.second[2 * i];
    x.second[i + 2] = y.second[2 * i + 1];
  }
}

/* Undoes `separate`. */
static __device__ __forceinline__ void join(lane_pairs &x) {
  const lane_pairs y = x;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    x.first[2 * i] = y.first[i];
    x.first[2 * i + 1] = y.second[i];
    x.second[2 * i] = y.first[i + 2];
    x.second[2 * i + 1] = y.second[i + 2];
  }
}

template <typename T>
static __device__ __forceinline__ lane_pairs unpack_lane(const lane_packets<T> &packets, bool interleaved) {
  lane_pairs x;
  unpack_word<T>(packets.first, x.first);
  unpack_word<T>(packets.second, x.second);
  if (interleaved) separate(x);
  return x;
}

template <typename T>
static __device__ __forceinline__ lane_packets<T> pack_lane(lane_pairs x, bool interleaved) {
  if (interleaved) join(x);
  lane_packets<T> packets;
  pack_word(x.first, T(), &packets.first);
  pack_word(x.second, T(), &packets.second);
  return packets;
}

/* ---- where threads and rows are ---- */

struct tile_place {
  uint32_t b, s, rows; /* positions [s, s + rows) of batch b, and of those after it where the tile sums over them */
};

static __device__ __forceinline__ tile_place tile_of_block(const rope_apply_tiles &tiles) {
  const uint32_t b = rg_divide(blockIdx.x, tiles.count);
  const uint32_t tile = blockIdx.x - b * tiles.count.divisor;
  return {b, tile * tiles.rows + min(tile, tiles.longer), tiles.rows + (tile < tiles.longer)};
}

/* ---- the arithmetic ---- */

/* The cosines and sines of a lane's pairs; with same_half the two sines of a pair exchanged. */
struct lane_tables {
  lane_pairs cosine, sine;
};

/* What becomes of a lane's share of a row. */
template <typename T>
static __device__ __forceinline__ lane_packets<T> rotate_back(const lane_pairs &g, const lane_tables &tables,
                                                              bool interleaved) {
  lane_pairs grad_x;
#pragma unroll
  for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) {
    grad_x.set(i, rg_rotate_transpose<rg_once>(g.at(i), tables.cosine.at(i), tables.sine.at(i)));
  }
  return pack_lane<T>(grad_x, interleaved);
}

/* The sums of a thread over its heads. */
struct table_sums {
  lane_pairs cosine, sine;

  __device__ __forceinline__ void clear() { *this = table_sums(); }
  __device__ __forceinline__ void add(const lane_pairs &g, const lane_pairs &x) {
#pragma unroll
    for (int i = 0; i < ROPE_APPLY_VECTOR; ++i) {
      rg_pair<float> c = cosine.at(i), s = sine.at(i);
      rg_add_grad_cos<rg_once>(g.at(i), x.at(i), &c);
      rg_add_grad_sin<rg_once>(g.at(i), x.at(i), &s);
      cosine.set(i, c);
      sine.set(i, s);
    }
  }
};

/* Where the sums of a block's groups meet, and where the bulk copies of the pipelined kernels arrive: to places aligned
 * to less than a cache line the kernels took up to a third longer (measured, H200). */
extern __shared__ __align__(128) unsigned char rope_apply_shared[];

#endif
