/* What the launcher and the kernels of rope_apply's forward pass share. The two sides are q and k. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_CUDA_H
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_CUDA_H

#include "ops/rope_apply/rope_apply_strided_rows.h"
#include "src/cuda/device_tensor.h"

/* ---- the tuned kernels: rows in vectors ---- */

enum {
  ROPE_APPLY_FORWARD_VECTOR_BYTES = 16,
  /* A block's threads at most. */
  ROPE_APPLY_FORWARD_THREADS = 512
};

typedef struct rope_apply_forward_side {
  rope_apply_rows x, y;
  uint32_t heads;
  uint32_t groups; /* of threads for them; a thread's heads are so far apart */
} rope_apply_forward_side;

/* A block's threads: [groups][rows][lanes], z, y and x; the blocks: [B][chunks][tiles], or with heads_inside
 * [B][tiles][chunks], where a tile is a block's rows and a chunk its groups. A lane owns two vectors of a row: of what
 * is rotated vector `lane` of either half, of what passes through likewise. */
typedef struct rope_apply_forward_params {
  /* What is needed first comes first, as in rope_apply_vectors_params. */
  uint32_t seq_len;
  uint32_t groups, groups_of_q;
  uint32_t pair_lanes; /* the lanes after them copy */
  bool heads_inside;
  rope_apply_forward_side side[2];
  rope_apply_rows cosine, sine;
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
