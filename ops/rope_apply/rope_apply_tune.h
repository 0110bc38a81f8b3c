/* rope_apply_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. The order of
 * every sum follows from the shape. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_TUNE_H
#define ROPEGRAD_OPS_ROPE_APPLY_TUNE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct rope_apply_sizes {
  int multiprocessors;             /* of the device */
  int64_t batches, seq_len, heads; /* of q and k together */
  bool bulk;                       /* the device has bulk copies and the layout suits them */
  bool plain;                      /* no gradient of a table is wanted */
  bool is_16_bit;                  /* q and k are bfloat16 or float16 */
} rope_apply_sizes;

/* One of rope_apply_shapes.h, and into how many tiles a batch is cut. */
typedef struct rope_apply_shape {
  bool pipeline;
  int rows, groups, depth;
  bool loads_once;
  int64_t tiles;
} rope_apply_shape;

static inline rope_apply_shape rope_apply_direct(const rope_apply_sizes *n, int rows, int groups, int unroll,
                                                 bool loads_once) {
  return (rope_apply_shape){.rows = rows,
                            .groups = groups,
                            .depth = unroll,
                            .loads_once = loads_once,
                            .tiles = (n->seq_len + rows - 1) / rows};
}

static inline rope_apply_shape rope_apply_pipeline(const rope_apply_sizes *n, int rows, int groups, int stages,
                                                   bool loads_once) {
  rope_apply_shape shape = rope_apply_direct(n, rows, groups, stages, loads_once);
  shape.pipeline = true;
  return shape;
}

/* `shape` in shorter tiles where that gives every multiprocessor `blocks` of them. */
static inline rope_apply_shape rope_apply_cut(const rope_apply_sizes *n, rope_apply_shape shape, int64_t blocks) {
  const int64_t tiles = blocks * n->multiprocessors / n->batches;
  if (shape.tiles < tiles) shape.tiles = tiles < n->seq_len ? tiles : n->seq_len;
  return shape;
}

/* The figures: time over that of the best plain copy of the same bytes, as `bench` finds it; H200 with 132
 * multiprocessors, L2 overwritten before each call. In brackets the positions, B x S, and the heads of the case.
 *
 * What was found: while the caches are cold the code itself comes from memory, and half the instructions took 1.31 to
 * 1.05 at 293 positions, so each shape is compiled apart. The more is on its way at once the better, up to 48 KiB a
 * block and 4 blocks a multiprocessor. Blocks of a second wave that is mostly empty cost up to 6 %. Stores that the
 * caches treat as used once gain 1 %; loads too, 2 %, where what is stored fits into L2. */
static inline rope_apply_shape rope_apply_tune_f32(const rope_apply_sizes *n) {
  const int64_t positions = n->batches * n->seq_len;
  /* All heads of a position on their way at once, in registers: 1.04 (256, 40), 1.06 (293, 40); as a pipeline 1.17. */
  if (positions <= 400) return rope_apply_direct(n, 1, 8, 5, true);
  /* Short sequences lie close together for all heads: 1.01 (32 x 128, 40), 1.03 (16 x 128, 40); as pipelines 1.03. */
  if (n->seq_len <= 256) return rope_apply_direct(n, 1, 20, 2, false);
  /* Without bulk copies: 1.07 (997, 40), 1.04 to 1.05 beyond. */
  if (!n->bulk) return rope_apply_direct(n, 4, 4, 2, false);
  /* 1.02 (512, 72). */
  if (positions <= 700) return rope_apply_pipeline(n, 1, 8, 6, true);
  /* As long as all blocks are resident: 1.02 (997, 40); 1.01 (1024, 64 and 72), with loads_once 1.03 to 1.05. */
  if (positions <= (int64_t)2 * 4 * n->multiprocessors) {
    return rope_apply_pipeline(n, 2, 4, 6, positions * n->heads <= 50000);
  }
  /* Two stages less make room for more blocks: in one run 1.06 (2 x 541, 40), one stage less 1.08. */
  if (positions <= (int64_t)2 * 5 * n->multiprocessors) return rope_apply_pipeline(n, 2, 4, 4, true);
  /* In two groups a sum would have more heads than float32 is trusted with: 1.03 (2048, 72), as pipelines of two rows
   * the same, of four 1.04. */
  if (n->heads > 48) return rope_apply_direct(n, 1, 20, 2, false);
  /* 1.03 (2053 and 2 x 1024, 40), uncut 1.03 to 1.04. */
  if (positions <= (int64_t)4 * 4 * n->multiprocessors) {
    return rope_apply_cut(n, rope_apply_pipeline(n, 4, 2, 6, false), 4);
  }
  /* 1.02 (2 x 2048, 40), as pipelines 1.03 and more. */
  if (positions <= 5000) return rope_apply_direct(n, 8, 2, 2, false);
  /* 1.02 (4 x 1571, 40). */
  return rope_apply_pipeline(n, 8, 2, 4, false);
}

/* Without the gradients of the tables: the time falls by 28 % (293 positions) to 34 %. The figures compare with a copy
 * of the fewer bytes. */
static inline rope_apply_shape rope_apply_tune_plain(const rope_apply_sizes *n) {
  const int64_t positions = n->batches * n->seq_len;
  if (n->is_16_bit) return rope_apply_direct(n, 1, 10, 4, true);                   /* not measured */
  if (positions <= 400) return rope_apply_direct(n, 1, 10, 4, true);               /* 1.00 (293, 40) */
  if (!n->bulk || n->seq_len <= 256) return rope_apply_direct(n, 1, 10, 4, false); /* 1.02 (32 x 128, 40) */
  if (positions <= 1500) return rope_apply_pipeline(n, 2, 4, 8, true);             /* 1.00 (997, 40) */
  if (positions <= 4500) return rope_apply_pipeline(n, 4, 2, 8, false);            /* 1.04 (2048, 72) */
  return rope_apply_pipeline(n, 6, 2, 8, false);                                   /* 1.02 (4 x 1571, 40) */
}

/* Measured with bfloat16 throughout; float16 and float32 tables are taken to be alike. With half the bytes for the same
 * work the chain from the loads to the tables shows more. */
static inline rope_apply_shape rope_apply_tune_16_bit(const rope_apply_sizes *n) {
  const int64_t positions = n->batches * n->seq_len;
  if (positions <= 400) return rope_apply_direct(n, 1, 10, 4, true);              /* 1.19 (293, 40) */
  if (positions <= 1100 && n->bulk) return rope_apply_pipeline(n, 2, 8, 4, true); /* 1.09 (512, 72) */
  if (positions <= 4500 || !n->bulk) return rope_apply_direct(n, 4, 4, 1, true);  /* 1.07 (2048, 72) */
  return rope_apply_pipeline(n, 4, 4, 6, false);                                  /* 1.05 (4 x 1571, 40) */
}

static inline rope_apply_shape rope_apply_tune(const rope_apply_sizes *sizes) {
  if (sizes->plain) return rope_apply_tune_plain(sizes);
  return sizes->is_16_bit ? rope_apply_tune_16_bit(sizes) : rope_apply_tune_f32(sizes);
}

/* Rows and groups of the kernels for any layout of rows: `lanes` threads a row. */
typedef struct rope_apply_vectors_shape {
  int64_t rows, groups;
} rope_apply_vectors_shape;

static inline rope_apply_vectors_shape rope_apply_tune_vectors(int64_t positions, int64_t seq_len, int64_t heads,
                                                               int64_t lanes) {
  int64_t slots = 256 / lanes; /* measured with 16 lanes, float32 and bfloat16: 1.1 to 1.6 */
  if (slots < 1) slots = 1;
  /* Few positions: a block for each, so that all multiprocessors have work. */
  int64_t rows = positions * lanes < 600 * 16 ? 1 : 4;
  if (rows == 1 && slots * lanes > 160 && lanes <= 16) slots = 160 / lanes;
  if (rows > seq_len) rows = seq_len;
  if (rows > slots) rows = slots;
  int64_t groups = slots / rows;
  if (groups > heads) groups = heads;
  return (rope_apply_vectors_shape){.rows = rows, .groups = groups < 1 ? 1 : groups};
}

#endif
