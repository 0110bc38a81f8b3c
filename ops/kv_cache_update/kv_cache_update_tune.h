/* kv_cache_update_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_TUNE_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_TUNE_H

#include "ops/kv_cache_update/kv_cache_update_cuda.h"

/* Which of a dtype's tuned kernels. All but the last two are for head_dim 128, at most 8 heads, and every output; the
 * number is that of the new rows of a block. */
typedef enum kv_cache_update_how {
  KV_CACHE_UPDATE_IN_PLACE_1,
  KV_CACHE_UPDATE_IN_PLACE_2,
  KV_CACHE_UPDATE_IN_PLACE_4,
  KV_CACHE_UPDATE_IN_PLACE_TILES, /* by bulk copies */
  KV_CACHE_UPDATE_OUT_OF_PLACE_2, /* both copy what passes by bulk copies */
  KV_CACHE_UPDATE_OUT_OF_PLACE_4,
  KV_CACHE_UPDATE_IN_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_OUT_OF_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_NUM_HOWS
} kv_cache_update_how;

typedef struct kv_cache_update_shape {
  kv_cache_update_how how;
  uint32_t threads;        /* of a block */
  uint32_t rows;           /* new rows of a block that gathers */
  uint32_t gather_batches; /* batches of it */
  uint32_t pass_rows;      /* cache rows of a block that copies */
  uint32_t pass_heads;     /* heads of it */
  bool owns_rows;          /* blocks that gather answer for as many cache rows: kv_cache_update_fixed.cuh */
} kv_cache_update_shape;

typedef struct kv_cache_update_sizes {
  int64_t batches, heads, new_rows, cache_rows, head_dim;
  int64_t row_bytes;
  bool in_place;
  bool all_wanted; /* every output is */
  bool bulk;       /* the device has bulk copies and the layout suits them */
} kv_cache_update_sizes;

/* Any sizes; not measured. Two rows, and four parts of the heads. */
static inline kv_cache_update_shape kv_cache_update_tune_any_size(const kv_cache_update_sizes *sizes) {
  const uint32_t threads = (uint32_t)(sizes->head_dim / (2 * KV_CACHE_UPDATE_VECTOR)) * 2 * 4;
  return (kv_cache_update_shape){
      .how = sizes->in_place ? KV_CACHE_UPDATE_IN_PLACE_ANY_SIZE : KV_CACHE_UPDATE_OUT_OF_PLACE_ANY_SIZE,
      .threads = threads,
      .rows = 2,
      .gather_batches = 1,
      .pass_rows = threads * 16 / (uint32_t)sizes->row_bytes,
      .pass_heads = 8};
}

static inline kv_cache_update_shape kv_cache_update_tune_fixed(kv_cache_update_how how, uint32_t threads,
                                                               uint32_t rows) {
  return (kv_cache_update_shape){
      .how = how, .threads = threads, .rows = rows, .gather_batches = 1, .pass_rows = 1, .pass_heads = 2};
}

/* Figures are times over that of the best plain copy of the same bytes; bfloat16, H200 with 132 multiprocessors, cold
 * caches, all shapes by turns in one run, which leaves their code cold too. In brackets the new rows, B x N. */

static inline kv_cache_update_shape kv_cache_update_tune_in_place(int multiprocessors,
                                                                  const kv_cache_update_sizes *sizes) {
  const int64_t rows = sizes->batches * sizes->new_rows;
  const uint32_t tile_rows = (uint32_t)(KV_CACHE_UPDATE_TILE_BYTES / sizes->row_bytes);
  const kv_cache_update_shape one = kv_cache_update_tune_fixed(KV_CACHE_UPDATE_IN_PLACE_1, 128, 1);
  const kv_cache_update_shape two = kv_cache_update_tune_fixed(KV_CACHE_UPDATE_IN_PLACE_2, 256, 2);
  const kv_cache_update_shape four = kv_cache_update_tune_fixed(KV_CACHE_UPDATE_IN_PLACE_4, 256, 4);
  const kv_cache_update_shape tiles =
      kv_cache_update_tune_fixed(KV_CACHE_UPDATE_IN_PLACE_TILES, 16 * tile_rows, tile_rows);
  if (sizes->new_rows == 1) return one; /* of a batch */
  /* The more blocks the better: 1.31 to 1.39 (1 to 32), two rows a block 1.46 to 1.61; 1.27 and 1.32 (422). */
  if (rows <= 4 * multiprocessors) return one;
  /* What counts up to here is whether all blocks reside at once: 1.32 and one row a block 1.34 (691). */
  if (rows <= 6 * multiprocessors) return two;
  /* 1.16 and two rows a block 1.17 (1024). Eight blocks reside at a time: with a few rows more, 1.49 (1082). */
  if (rows <= 8 * multiprocessors) return one;
  /* 1.18, two rows a block 1.27, tiles 1.26 (2048). */
  if (rows <= 22 * multiprocessors || sizes->new_rows < 4 * tile_rows) return four;
  if (!sizes->bulk || sizes->new_rows > sizes->cache_rows) return four;
  /* `bench`, which calls one kernel again and again: 1.15 (3092), 1.13 (3592), 1.19 (4096), 1.16 (9808), 1.12 (14704
   * and 16384), 1.10 (65536); before there were tiles 1.21, 1.19, 1.22, 1.22, 1.22, 1.16 and 1.24. By turns with others
   * 1.10 to 1.21; in registers, four rows a block 1.16 to 1.24 at best, two rows 1.18 to 1.32. Tiles of 4 KiB are as
   * good from 9808 rows on, those of 1 KiB worse by 0.02; three stages instead of six 0.01 to 0.1 worse, eight up to
   * 0.12. */
  return tiles;
}

static inline kv_cache_update_shape kv_cache_update_tune_out_of_place(int multiprocessors,
                                                                      const kv_cache_update_sizes *sizes) {
  /* 1.10 (293 and 691), 1.17, 1.11 and 1.01 (1, 4 and 32: what passes is nearly all); two rows a block 1.13 and 1.18,
   * and 1.16, 1.10 and 1.01. Without bulk copies 1.13 to 1.16 (293 to 691). From 1024 rows on two rows a block are
   * better by up to 0.01: 1.02 to 1.06 where 70 MB and more are moved, 1.13 (4096), 1.16 (1082). Heads a block that
   * copies: one 0.03 worse, four 0.07. */
  const bool few = sizes->batches * sizes->new_rows <= 6 * multiprocessors;
  kv_cache_update_shape shape = few ? kv_cache_update_tune_fixed(KV_CACHE_UPDATE_OUT_OF_PLACE_4, 256, 4)
                                    : kv_cache_update_tune_fixed(KV_CACHE_UPDATE_OUT_OF_PLACE_2, 256, 2);
  shape.pass_rows = (uint32_t)(KV_CACHE_UPDATE_PASS_BYTES / sizes->row_bytes);
  shape.owns_rows = true;
  return shape;
}

static inline kv_cache_update_shape kv_cache_update_tune(int multiprocessors, const kv_cache_update_sizes *sizes) {
  if (sizes->head_dim != KV_CACHE_UPDATE_FIXED_DIM || sizes->heads > KV_CACHE_UPDATE_FIXED_HEADS ||
      !sizes->all_wanted) {
    return kv_cache_update_tune_any_size(sizes);
  }
  if (sizes->in_place) return kv_cache_update_tune_in_place(multiprocessors, sizes);
  if (!sizes->bulk || sizes->new_rows > sizes->cache_rows) return kv_cache_update_tune_any_size(sizes);
  return kv_cache_update_tune_out_of_place(multiprocessors, sizes);
}

#endif
