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
  if (positions <= 400) return rope_apply_direct(n, 1, 10, 4, true);               /* 1.00 (293, 40) */
  if (!n->bulk || n->seq_len <= 256) return rope_apply_direct(n, 1, 10, 4, false); /* 1.02 (32 x 128, 40) */
  if (positions <= 1500) return rope_apply_pipeline(n, 2, 4, 8, true);             /* 1.00 (997, 40) */
  if (positions <= 4500) return rope_apply_pipeline(n, 4, 2, 8, false);            /* 1.04 (2048, 72) */
  return rope_apply_pipeline(n, 6, 2, 8, false);                                   /* 1.02 (4 x 1571, 40) */
}

/* The positions from which 16-bit dtypes take a kernel with everything fixed: below, those for any size of rows are
 * shorter by up to 15 % (512 positions, 40 heads: 1.13; 1.28 as a pipeline). */
enum { ROPE_APPLY_FIXED_16_BIT_FROM = 1500 };

/* Measured with bfloat16 throughout; float16 and float32 tables are taken to be alike. */
static inline rope_apply_shape rope_apply_tune_16_bit(const rope_apply_sizes *n) {
  const int64_t positions = n->batches * n->seq_len;
  if (positions <= 4500 || !n->bulk) return rope_apply_direct(n, 4, 4, 1, true); /* 1.07 (2048, 72) */
  return rope_apply_pipeline(n, 4, 4, 6, false);                                 /* 1.05 (4 x 1571, 40) */
}

static inline rope_apply_shape rope_apply_tune(const rope_apply_sizes *sizes) {
  if (sizes->plain) return rope_apply_tune_plain(sizes);
  return sizes->is_16_bit ? rope_apply_tune_16_bit(sizes) : rope_apply_tune_f32(sizes);
}

/* ---- the kernels for any size and layout of rows ---- */

enum {
  /* Heads of a thread at once. */
  ROPE_APPLY_HEADS_HELD = 4,
  /* A block's threads at most. The long kernels, with sums in double beside the heads, need more registers. */
  ROPE_APPLY_VECTORS_THREADS = 512,
  ROPE_APPLY_LONG_THREADS = 256,
  /* A block's groups at most: its threads along z, of which CUDA allows no more. */
  ROPE_APPLY_VECTORS_GROUPS = 64
};

/* ROPE_APPLY_SHORT: no thread has more heads than it holds. ROPE_APPLY_LONG: any number of heads, and sums over the
 * batch. ROPE_APPLY_PLAIN: no gradient of a table is wanted, and any number of heads. */
typedef enum rope_apply_how { ROPE_APPLY_SHORT, ROPE_APPLY_LONG, ROPE_APPLY_PLAIN, ROPE_APPLY_HOWS } rope_apply_how;

typedef struct rope_apply_vectors_sizes {
  int multiprocessors;        /* of the device */
  int64_t positions, seq_len; /* positions: that blocks have to do, of all batches or of those that are summed over */
  int64_t heads[2];           /* of q and of k */
  int64_t lanes;              /* of a row */
  bool sums_batch;            /* the gradients of the tables sum over the batch */
  bool plain;                 /* no gradient of a table is wanted */
} rope_apply_vectors_sizes;

typedef struct rope_apply_vectors_shape {
  rope_apply_how how;
  int64_t lanes, rows; /* of a block */
  int64_t groups[2];   /* for q's heads and for k's */
} rope_apply_vectors_shape;

/* The figures: geometric mean, over 25 cases of the suite models and like them, of the time over that of the best copy
 * of the same bytes (H200, L2 overwritten before each call). What stands in one line was measured in one run.
 *
 *   heads of a thread: 4 1.23, 6 1.24, 8 1.24; with 2 it was the slowest. What more heads save at the sums they cost in
 *     code and registers.
 *   q, k and their gradients treated as used once 1.24, as usual 1.27
 *   vectors of 8 bytes of a 16-bit dtype 1.18, of 16 bytes 1.25, each at its best: half the threads, twice the sums
 *   sums of groups taken from shared memory eight at once 1.168, four 1.170; with 32 groups 1.43 and 1.45
 *   the tables asked for before the heads 1.168, after them 1.188
 *   the heads copied to shared memory and used in a loop: 1.29 to 1.36, in earlier forms of all; with one turn of the
 *     loop ahead of the data, so that the code is there when they are, no better
 */
static inline rope_apply_vectors_shape rope_apply_tune_vectors(const rope_apply_vectors_sizes *n) {
  rope_apply_vectors_shape shape = {
      .how = n->plain ? ROPE_APPLY_PLAIN : ROPE_APPLY_SHORT, .lanes = n->lanes, .rows = 1};
  for (int i = 0; i < 2; ++i) shape.groups[i] = (n->heads[i] + ROPE_APPLY_HEADS_HELD - 1) / ROPE_APPLY_HEADS_HELD;
  int64_t groups = shape.groups[0] + shape.groups[1];
  if (!n->plain && (n->sums_batch || groups > ROPE_APPLY_VECTORS_GROUPS)) shape.how = ROPE_APPLY_LONG;
  if (groups > ROPE_APPLY_VECTORS_GROUPS) { /* to each its share */
    for (int i = 0; i < 2; ++i) {
      const int64_t share = shape.groups[i] * (ROPE_APPLY_VECTORS_GROUPS - 1) / groups;
      if (shape.groups[i] > 0) shape.groups[i] = share > 0 ? share : 1;
    }
    groups = shape.groups[0] + shape.groups[1];
  }
  const int64_t most = shape.how == ROPE_APPLY_LONG ? ROPE_APPLY_LONG_THREADS : ROPE_APPLY_VECTORS_THREADS;
  while (shape.lanes * groups > most) shape.lanes = (shape.lanes + 1) / 2;
  /* Blocks of few threads share a multiprocessor less well: of 48 threads 1.29 (512 positions, 5 groups of 8 lanes), of
   * 160 1.25. But every multiprocessor, or nearly, is to have one. */
  while (2 * shape.rows * shape.lanes * groups <= (most < 320 ? most : 320) && 2 * shape.rows <= n->seq_len &&
         n->positions >= 2 * shape.rows * n->multiprocessors * 7 / 8) {
    shape.rows *= 2;
  }
  return shape;
}

#endif
