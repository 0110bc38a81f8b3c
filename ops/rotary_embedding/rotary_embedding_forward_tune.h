/* rotary_embedding_forward_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_TUNE_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rotary_embedding_forward_shape {
  uint32_t threads; /* of a block: a multiple of the 16 that a row takes */
  uint32_t rows;    /* of a thread: 1 or 2 */
  bool used_once;   /* ask the caches to treat what is written as used once */
} rotary_embedding_forward_shape;

/* Not measured yet. With few rows blocks are small, so that every multiprocessor has some. */
static inline rotary_embedding_forward_shape rotary_embedding_forward_tune(int multiprocessors, int64_t rows) {
  const int64_t far_beyond_the_cache = INT64_C(1) << 18; /* 268 MB of 1 KiB a row, in the suite's dtypes */
  return (rotary_embedding_forward_shape){
      .threads = rows / multiprocessors < 8 ? 64 : 128, .rows = 1, .used_once = rows < far_beyond_the_cache};
}

#endif
