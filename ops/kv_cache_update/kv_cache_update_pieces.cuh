/* What the tuned kernels of both directions share: places, cache_position, and the pieces of rows that threads hold.
 *
 * P is the kernel's parameters, S its shape: a type T of elements, VECTOR columns of a thread in each half of a row, and
 * LANES threads of a row (0: known at run time). */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_PIECES_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_PIECES_CUH

#include "ops/kv_cache_update/kv_cache_update_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

namespace kv_cache_update {

typedef kv_cache_update_strides strides;

/* ---- places ---- */

static __device__ __forceinline__ uint32_t divide(uint32_t n, const kv_cache_update_divider &by) {
  return by.divisor == 1 ? n : __umulhi(n, by.factor);
}

template <typename S>
struct place {
  uint32_t lanes, lane, row, part;
  template <typename P>
  __device__ __forceinline__ explicit place(const P &p) {
    const uint32_t t = threadIdx.x;
    lanes = S::LANES > 0 ? S::LANES : p.lanes;
    lane = t % lanes;
    row = t / lanes % S::ROWS;
    part = t / (lanes * S::ROWS);
  }
};

static __device__ __forceinline__ uint64_t offset_of(const strides &s, uint32_t b, uint32_t h, uint32_t row) {
  return static_cast<uint64_t>(b) * s.batch + static_cast<uint64_t>(h) * s.head + static_cast<uint64_t>(row) * s.row;
}

/* Offset of this thread's first columns, in bytes. */
template <typename S>
static __device__ __forceinline__ uint64_t offset_of(const strides &s, const place<S> &at, uint32_t b, uint32_t h,
                                                     uint32_t row) {
  return offset_of(s, b, h, row) + at.lane * static_cast<uint32_t>(S::VECTOR * sizeof(typename S::T));
}

/* ---- cache_position ---- */

/* An entry of cache_position from its lower and its upper half; what 32 bits do not hold is -1, or is past the end of
 * any cache. */
static __device__ __forceinline__ int32_t narrow_position(int32_t lower, int32_t upper) {
  return upper == lower >> 31 ? lower : upper < 0 ? -1 : INT32_MAX;
}

/* Entry n of cache_position. */
template <typename P>
static __device__ __forceinline__ int32_t position_of(const P &p, uint32_t n) {
  if (p.positions_are_32) return reinterpret_cast<const int32_t *>(p.cache_position)[n];
  const int2 position = reinterpret_cast<const int2 *>(p.cache_position)[n];
  return narrow_position(position.x, position.y);
}

/* Gives the entries of cache_position, which are in pairs, from `first` or the one before on to take(n, lower half,
 * upper half) of the block's threads. AHEAD loads of a thread are on their way at a time: one after the other each would
 * wait for memory. */
template <int AHEAD, typename P, typename F>
static __device__ __forceinline__ void for_each_position(const P &p, uint32_t first, F take) {
  const uint4 *pair = reinterpret_cast<const uint4 *>(p.cache_position);
  const uint32_t pairs = p.new_rows / 2;
#pragma unroll 1
  for (uint32_t i = first / 2 + threadIdx.x; i < pairs; i += AHEAD * blockDim.x) {
    uint4 entries[AHEAD];
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      if (i + k * blockDim.x < pairs) entries[k] = pair[i + k * blockDim.x];
    }
#pragma unroll
    for (int k = 0; k < AHEAD; ++k) {
      const uint32_t n = 2 * (i + k * blockDim.x);
      if (n >= 2 * pairs) break;
      take(n, entries[k].x, entries[k].y);
      take(n + 1, entries[k].z, entries[k].w);
    }
  }
  if (p.new_rows % 2 != 0 && threadIdx.x == blockDim.x - 1) {
    const uint2 last = reinterpret_cast<const uint2 *>(p.cache_position)[p.new_rows - 1];
    take(p.new_rows - 1, last.x, last.y);
  }
}

/* The cache row of new row n; -1: none. An entry past the end is reported by one thread of each block that has it. */
template <typename S, typename P>
static __device__ __forceinline__ int32_t cache_row(const P &p, const place<S> &at, uint32_t n) {
  const int32_t position = position_of(p, n);
  if (position < static_cast<int32_t>(p.cache_rows)) return max(position, -1);
  if (at.lane == 0 && at.part == 0) atomicMax(p.error, RG_CUDA_ERROR_AT(n));
  return -1;
}

template <typename S>
static __device__ __forceinline__ bool is_wanted(const char *output) {
  return !S::ANY_SIZE || output != nullptr;
}

/* ---- pieces of rows ---- */

/* A thread's columns of a row, first and second elements of its pairs. */
template <typename S>
struct pieces {
  rg_packet<typename S::T, S::VECTOR> first, second;
};

/* As used once, except for tables, which all heads use. Caches never go through the path for constant data, which
 * RG_CACHE_DEFAULT takes: in place they are written as well. */
template <rg_cache_hint HINT, typename S>
static __device__ __forceinline__ pieces<S> load_pieces(uint32_t lanes, const char *tensor, uint64_t offset) {
  typedef typename S::T T;
  pieces<S> loaded;
  const T *from = reinterpret_cast<const T *>(tensor + offset);
  loaded.first = rg_load_packet<HINT, T, S::VECTOR>(from);
  loaded.second = rg_load_packet<HINT, T, S::VECTOR>(from + lanes * S::VECTOR);
  return loaded;
}

template <typename S>
static __device__ __forceinline__ void store_pieces(uint32_t lanes, char *tensor, uint64_t offset,
                                                    const pieces<S> &stored) {
  typedef typename S::T T;
  T *to = reinterpret_cast<T *>(tensor + offset);
  rg_store_packet<RG_CACHE_DEFAULT, T, S::VECTOR>(to, stored.first);
  rg_store_packet<RG_CACHE_DEFAULT, T, S::VECTOR>(to + lanes * S::VECTOR, stored.second);
}

/* Elements 4 * q to 4 * q + 3 of a packet. */
template <typename T, int N>
static __device__ __forceinline__ void unpack_quad(const rg_packet<T, N> &packet, int q, float (&value)[4]) {
  enum { PARTS = sizeof(T) };
  rg_packet<T, 4> quad;
#pragma unroll
  for (int i = 0; i < PARTS; ++i) quad.part[i] = packet.part[q * PARTS + i];
  rg_unpack(quad, value);
}
template <typename T, int N>
static __device__ __forceinline__ void pack_quad(rg_packet<T, N> *packet, int q, const float (&value)[4]) {
  enum { PARTS = sizeof(T) };
  const rg_packet<T, 4> quad = rg_pack<T, 4>(value);
#pragma unroll
  for (int i = 0; i < PARTS; ++i) packet->part[q * PARTS + i] = quad.part[i];
}

}  // namespace kv_cache_update

#endif
