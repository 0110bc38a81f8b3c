/* What kv_cache_update's launcher and kernels share. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_CUDA_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_CUDA_H

#include <stdbool.h>

#include "src/cuda/device_error.h"
#include "src/cuda/device_tensor.h"

/* The keys' and the values' member of a pair of tensors. */
enum { KV_CACHE_UPDATE_KEY, KV_CACHE_UPDATE_VALUE };

/* ---- tuned kernels: rows of contiguous columns ---- */

/* Bytes from one batch, head or row of a tensor [B, Hk, rows, D] to the next. A table [B, rows, D] has head = 0. */
typedef struct kv_cache_update_strides {
  uint32_t batch, head, row;
} kv_cache_update_strides;

enum {
  KV_CACHE_UPDATE_VECTOR = 4,        /* columns of a thread, of each half of a row */
  KV_CACHE_UPDATE_FIXED_DIM = 128,   /* head_dim of the kernels whose sizes are fixed */
  KV_CACHE_UPDATE_FIXED_HEADS = 8,   /* heads that they take at most */
  KV_CACHE_UPDATE_MOST_LANES = 32,   /* threads of a row */
  KV_CACHE_UPDATE_MOST_HEADS = 32,   /* so that a fourth of them is added up in float32 */
  KV_CACHE_UPDATE_PASS_BYTES = 4096, /* neighbouring rows of one head, which a bulk copy passes through */
  KV_CACHE_UPDATE_TILE_BYTES = 2048  /* likewise, of new rows that are gathered */
};

/* Divides what is below 2^32 / divisor by `divisor`, which is not 0: by a multiplication, in a fraction of the time. */
typedef struct kv_cache_update_divider {
  uint32_t divisor, factor; /* 2^32 / divisor rounded down, plus 1; not used for a divisor of 1 */
} kv_cache_update_divider;

/* An output that is not wanted is NULL, and so is what only it needs. */
typedef struct kv_cache_update_dense_params {
  const char *grad_cache[2], *key_states, *cos, *sin, *cache_position;
  char *grad_cache_input[2], *grad_states[2], *grad_cos, *grad_sin;
  kv_cache_update_strides grad_cache_at, grad_cache_input_at, key_states_at, grad_states_at, table_at, grad_table_at;
  rg_cuda_error_word *error;
  uint32_t batches, heads, new_rows, cache_rows;
  uint32_t lanes; /* threads of a row: head_dim / 2 / KV_CACHE_UPDATE_VECTOR */
  /* Blocks that gather come first: `row_groups` for each `gather_batches` batches. */
  kv_cache_update_divider row_groups;
  uint32_t gather_batches, gather_blocks;
  /* Then those that copy what passes through: `pass_groups` for each `pass_heads` heads, of which a batch has
   * `head_groups` times as many. */
  kv_cache_update_divider pass_groups, head_groups;
  uint32_t pass_heads;
  bool positions_are_32;   /* cache_position is int32, else int64 */
  bool positions_in_pairs; /* int64, aligned to 16 bytes */
} kv_cache_update_dense_params;

/* ---- general kernels ---- */

/* A block of the kernel that sums: pairs of columns, and slices that their terms are dealt out to. */
enum { KV_CACHE_UPDATE_SUM_PAIRS = 32, KV_CACHE_UPDATE_SUM_SLICES = 8 };

typedef struct kv_cache_update_general_params {
  rg_device_tensor grad_cache[2], grad_cache_input[2], grad_states[2];
  rg_device_tensor key_states, cos, sin, grad_cos, grad_sin, cache_position;
  rg_cuda_error_word *error;
  int64_t batches, heads, new_rows, cache_rows, head_dim, rotary_dim;
  int64_t table_batches; /* of grad_cos and grad_sin: `batches`, or 1, which sums over them */
  bool interleaved;      /* else rotate_half */
  bool in_place;
  rg_dtype table_product; /* what a product with a table is rounded to; RG_DTYPE_NONE: it is not */
  rg_dtype key_product;   /* likewise with key_states */
} kv_cache_update_general_params;

#endif
