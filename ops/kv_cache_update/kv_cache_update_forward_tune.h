/* kv_cache_update_forward_tune.h: launch shapes of the tuned kernels, a pure function of the device and the sizes. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_TUNE_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

/* Which of a dtype's tuned kernels. All but those of any size are for head_dim 128, at most 8 heads in place, and both
 * caches. */
typedef enum kv_cache_update_forward_how {
  KV_CACHE_UPDATE_FORWARD_IN_PLACE_FEW,          /* blocks of 1 new row */
  KV_CACHE_UPDATE_FORWARD_IN_PLACE,              /* blocks of 2 */
  KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ONE_HEAD, /* a thread has 1 head at a time */
  KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE,          /* 2 heads */
  KV_CACHE_UPDATE_FORWARD_IN_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_FORWARD_NUM_HOWS,
  KV_CACHE_UPDATE_FORWARD_IN_PLACE_WIDE = KV_CACHE_UPDATE_FORWARD_NUM_HOWS /* blocks of 4, 16-bit dtypes alone */
} kv_cache_update_forward_how;

typedef struct kv_cache_update_forward_shape {
  kv_cache_update_forward_how how;
  uint32_t vector; /* columns of a thread in each half of a row */
  /* In place: new rows of a block, parts that the heads are dealt out to, batches of a block. */
  uint32_t rows, parts, block_batches;
  /* Out of place: threads of a block at most, and heads that it copies. */
  uint32_t threads, block_heads;
} kv_cache_update_forward_shape;

typedef struct kv_cache_update_forward_sizes {
  int64_t batches, heads, new_rows, cache_rows, head_dim;
  int element_bytes;
  bool in_place;
  bool both_wanted; /* caches */
} kv_cache_update_forward_sizes;

/* Not measured yet: after what the backward pass's sweep showed (kv_cache_update_tune.h). In place, what counts is whether
 * all blocks reside at once, and below that their number; out of place, that there are some blocks for each
 * multiprocessor, and that each moves about 16 KiB for its look through cache_position. */
static inline kv_cache_update_forward_shape kv_cache_update_forward_tune(int multiprocessors,
                                                                         const kv_cache_update_forward_sizes *sizes) {
  const uint32_t widest = 16 / (uint32_t)sizes->element_bytes; /* accesses of 16 bytes */
  const bool fixed = sizes->head_dim == 128 && sizes->both_wanted;
  if (sizes->in_place) {
    if (!fixed || sizes->heads > 8) {
      return (kv_cache_update_forward_shape){.how = KV_CACHE_UPDATE_FORWARD_IN_PLACE_ANY_SIZE,
                                             .vector = widest,
                                             .rows = 2,
                                             .parts = 4,
                                             .block_batches = 1};
    }
    const int64_t rows = sizes->batches * sizes->new_rows;
    if (rows <= 16 * multiprocessors) {
      return (kv_cache_update_forward_shape){
          .how = KV_CACHE_UPDATE_FORWARD_IN_PLACE_FEW, .vector = 4, .rows = 1, .parts = 8, .block_batches = 1};
    }
    const bool wide = sizes->element_bytes == 2;
    return (kv_cache_update_forward_shape){
        .how = wide ? KV_CACHE_UPDATE_FORWARD_IN_PLACE_WIDE : KV_CACHE_UPDATE_FORWARD_IN_PLACE,
        .vector = widest,
        .rows = wide ? 4 : 2,
        .parts = 8,
        .block_batches = 1};
  }
  if (!fixed) {
    return (kv_cache_update_forward_shape){
        .how = KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ANY_SIZE, .vector = widest, .threads = 256, .block_heads = 2};
  }
  const int64_t row_bytes = sizes->batches * sizes->heads * sizes->cache_rows * 128 * sizes->element_bytes;
  if (row_bytes <= (int64_t)multiprocessors * 64 * 1024) {
    return (kv_cache_update_forward_shape){
        .how = KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ONE_HEAD, .vector = widest, .threads = 128, .block_heads = 1};
  }
  return (kv_cache_update_forward_shape){
      .how = KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE, .vector = widest, .threads = 256, .block_heads = 2};
}

#endif
