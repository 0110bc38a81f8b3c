/* What vision_rotary's launcher and kernels share. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_CUDA_H
#define ROPEGRAD_OPS_VISION_ROTARY_CUDA_H

#include "src/cuda/device_tensor.h"

/* Blocks leave partial sums for each other in cells of the context's workspace: a cell has those of one block for a few
 * outputs. */
enum {
  VISION_ROTARY_CELL_BYTES = 16,
  VISION_ROTARY_CELL_OUTPUTS = 4, /* of the dense kernels: float32 sums. The general ones have one, in two doubles */
  VISION_ROTARY_CLUSTER = 16,     /* blocks */
  VISION_ROTARY_GENERAL_THREADS = 256
};

/* Rows of contiguous columns: row p of grad_cos starts p * grad_cos_stride elements after the first, and so on. */
typedef struct vision_rotary_dense_params {
  const void *grad_cos, *grad_sin;
  const float *emb;
  const int64_t *pos_ids;
  float *grad_inv_freq;
  void *cells; /* [outputs / VISION_ROTARY_CELL_OUTPUTS rounded up, blocks] */
  int32_t patches;
  int32_t block_rows;
  int32_t quarter;    /* Q = D / 4 */
  int32_t poll_delay; /* cycles from the collector's own sums to its first look at the others' */
  int32_t grad_cos_stride, grad_sin_stride, emb_stride, pos_ids_stride;
} vision_rotary_dense_params;

typedef struct vision_rotary_general_params {
  rg_device_tensor grad_cos, grad_sin, emb, pos_ids, grad_inv_freq;
  void *cells; /* [quarter, chunks]; not used where there is one chunk */
  int64_t patches, quarter;
  int64_t chunks, chunk_rows;
  int64_t tiles;        /* of tile_columns of the Q columns each */
  int32_t tile_columns; /* a power of two, at most 32 */
} vision_rotary_general_params;

#endif
