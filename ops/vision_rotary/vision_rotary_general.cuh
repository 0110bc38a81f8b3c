/* vision_rotary's general kernels: any strides and dtypes, any number of frequencies.
 *
 * A tile is up to 32 of the Q columns with the four pieces of a row that count towards them, a chunk a run of rows. A
 * block takes one tile of one chunk, neighbouring threads neighbouring columns, as many rows at a time as it has
 * threads for. Warps behind those blocks add up the chunks. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_GENERAL_CUH
#define ROPEGRAD_OPS_VISION_ROTARY_GENERAL_CUH

#include "ops/vision_rotary/vision_rotary_cuda.h"
#include "ops/vision_rotary/vision_rotary_partials.cuh"
#include "src/cuda/sincos.cuh"
#include "src/cuda/sum.cuh"

template <typename Real>
static __device__ __forceinline__ void store_result(const vision_rotary_general_params &p, int64_t column,
                                                    const rg_exact_sum &sum) {
  rg_store(p.grad_inv_freq, column * p.grad_inv_freq.stride[0], static_cast<Real>(sum.value()));
}

/* One term of the sum. Never inlined: what the caller holds would leave the sine's slow path too few registers. */
template <typename Real>
static __device__ __noinline__ double term(const vision_rotary_general_params &p, int64_t row, int64_t d, int axis) {
  const Real gradient = rg_angle_gradient(rg_load<Real>(p.grad_cos, rg_offset(p.grad_cos, row, d)),
                                          rg_load<Real>(p.grad_sin, rg_offset(p.grad_sin, row, d)),
                                          rg_load<Real>(p.emb, rg_offset(p.emb, row, d)));
  const Real position = static_cast<Real>(rg_load_index(p.pos_ids, rg_offset(p.pos_ids, row, axis)));
  return static_cast<double>(position) * static_cast<double>(gradient);
}

/* Every thread of the block comes here; `row` and `column` say where it stands in the tile. */
template <typename Real>
static __device__ __forceinline__ rg_exact_sum chunk_sum(const vision_rotary_general_params &p, int64_t chunk,
                                                         int64_t column, int row, int rows) {
  __shared__ rg_exact_sum sums[VISION_ROTARY_GENERAL_THREADS];
  const int64_t first = chunk * p.chunk_rows;
  const int64_t end = first + p.chunk_rows < p.patches ? first + p.chunk_rows : p.patches;
  rg_exact_sum sum = {};
  if (column < p.quarter) {
    for (int64_t at = first + row; at < end; at += rows) {
#pragma unroll 1
      for (int piece = 0; piece < 4; ++piece) sum.add(term<Real>(p, at, piece * p.quarter + column, piece % 2));
    }
  }
  sums[threadIdx.x] = sum;
  for (int step = rows / 2; step > 0; step /= 2) {
    __syncthreads();
    if (row < step) {
      sum.add(sums[threadIdx.x + step * p.tile_columns]);
      sums[threadIdx.x] = sum;
    }
  }
  return sum; /* in row 0 */
}

/* A warp adds up the chunks of one column. */
template <typename Real>
static __device__ __forceinline__ void collect_column(const vision_rotary_general_params &p, int64_t column) {
  const int lane = threadIdx.x % WARP;
  uint4 *cells = static_cast<uint4 *>(p.cells) + column * p.chunks;
  rg_exact_sum sum = {};
  for (int64_t chunk = lane; chunk < p.chunks; chunk += WARP) {
    longlong2 bits;
    do {
      bits = peek_doubles(cells + chunk);
    } while (bits.x == 0 || bits.y == 0);
    clear(cells + chunk);
    sum.add(rg_exact_sum{__longlong_as_double(bits.x), __longlong_as_double(bits.y)});
  }
  __syncwarp();
  for (int step = WARP / 2; step > 0; step /= 2) {
    sum.add(rg_exact_sum{__shfl_down_sync(~0u, sum.sum, step), __shfl_down_sync(~0u, sum.lost, step)});
  }
  if (lane == 0) store_result<Real>(p, column, sum);
}

template <typename Real>
static __device__ __forceinline__ void general(const vision_rotary_general_params &p) {
  const int64_t workers = p.chunks * p.tiles;
  if (blockIdx.x >= workers) {
    const int64_t column = ((blockIdx.x - workers) * blockDim.x + threadIdx.x) / WARP;
    if (column < p.quarter) collect_column<Real>(p, column);
    return;
  }
  const int64_t chunk = blockIdx.x / p.tiles, tile = blockIdx.x - chunk * p.tiles;
  const int row = threadIdx.x / p.tile_columns, rows = blockDim.x / p.tile_columns;
  const int64_t column = tile * p.tile_columns + (threadIdx.x - row * p.tile_columns);
  const rg_exact_sum sum = chunk_sum<Real>(p, chunk, column, row, rows);
  if (row != 0 || column >= p.quarter) return;
  if (p.chunks == 1) {
    store_result<Real>(p, column, sum);
  } else {
    double *cell = static_cast<double *>(p.cells) + 2 * (column * p.chunks + chunk);
    pass(cell, sum.sum);
    pass(cell + 1, sum.lost);
  }
}

#endif
