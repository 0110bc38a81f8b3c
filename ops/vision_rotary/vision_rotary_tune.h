/* vision_rotary_tune.h: launch shapes, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_TUNE_H
#define ROPEGRAD_OPS_VISION_ROTARY_TUNE_H

#include <stdbool.h>
#include <stdint.h>

/* The tuned kernels, in the order of each dtype's in vision_rotary_cuda.c. The number is the rows of a block. */
typedef enum vision_rotary_kernel {
  VISION_ROTARY_CLUSTER16,
  VISION_ROTARY_CLUSTER24,
  VISION_ROTARY_CLUSTER48,
  VISION_ROTARY_BLOCKS16,
  VISION_ROTARY_BLOCKS24,
  VISION_ROTARY_BLOCKS32,
  VISION_ROTARY_BLOCKS64,
  VISION_ROTARY_BLOCKS96,
  VISION_ROTARY_MANY,
  VISION_ROTARY_ROWS, /* any number of columns, any row stride */
  VISION_ROTARY_DENSE_KERNELS
} vision_rotary_kernel;

typedef struct vision_rotary_shape {
  vision_rotary_kernel kernel;
  int32_t slots;      /* rows of a block that are side by side */
  int32_t vector;     /* columns of a lane */
  int64_t blocks;     /* at least 1 */
  int32_t poll_delay; /* cycles; see vision_rotary_cuda.h */
  bool clustered;
} vision_rotary_shape;

typedef struct vision_rotary_tuning {
  int64_t most_patches;
  vision_rotary_kernel kernel;
  int32_t slots, vector, rows, poll_delay; /* rows: of a lane */
  bool clustered;
} vision_rotary_tuning;

/* A cluster of 16 blocks: compute capability 9.0 and 10.x have them, where some processing cluster has 16
 * multiprocessors, as one of the 8 must that share 128 or more. */
static inline bool vision_rotary_has_clusters(int compute_capability, int multiprocessors) {
  return compute_capability >= 90 && compute_capability < 110 && multiprocessors >= 128;
}

/* The suite's 72 columns, packed. The ratios to the floor come from sweeps on an H200 (CUPTI, cold L2, float32), in
 * which these were the best of some 20 shapes a size or within 3 % of it. A cluster passes sums on faster than the
 * second-level cache (1.35 against 1.58 at 256 patches), but has only 16 multiprocessors to read with. Of the delays 0,
 * 150, ... 600, 800 and 1000 these were the best or as good. */
static inline vision_rotary_shape vision_rotary_tune(int compute_capability, int multiprocessors, int64_t patches) {
  static const vision_rotary_tuning table[] = {
      /* 16 multiprocessors hold all rows at once; 8-byte loads, so that a thread has the least to compute: 1.34 to
       * 1.35 at 131 to 256 patches, 1.39 at 324 */
      {256, VISION_ROTARY_CLUSTER16, 16, 2, 1, 0, true},
      {384, VISION_ROTARY_CLUSTER24, 24, 2, 1, 0, true},
      /* two rows a lane: 1.46 at 541, 1.53 at 768, where 16 multiprocessors take as long to read as blocks on all of
       * them to pass sums on (1.60) */
      {768, VISION_ROTARY_CLUSTER48, 24, 2, 2, 0, true},
      /* at most 64 blocks, so that a collector's lane has two cells: 1.60 at 773, 1.55 at 1024 */
      {1024, VISION_ROTARY_BLOCKS16, 16, 2, 1, 450, false},
      {1536, VISION_ROTARY_BLOCKS24, 24, 2, 1, 450, false}, /* 1.58 at 1087, 1.54 at 1163 */
      {2048, VISION_ROTARY_BLOCKS32, 32, 4, 1, 300, false}, /* 1.49 at 2048 */
      /* at most 128 blocks, four cells a lane: 1.40 at 6144, 1.37 at 8192 */
      {8192, VISION_ROTARY_BLOCKS64, 32, 4, 2, 600, false},
      {12288, VISION_ROTARY_BLOCKS96, 48, 4, 2, 450, false}, /* 1.32 at 12288 */
  };
  enum { ROWS = sizeof table / sizeof table[0] };
  const bool clusters = vision_rotary_has_clusters(compute_capability, multiprocessors);
  for (int k = 0; k < ROWS; ++k) {
    const vision_rotary_tuning *t = &table[k];
    if (patches > t->most_patches || (t->clustered && !clusters)) continue;
    const int64_t rows = (int64_t)t->slots * t->rows, blocks = (patches + rows - 1) / rows;
    return (vision_rotary_shape){.kernel = t->kernel,
                                 .slots = t->slots,
                                 .vector = t->vector,
                                 .blocks = t->clustered ? 16
                                           : blocks < 1 ? 1
                                                        : blocks,
                                 .poll_delay = t->poll_delay,
                                 .clustered = t->clustered};
  }
  /* Not measured: each block many rows, and 256 blocks to keep the memory busy. */
  return (vision_rotary_shape){
      .kernel = VISION_ROTARY_MANY, .slots = 32, .vector = 4, .blocks = 256, .poll_delay = 450, .clustered = false};
}

/* Other numbers of columns, other row strides: not measured. 32 rows at a time, up to 256 blocks. */
static inline vision_rotary_shape vision_rotary_tune_rows(int64_t patches) {
  enum { BLOCK_ROWS = 32, MOST_BLOCKS = 256 };
  const int64_t blocks = (patches + BLOCK_ROWS - 1) / BLOCK_ROWS;
  return (vision_rotary_shape){.kernel = VISION_ROTARY_ROWS,
                               .slots = 16,
                               .vector = 4,
                               .blocks = blocks < 1             ? 1
                                         : blocks < MOST_BLOCKS ? blocks
                                                                : MOST_BLOCKS,
                               .poll_delay = 450,
                               .clustered = false};
}

#endif
