/* What rope_apply's launcher and kernels share. The two sides are q and k. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_CUDA_H
#define ROPEGRAD_OPS_ROPE_APPLY_CUDA_H

#include "ops/rope_apply/rope_apply_strided_rows.h"
#include "src/cuda/device_tensor.h"
#include "src/cuda/divide.h"

/* ---- the tuned kernels ---- */

enum {
  /* Elements of a vector: 16 bytes of float32, 8 of the 16-bit dtypes. */
  ROPE_APPLY_VECTOR = 4,
  /* Elements of a row that a lane (a thread) owns. */
  ROPE_APPLY_LANE = 2 * ROPE_APPLY_VECTOR,
  /* So many heads at most are summed in float32 before the sum goes to a double: the error stays near 4 roundings even
   * where all terms are alike. */
  ROPE_APPLY_HEADS_PER_SUM = 24,
  /* head_dim of the kernels that have everything fixed. */
  ROPE_APPLY_FIXED_DIM = 128
};

typedef struct rope_apply_side {
  rope_apply_rows grad_y;
  rope_apply_rows x;      /* not read where no gradient of a table is wanted */
  rope_apply_rows grad_x; /* data NULL: not wanted */
  uint32_t heads, groups;
} rope_apply_side;

/* A block's tile is a few positions of one batch: the tiles of a batch have `rows` positions, the first `longer` of
 * them one more. */
typedef struct rope_apply_tiles {
  rg_divider count; /* of a batch */
  uint32_t rows, longer;
} rope_apply_tiles;

/* The kernels for any size and layout of rows. A block's threads: [groups][rows][lanes], z, y and x. The blocks:
 * [B][parts of a row][tiles], z, y and x, where a part has the block's lanes and a tile its rows. A lane owns two
 * vectors of a row: of what is rotated vector `lane` of either half, of what passes through likewise. */
typedef struct rope_apply_vectors_params {
  /* What is needed first comes first: a line of 64 bytes less to wait for made the suite models 2 % faster. */
  uint32_t seq_len;
  uint32_t lanes;      /* of a row */
  uint32_t pair_lanes; /* of what is rotated; the lanes after them copy */
  uint32_t groups_of_q;
  uint32_t batches; /* that a block sums over */
  /* 0. What is found by it is loaded, several at once; what the compiler knows the place of is an operand, and each one
   * that is not in the constant cache yet holds up the warp: 1 %. */
  uint32_t none;
  bool same_half;
  rope_apply_side side[2];
  rope_apply_rows table[2], grad_table[2]; /* of cos, of sin */
} rope_apply_vectors_params;

/* The kernels with everything fixed that can be: all of head_dim is rotated in the style rotate_half, and the tensors
 * of a side have the same strides, as have cos and sin, and their gradients. Strides in bytes; no tensor is larger than
 * 4 GiB. A block's threads: [GROUPS][ROWS][LANES], known to the compiler. */
typedef struct rope_apply_fixed_side {
  const char *grad_y;
  const char *x;
  char *grad_x; /* NULL: not wanted */
  uint32_t batch, head, position;
} rope_apply_fixed_side;

typedef struct rope_apply_fixed_params {
  rope_apply_fixed_side side[2];
  uint32_t heads_of_q, heads;
  rope_apply_tiles tiles;
  const char *cosine, *sine;
  uint32_t table_batch, table_position;
  uint32_t grad_table_batch, grad_table_position;
  char *grad_table[2]; /* of cos, of sin; NULL: not wanted */
  bool same_half;
} rope_apply_fixed_params;

/* ---- the general kernels ---- */

enum { ROPE_APPLY_GENERAL_THREADS = 256 };

typedef struct rope_apply_general_side {
  rg_device_tensor grad_y, x, grad_x;
  int64_t heads; /* 0 where the side has no part in what is wanted */
} rope_apply_general_side;

typedef struct rope_apply_general_params {
  rope_apply_general_side side[2];
  rg_device_tensor table[2];      /* cos, sin; a batch stride of 0 where one table serves all */
  rg_device_tensor grad_table[2]; /* of cos, of sin; likewise */
  bool sums_batch[2];             /* that gradient sums over the batch */
  int64_t positions;              /* batch * seq_len + position; where something sums over the batch, S of them */
  int64_t batches;                /* that each of them goes through */
  int64_t seq_len, rotary_dim, head_dim;
  int64_t pair_chunks; /* of a row: `lanes` pairs each */
  int64_t pass_chunks; /* of a row: `lanes` columns past rotary_dim each */
  uint32_t lanes;      /* threads side by side along a row; a divisor of ROPE_APPLY_GENERAL_THREADS */
  bool interleaved, same_half;
} rope_apply_general_params;

#endif
