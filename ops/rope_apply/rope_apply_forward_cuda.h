/* What the launcher and the kernels of rope_apply's forward pass share. The two sides are q and k. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_CUDA_H
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_CUDA_H

#include "src/cuda/device_tensor.h"
#include "src/cuda/divide.h"

/* ---- the tuned kernels: rows in vectors ---- */

enum {
  ROPE_APPLY_FORWARD_VECTOR_BYTES = 16,
  /* head_dim of the kernels that have everything fixed. */
  ROPE_APPLY_FORWARD_FIXED_DIM = 128,
  /* A block's threads at most, in the kernels for any size of rows. */
  ROPE_APPLY_FORWARD_THREADS = 256,
  /* Heads of a thread in those. */
  ROPE_APPLY_FORWARD_UNROLL = 4
};

/* Rows of contiguous elements: [B, heads, S], or [B, S] of a table. Strides in bytes. */
typedef struct rope_apply_forward_rows {
  char *data;
  int64_t batch, head, position;
} rope_apply_forward_rows;

typedef struct rope_apply_forward_side {
  rope_apply_forward_rows x, y;
} rope_apply_forward_side;

/* A block's threads: [groups][rows][lanes]. A lane owns two vectors of a row: of what is rotated vector `lane` of either
 * half, of what passes through likewise. Blocks: [B][tiles][chunks] or [B][chunks][tiles], where a tile is `rows`
 * positions and a chunk groups * UNROLL heads. */
typedef struct rope_apply_forward_params {
  rope_apply_forward_side side[2];
  rope_apply_forward_rows cosine, sine;
  uint32_t heads_of_q; /* heads [0, heads_of_q) are those of q, [heads_of_q, heads) those of k */
  uint32_t heads, seq_len;
  rg_divider inner, outer; /* of a block's number: tiles and chunks in the order of the grid */
  bool chunks_inside;
  /* For the kernels for any size of rows: */
  rg_divider lanes, rows; /* of a thread's number */
  uint32_t groups;
  uint32_t pair_lanes; /* the lanes after them copy */
} rope_apply_forward_params;

/* ---- the general kernels ---- */

enum { ROPE_APPLY_FORWARD_GENERAL_THREADS = 256 };

typedef struct rope_apply_forward_general_params {
  rg_device_tensor x, y;
  rg_device_tensor cosine, sine; /* a batch stride of 0 where one table serves all */
  int64_t heads, positions;      /* positions: of all batches */
  int64_t seq_len, rotary_dim, head_dim;
  int64_t pair_chunks; /* of a row: `lanes` pairs each */
  int64_t pass_chunks; /* of a row: `lanes` columns past rotary_dim each */
  uint32_t lanes;      /* threads side by side along a row; a divisor of ROPE_APPLY_FORWARD_GENERAL_THREADS */
  bool interleaved;
} rope_apply_forward_general_params;

#endif
