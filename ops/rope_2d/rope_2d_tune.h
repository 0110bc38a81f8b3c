/* rope_2d_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_ROPE_2D_TUNE_H
#define ROPEGRAD_OPS_ROPE_2D_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_2d_shape {
  uint32_t threads;
  bool used_once; /* ask the caches to treat what passes as used once */
} rope_2d_shape;

/* H200, cold L2, latency over the floor in the same run, geometric mean of the suite's 16 sizes:
 *
 *   threads                    64     128    256    512
 *   default loads and stores   1.016  1.015  1.010  1.013
 *   used once (.cs)            1.019  1.008  1.011  1.011
 *
 * Two vectors a thread cost 2 to 5 % at the small sizes, two elements a vector 3 %; mixed hints are worse than either.
 * At 805 MB (b64_s8192) the default is the faster by 1 %, where the L2 writes back in larger runs. */
static inline rope_2d_shape rope_2d_tune(int64_t elements) {
  const int64_t far_beyond_the_cache = INT64_C(1) << 25; /* 400 MB in the suite's dtypes */
  return (rope_2d_shape){.threads = 128, .used_once = elements < far_beyond_the_cache};
}

#endif
