/* rotary_embedding_forward_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_TUNE_H

#include <stdint.h>

/* Threads of a block, a multiple of the 16 that a row takes. H200, cold L2, us, one run:
 *
 *   threads, rows a thread   b1_s128  b1_s1321  b8_s449  b16_s613  b4_s3967  b64_s3011
 *   64, 1                       1.37      1.77     2.14      3.72      5.35      50.99
 *   128, 1                      1.37      1.76     2.13      3.58      5.07      50.88
 *   256, 1                      1.40      1.69     2.15      3.65      5.49      49.86
 *   128, 2                      1.53      1.81     2.21      3.74      5.19      50.81
 *
 * Stores marked as used once (.cs) were up to 3 % slower at the largest size and alike elsewhere. */
static inline uint32_t rotary_embedding_forward_tune_threads(int multiprocessors, int64_t rows) {
  const int64_t share = rows / multiprocessors;
  return share >= 8 && share < 20 ? 256 : 128;
}

#endif
