/* cache_position as the tuned kernels read it. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_POSITIONS_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_POSITIONS_CUH

#include "ops/kv_cache_update/kv_cache_update_rows.cuh"

namespace kv_cache_update {

/* Are the entries of cache_position a run of consecutive rows, so that none is repeated? For the block. */
template <int AHEAD>
static __device__ __forceinline__ bool positions_run(const dense_params &p) {
  const uint32_t first = position_of(p, 0);
  uint32_t wrong = first >> 31;
  if (p.positions_in_pairs) {
    for_each_position<AHEAD>(
        p, 0, [&](uint32_t n, uint32_t lower, uint32_t upper) { wrong |= (lower ^ (first + n)) | upper; });
  } else {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < p.new_rows; i += blockDim.x) wrong |= position_of(p, i) ^ (first + i);
  }
  return __syncthreads_and(wrong == 0);
}

/* Do all entries name one of the p.new_rows cache rows from `first` on? For the block. */
template <int AHEAD>
static __device__ __forceinline__ bool positions_within(const dense_params &p, uint32_t first) {
  bool outside = false;
  if (p.positions_in_pairs) {
    for_each_position<AHEAD>(p, 0, [&](uint32_t, uint32_t lower, uint32_t upper) {
      outside = outside || upper != 0 || lower - first >= p.new_rows;
    });
  } else {
#pragma unroll 1
    for (uint32_t i = threadIdx.x; i < p.new_rows; i += blockDim.x) {
      outside = outside || static_cast<uint32_t>(position_of(p, i)) - first >= p.new_rows;
    }
  }
  return __syncthreads_and(!outside);
}

/* Sets named[m - first_row] for each row m of `rows` ones that cache_position names. */
template <int AHEAD>
static __device__ __forceinline__ void mark_named(const dense_params &p, uint32_t first_row, uint32_t rows,
                                                  char *named) {
  if (p.positions_in_pairs) {
    return for_each_position<AHEAD>(p, 0, [&](uint32_t, uint32_t lower, uint32_t upper) {
      if (upper == 0 && lower - first_row < rows) named[lower - first_row] = 1;
    });
  }
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < p.new_rows; i += blockDim.x) {
    const uint32_t at = position_of(p, i) - first_row;
    if (at < rows) named[at] = 1;
  }
}

}  // namespace kv_cache_update

#endif
