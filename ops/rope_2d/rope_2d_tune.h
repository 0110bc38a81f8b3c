/* rope_2d_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_ROPE_2D_TUNE_H
#define ROPEGRAD_OPS_ROPE_2D_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_2d_shape {
  uint32_t threads;
  bool used_once; /* ask the caches to treat what passes as used once */
} rope_2d_shape;

/* H200, cold L2, latency over the plain copies of the same run, geometric mean of the suite's 16 sizes, two runs:
 *
 *   threads                    64     128            256            512
 *   default loads and stores   1.016  1.015  1.014   1.010   -     1.013  1.017
 *   used once (.cs)            1.019  1.008  1.012   1.011  1.010   1.011  1.015
 *
 * Tried besides: huge angles and the partial vector in a function of their own (1.014 at the least), loads that fetch
 * 256 bytes into the L2 (1.014), two or four vectors a thread (1.02 and more), eight elements a vector, two elements a
 * vector (1.03). At 805 MB (b64_s8192) default loads and stores are among the fastest and .cs is not. */
static inline rope_2d_shape rope_2d_tune(int64_t elements) {
  const int64_t far_beyond_the_cache = INT64_C(1) << 25; /* 400 MB in the suite's dtypes */
  return (rope_2d_shape){.threads = 128, .used_once = elements < far_beyond_the_cache};
}

#endif
