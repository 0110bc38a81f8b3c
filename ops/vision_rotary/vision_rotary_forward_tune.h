/* vision_rotary_forward_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_FORWARD_TUNE_H
#define ROPEGRAD_OPS_VISION_ROTARY_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct vision_rotary_forward_shape {
  uint32_t threads; /* of a block */
  bool twice;       /* a thread stores both halves of a row; else it has a packet of either */
  bool used_once;   /* ask the caches to treat what is written as used once */
} vision_rotary_forward_shape;

/* Not measured yet. A packet of either half: twice the threads, each with half the stores. With few patches blocks are
 * small, so that every multiprocessor has some. */
static inline vision_rotary_forward_shape vision_rotary_forward_tune(int multiprocessors, int64_t patches) {
  return (vision_rotary_forward_shape){
      .threads = patches / multiprocessors < 8 ? 64 : 128, .twice = false, .used_once = false};
}

#endif
