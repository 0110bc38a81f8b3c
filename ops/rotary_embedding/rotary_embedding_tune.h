/* rotary_embedding_tune.h: launch shapes of the tuned kernels, a pure function of the device, dtype and sizes. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_TUNE_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_TUNE_H

#include <stdbool.h>
#include <stdint.h>

#include "ropegrad/ropegrad_dev.h"

typedef struct rotary_embedding_shape {
  int lanes;            /* of a row: 16 or 8 */
  bool gradients_later; /* with 8 lanes: ask for the gradients when the angles have come */
  uint32_t threads;     /* of a block */
} rotary_embedding_shape;

/* H200 (132 multiprocessors), bfloat16, cold L2: latency over that of a plain copy in the same run, by sizes:
 *
 *   rows                     128    1321   2048   3592   8192   9808   15868  32744  192704  524288
 *   rows a multiprocessor    1      10     16     27     62     74     120    248    1460    3972
 *   16 lanes, 192 threads    1.09   1.11   1.11   1.05   1.04   1.04   1.01   1.03   1.07    1.07
 *   16 lanes, 384            1.14   1.07   1.06   1.05   1.04   1.04   1.03   1.03   1.05    1.06
 *   8 lanes, 256             1.17   1.07   1.07   1.05   1.02   1.05   1.03   1.03   1.04    1.06
 *   8 lanes, 384             1.22   1.10   1.06   1.03   1.04   1.03   1.03   1.03   1.05    1.06
 *   8 lanes, 512             1.33   1.14   1.10   1.02   1.03   1.06   1.02   1.02   1.05    1.06
 *   8 lanes, later, 192                           1.14   1.05   1.04   1.00   1.00   1.04    1.06
 *
 * With few rows their own latency is all: 16 lanes, and blocks small enough for a multiprocessor each. With more, 8
 * lanes ask for 16 bytes each at once, and fewer instructions serve a row. Past one wave of blocks the arithmetic of
 * some rows hides behind the loads of others, the better the earlier the angles come. At the two largest sizes the
 * loads alone, without arithmetic and stores, take 1.05 to 1.06.
 *
 * Also tried: 32 lanes a row, 2 or 4 rows a lane, and blocks that stay and ask for the next rows before the arithmetic
 * of these (1 to 10 % slower); tiles brought to shared memory by bulk copies (9 to 30 %); fetching 256 bytes into the
 * L2 (no difference). */
static inline rotary_embedding_shape rotary_embedding_tune(int multiprocessors, rg_dtype gradients, int64_t rows) {
  const int64_t load = rows / multiprocessors;
  if (load < 4) return (rotary_embedding_shape){.lanes = 16, .threads = 192};
  /* 8 lanes would read 32 bytes of float32 each, in two loads with gaps: 2 % slower at 8192 rows. */
  if (gradients == RG_F32) return (rotary_embedding_shape){.lanes = 16, .threads = 256};
  if (load < 22) return (rotary_embedding_shape){.lanes = 16, .threads = 384};
  if (load < 40) return (rotary_embedding_shape){.lanes = 8, .threads = 512};
  if (load < 68) return (rotary_embedding_shape){.lanes = 8, .threads = 256};
  if (load < 90) return (rotary_embedding_shape){.lanes = 8, .threads = 384};
  return (rotary_embedding_shape){.lanes = 8, .gradients_later = true, .threads = 192};
}

#endif
