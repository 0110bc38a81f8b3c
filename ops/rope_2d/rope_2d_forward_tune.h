/* rope_2d_forward_tune.h: launch shapes of the tuned kernels, a pure function of the sizes. */
#ifndef ROPEGRAD_OPS_ROPE_2D_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROPE_2D_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_2d_forward_shape {
  uint32_t threads; /* of a block */
  int packets;      /* of a thread: 1 or 2 */
  bool used_once;   /* ask the caches to treat what passes as used once */
} rope_2d_forward_shape;

/* Not measured yet: what the backward pass, which moves 12 bytes an element where this moves 8, was fastest with
 * (rope_2d_tune.h). */
static inline rope_2d_forward_shape rope_2d_forward_tune(int64_t elements) {
  const int64_t far_beyond_the_cache = INT64_C(1) << 25; /* 268 MB in the suite's dtypes */
  return (rope_2d_forward_shape){.threads = 128, .packets = 1, .used_once = elements < far_beyond_the_cache};
}

#endif
