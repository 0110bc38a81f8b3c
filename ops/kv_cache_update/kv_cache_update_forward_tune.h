/* kv_cache_update_forward_tune.h: launch shapes of the tuned kernels, a pure function of the sizes. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_TUNE_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_TUNE_H

#include <stdbool.h>
#include <stdint.h>

/* Which of a dtype's tuned kernels. All but those of any size are for head_dim 128, at most 8 heads in place, and both
 * caches. */
typedef enum kv_cache_update_forward_how {
  KV_CACHE_UPDATE_FORWARD_IN_PLACE,     /* blocks of 1 new row */
  KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE, /* a thread has 1 head at a time */
  KV_CACHE_UPDATE_FORWARD_IN_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ANY_SIZE,
  KV_CACHE_UPDATE_FORWARD_NUM_HOWS
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

/* H200, cold L2, bfloat16, 8 heads of 128, us, one run. b: batches, n: new rows, m: cache rows.
 *
 *   out of place            b2 n211   b2 n541  b8 n256  b4 n773  b32 n1    b1 n1
 *   heads x threads x block   m1024     m2048    m2048    m4096   m2048     m256
 *   1 x 128 x 1                6.26     12.00    36.41    38.10  133.39     2.60
 *   1 x 256 x 1                6.31     11.71    37.32    37.96  136.02     2.65
 *   1 x 128 x 2                7.37     12.28    36.97    38.04  135.95     3.28
 *   2 x 128 x 2                6.51     12.46    36.40    38.23  134.12     2.65
 *   2 x 256 x 2                6.60     12.19    37.37    38.08  137.06     2.92
 *   2 x 256 x 8                8.42     12.34    38.67    38.69  140.78     5.79
 *
 *   in place                b2 n211   b2 n541            b4 n773  b32 n512  b1 n1
 *   1 row, 8-byte accesses     3.16      4.82              10.76     40.27   1.50
 *   4 rows, 16-byte            3.41      5.00              10.49     41.05   2.03
 *
 * float32 and float16 were not swept. */
static inline kv_cache_update_forward_shape kv_cache_update_forward_tune(const kv_cache_update_forward_sizes *sizes) {
  const uint32_t widest = 16 / (uint32_t)sizes->element_bytes; /* accesses of 16 bytes */
  const bool fixed = sizes->head_dim == 128 && sizes->both_wanted;
  if (sizes->in_place && fixed && sizes->heads <= 8) {
    return (kv_cache_update_forward_shape){
        .how = KV_CACHE_UPDATE_FORWARD_IN_PLACE, .vector = 4, .rows = 1, .parts = 8, .block_batches = 1};
  }
  if (sizes->in_place) {
    return (kv_cache_update_forward_shape){
        .how = KV_CACHE_UPDATE_FORWARD_IN_PLACE_ANY_SIZE, .vector = widest, .rows = 2, .parts = 4, .block_batches = 1};
  }
  if (fixed) {
    return (kv_cache_update_forward_shape){
        .how = KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE, .vector = widest, .threads = 128, .block_heads = 1};
  }
  return (kv_cache_update_forward_shape){
      .how = KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ANY_SIZE, .vector = widest, .threads = 256, .block_heads = 2};
}

#endif
