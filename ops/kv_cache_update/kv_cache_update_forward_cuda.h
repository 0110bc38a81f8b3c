/* What kv_cache_update_forward's launcher and kernels share. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_CUDA_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_CUDA_H

#include "ops/kv_cache_update/kv_cache_update_cuda.h"

enum { KV_CACHE_UPDATE_FORWARD_MOST_THREADS = 256 /* of a block of the tuned kernels */ };

/* ---- tuned kernels: rows of contiguous columns ---- */

/* A cache that is not wanted is NULL, and so is what only it needs. */
typedef struct kv_cache_update_forward_dense_params {
  const char *cache_input[2], *states[2], *cos, *sin, *cache_position;
  char *cache[2];
  kv_cache_update_strides cache_input_at, cache_at, states_at, table_at;
  rg_cuda_error_word *error;
  uint32_t batches, heads, new_rows, cache_rows;
  uint32_t lanes; /* threads of a row */
  /* In place there are `row_groups` blocks, each with a few new rows, for each `block_batches` batches. Out of place
   * there are `row_groups` blocks, each with some cache rows, for each `block_heads` heads, of which a batch has
   * `head_groups` times as many. */
  kv_cache_update_divider row_groups, head_groups;
  uint32_t block_batches, block_heads;
  bool positions_are_32;   /* cache_position is int32, else int64 */
  bool positions_in_pairs; /* int64, aligned to 16 bytes */
} kv_cache_update_forward_dense_params;

/* ---- general kernels ---- */

typedef struct kv_cache_update_forward_general_params {
  rg_device_tensor cache_input[2], states[2], cache[2], cos, sin, cache_position;
  rg_cuda_error_word *error;
  int64_t batches, heads, new_rows, cache_rows, head_dim, rotary_dim;
  /* last[m - first_row] is 1 + the last new row that names cache row m, for `rows` cache rows from first_row on; the
   * launch treats only new rows that name one of these. NULL: each new row looks through those after it. */
  unsigned long long *last;
  int64_t first_row, rows;
  bool interleaved; /* else rotate_half */
} kv_cache_update_forward_general_params;

#endif
