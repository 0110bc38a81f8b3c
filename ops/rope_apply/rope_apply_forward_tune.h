/* rope_apply_forward_tune.h: launch shapes of the tuned kernels of the forward pass, a pure function of the device and
 * the sizes. No result depends on the shape. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_apply_forward_sizes {
  int64_t cache_bytes;   /* L2 of the device */
  int64_t written_bytes; /* of q_embed and k_embed */
  int64_t seq_len;
  int64_t lanes; /* of a row */
} rope_apply_forward_sizes;

typedef struct rope_apply_forward_shape {
  bool once;            /* the caches are asked to treat q, k and what becomes of them as used once */
  int heads;            /* of a thread, which asks for all of them before it uses the first */
  int64_t rows, groups; /* of a block */
} rope_apply_forward_shape;

/* Heads of a thread where all is used once, and where it is not. */
enum { ROPE_APPLY_FORWARD_HEADS_ONCE = 2, ROPE_APPLY_FORWARD_HEADS_KEPT = 1 };

/* Time over that of the best copy of the same bytes, geometric mean (H200, L2 overwritten before each call), two groups
 * a block:
 *
 *   heads of a thread, treated as   2, used once   2, as usual   1, used once   1, as usual
 *   16-bit, 24 cases of models        1.08            1.08           1.11          1.12
 *   float32, up to 20 MB written      1.04            1.06           1.05          1.08
 *   float32, 42 MB and more           1.07            1.05           1.07          1.03
 *
 * From where what is stored no longer fits into L2 beside what is read, the order of the two ends turns. Blocks of 128
 * threads were as good as of 256 for 16-bit dtypes, and better by 1 % for float32; two groups as good as four. */
static inline rope_apply_forward_shape rope_apply_forward_tune(const rope_apply_forward_sizes *n) {
  enum { THREADS = 128, GROUPS = 2 };
  const bool once = n->written_bytes <= n->cache_bytes / 2;
  rope_apply_forward_shape shape = {.once = once,
                                    .heads = once ? ROPE_APPLY_FORWARD_HEADS_ONCE : ROPE_APPLY_FORWARD_HEADS_KEPT,
                                    .rows = THREADS / GROUPS / n->lanes,
                                    .groups = GROUPS};
  if (shape.rows > n->seq_len) shape.rows = n->seq_len;
  if (shape.rows < 1) shape.rows = 1;
  return shape;
}

#endif
