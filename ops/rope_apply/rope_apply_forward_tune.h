/* rope_apply_forward_tune.h: launch shapes of the tuned kernels of the forward pass, a pure function of the sizes, and
 * the list of what is compiled. No result depends on the shape. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

/* The kernels that have everything fixed, for both sides:
 *
 *   X(payload, table, rows, groups, unroll, once)
 *
 * rows: positions of a block. groups: of threads, side by side, for heads; each thread has `unroll` of them, all asked
 * for before the first is used. once: 1 where the caches are asked to treat q, k and what becomes of them as used once.
 * A shape that rope_apply_forward_tune returns must be here. */
#define ROPE_APPLY_FORWARD_16_BIT_KERNELS(X, payload, table) \
  X(payload, table, 1, 20, 2, 1)                             \
  X(payload, table, 8, 4, 2, 0)                              \
  X(payload, table, 8, 2, 4, 0)

#define ROPE_APPLY_FORWARD_FIXED_KERNELS(X)        \
  X(f32, f32, 1, 10, 4, 0)                         \
  X(f32, f32, 4, 2, 4, 1)                          \
  X(f32, f32, 4, 2, 2, 1)                          \
  X(f32, f32, 4, 4, 2, 0)                          \
  X(f32, f32, 8, 2, 4, 0)                          \
  ROPE_APPLY_FORWARD_16_BIT_KERNELS(X, bf16, bf16) \
  ROPE_APPLY_FORWARD_16_BIT_KERNELS(X, bf16, f32)  \
  ROPE_APPLY_FORWARD_16_BIT_KERNELS(X, f16, f16)   \
  ROPE_APPLY_FORWARD_16_BIT_KERNELS(X, f16, f32)

typedef struct rope_apply_forward_shape {
  int rows, groups, unroll;
  bool once;
} rope_apply_forward_shape;

/* float32: H200, cold L2, latency in us, one run. b: batches, h: heads of q, s: positions a batch.
 *
 *   rows x groups x unroll   h32 s293  b2 s128  h32 s256  h64 s512  h32 s997  b4 s1571  b2 s2048
 *   used once:    1 x 10 x 4     4.89     4.53      4.51     11.91     13.08     71.40     46.81
 *                 4 x  2 x 4     4.78     4.48      4.50     11.66     12.65     69.60     45.69
 *                 4 x  2 x 2     4.84     4.57      4.60     11.43     12.45     69.49     45.30
 *                 4 x  4 x 2     4.83     4.54      4.56     11.56     12.54     69.84     45.83
 *   as usual:     1 x 10 x 4     4.97     4.65      4.62     11.98     13.14     67.79     44.57
 *                 4 x  4 x 2     4.87     4.60      4.59     11.68     12.66     66.86     43.91
 *                 8 x  2 x 4     4.90     4.66      4.65     11.70     12.68     66.84     44.17
 *
 * The shapes of 16-bit dtypes are not measured: they are what the backward pass without gradients of the tables was
 * fastest with, which moves the same bytes (rope_apply_tune.h). */
static inline rope_apply_forward_shape rope_apply_forward_tune(int64_t batches, int64_t seq_len, bool is_16_bit) {
  const int64_t positions = batches * seq_len;
  const bool few = positions <= 400;
  if (is_16_bit) {
    /* A block for each position, with all heads on their way at once, so that every multiprocessor has work. */
    if (few) return (rope_apply_forward_shape){.rows = 1, .groups = 20, .unroll = 2, .once = true};
    if (positions <= 4500) return (rope_apply_forward_shape){.rows = 8, .groups = 4, .unroll = 2};
    return (rope_apply_forward_shape){.rows = 8, .groups = 2, .unroll = 4};
  }
  if (few) return (rope_apply_forward_shape){.rows = 4, .groups = 2, .unroll = 4, .once = true};
  /* Short sequences lie close together for all heads. */
  if (seq_len <= 256) return (rope_apply_forward_shape){.rows = 1, .groups = 10, .unroll = 4};
  /* Neighbouring positions lie together, and groups of one block find the tables in the first-level cache. What is
   * stored and used next fits into L2 only up to here. */
  if (positions <= 1500) return (rope_apply_forward_shape){.rows = 4, .groups = 2, .unroll = 2, .once = true};
  if (positions <= 4500) return (rope_apply_forward_shape){.rows = 4, .groups = 4, .unroll = 2};
  return (rope_apply_forward_shape){.rows = 8, .groups = 2, .unroll = 4};
}

/* Rows and groups of the kernels for any size of rows: `lanes` threads a row, `unroll` heads a thread. */
typedef struct rope_apply_forward_vectors_shape {
  int64_t rows, groups;
} rope_apply_forward_vectors_shape;

static inline rope_apply_forward_vectors_shape rope_apply_forward_tune_vectors(int64_t positions, int64_t seq_len,
                                                                               int64_t heads, int64_t lanes,
                                                                               int64_t threads, int64_t unroll) {
  const int64_t slots = threads / lanes, useful = (heads + unroll - 1) / unroll;
  int64_t groups = positions <= 400 ? useful : 2;
  if (groups > useful) groups = useful;
  if (groups > slots) groups = slots;
  int64_t rows = positions <= 400 ? 1 : slots / groups;
  if (rows > seq_len) rows = seq_len;
  return (rope_apply_forward_vectors_shape){.rows = rows, .groups = groups};
}

#endif
