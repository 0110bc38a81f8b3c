/* rope_2d_forward_tune.h: launch shapes of the tuned kernels, a pure function of the sizes. */
#ifndef ROPEGRAD_OPS_ROPE_2D_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROPE_2D_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_2d_forward_shape {
  uint32_t threads; /* of a block */
  bool used_once;   /* ask the caches to treat what passes as used once */
} rope_2d_forward_shape;

/* H200, cold L2, geometric mean in us of seven of the suite's sizes, one run:
 *
 *   threads                          64    128    256    512
 *   used once (.cs), 1 packet         -   6.23   6.25   6.28
 *   default, 1 packet                 -   6.24   6.25      -
 *   used once (.cs), 2 packets     6.39   6.38   6.42      -
 *
 * At b64_s8192 (537 MB) .cs takes 135 to 140 us and default loads and stores 129. */
static inline rope_2d_forward_shape rope_2d_forward_tune(int64_t elements) {
  const int64_t far_beyond_the_cache = INT64_C(1) << 25; /* 268 MB in the suite's dtypes */
  return (rope_2d_forward_shape){.threads = 128, .used_once = elements < far_beyond_the_cache};
}

#endif
