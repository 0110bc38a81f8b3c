/* kv_cache_update_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_TUNE_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_TUNE_H

#include <stdbool.h>
#include <stdint.h>

/* Which of a dtype's tuned kernels. All but the last two are for head_dim 128, at most 8 heads, and every output. */
typedef enum kv_cache_update_how {
  KV_CACHE_UPDATE_IN_PLACE_FEW, /* blocks of 1 new row */
  KV_CACHE_UPDATE_IN_PLACE,     /* blocks of 2 */
  KV_CACHE_UPDATE_OUT_OF_PLACE,
  KV_CACHE_UPDATE_IN_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_OUT_OF_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_NUM_HOWS,
  KV_CACHE_UPDATE_IN_PLACE_WIDE = KV_CACHE_UPDATE_NUM_HOWS /* blocks of 4, 16-bit dtypes alone */
} kv_cache_update_how;

typedef struct kv_cache_update_shape {
  kv_cache_update_how how;
  /* How the kernel cuts its blocks up: columns of a thread in each half of a row, new rows, parts of the heads. */
  uint32_t vector, rows, parts;
  uint32_t gather_batches; /* batches that a block gathers */
  uint32_t pass_heads;     /* heads whose rows a block copies */
} kv_cache_update_shape;

typedef struct kv_cache_update_sizes {
  int64_t batches, heads, new_rows, cache_rows, head_dim;
  int element_bytes;
  bool in_place;
  bool all_wanted; /* every output is */
} kv_cache_update_sizes;

/* Ratios are latencies over the floor, from one sweep over the suite on an H200 (132 multiprocessors), bfloat16. It was
 * made before several looks at cache_position were on their way at a time (AHEAD of the kernels, there 1); since then
 * nothing was measured. What counts below a few thousand rows is whether all blocks reside at once: a second wave waits
 * for memory once more. */
static inline kv_cache_update_shape kv_cache_update_tune(int multiprocessors, const kv_cache_update_sizes *sizes) {
  if (sizes->head_dim != 128 || sizes->heads > 8 || !sizes->all_wanted) {
    /* Not measured. */
    return (kv_cache_update_shape){
        .how = sizes->in_place ? KV_CACHE_UPDATE_IN_PLACE_ANY_SIZE : KV_CACHE_UPDATE_OUT_OF_PLACE_ANY_SIZE,
        .vector = 4,
        .rows = 2,
        .parts = 4,
        .gather_batches = 1,
        .pass_heads = 8};
  }
  if (!sizes->in_place) {
    /* 1.095 over the suite; 1.06 where 70 MB and more are moved, 1.19 at 2 MB. One head a block 1.14 (each block looks
     * through cache_position), four 1.14 (too few blocks), eight columns a thread 1.10. */
    return (kv_cache_update_shape){
        .how = KV_CACHE_UPDATE_OUT_OF_PLACE, .vector = 4, .rows = 2, .parts = 8, .gather_batches = 1, .pass_heads = 2};
  }
  const kv_cache_update_shape few = {
      .how = KV_CACHE_UPDATE_IN_PLACE_FEW, .vector = 4, .rows = 1, .parts = 8, .gather_batches = 1, .pass_heads = 1};
  const kv_cache_update_shape many = {
      .how = KV_CACHE_UPDATE_IN_PLACE, .vector = 4, .rows = 2, .parts = 8, .gather_batches = 1, .pass_heads = 1};
  const kv_cache_update_shape wide = {
      .how = KV_CACHE_UPDATE_IN_PLACE_WIDE, .vector = 8, .rows = 4, .parts = 8, .gather_batches = 1, .pass_heads = 1};
  const int64_t rows = sizes->batches * sizes->new_rows;
  /* The more blocks the better: 1.36 to 1.40 at 1 to 32 rows (two rows a block 1.40 to 1.57), 1.20 at 422. */
  if (rows <= 4 * multiprocessors) return few;
  /* The rows that reside at once: 8 a multiprocessor (1.24 at 691 rows and 1.15 at 1024), 10 (1.22 at 1082) ... */
  if (rows <= 8 * multiprocessors) return many;
  if (rows <= 10 * multiprocessors) return few;
  /* ... and 16 (1.14 at 2048 rows; with 4 columns a thread 1.28). With a few waves it does not matter: 1.22 to 1.24. */
  if (rows <= 64 * multiprocessors && sizes->element_bytes == 2) return wide;
  /* 1.12 to 1.18 from 9,808 rows on; wide 0.01 more. */
  return many;
}

#endif
