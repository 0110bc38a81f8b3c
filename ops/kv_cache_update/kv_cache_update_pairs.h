/* Rows as pairs of columns: how they are fetched, staged and stored. Built once per level, as part of both directions.
 *
 * Rows come in the tensors' own dtypes, contiguous, with pair j where the style has it. What serves several heads, the
 * row of a table or of its gradient, is staged as rg_real, with the first elements of the pairs in one array and the
 * second in another. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H

#include "ops/kv_cache_update/kv_cache_update_rows.h"
#include "src/simd/pairs.h"

enum {
  /* So many heads take turns row by row. With gradient, key and result of each they are twelve streams of memory. A
   * copy in this order, without any arithmetic, took 127 us where one in the order of memory took 136; with eight heads
   * it took 145, with one 186 (8656 rows of 256 bytes, AVX-512, 2 threads). */
  HEADS_AT_ONCE = 4,
  /* A tile is so many rows at most, whose pairs are so many at most: at D = 128 eight rows. What is staged for them is
   * then 16 KiB in float32, half of a first-level cache. */
  TILE_ROWS = 8,
  TILE_PAIRS = 512
};

/* Runs the statements with S, a constant, set to the style. */
#define WITH_STYLE(style, S, ...)              \
  do {                                         \
    if ((style) == RG_STYLE_ROTATE_HALF) {     \
      const rg_style S = RG_STYLE_ROTATE_HALF; \
      __VA_ARGS__;                             \
    } else {                                   \
      const rg_style S = RG_STYLE_INTERLEAVED; \
      __VA_ARGS__;                             \
    }                                          \
  } while (0)

/* ---- rows in memory ---- */

/* Which pairs of a row, as runs of columns: rotate_half has one run for the first elements and one for the second,
 * which are one when they are whole halves; interleaved has one run. */
typedef struct pair_range {
  int64_t count;                       /* pairs */
  int64_t first_column, second_column; /* where the runs begin; interleaved: both the same */
  int64_t runs, run_columns;
} pair_range;

static inline pair_range range_of(rg_style style, int64_t rotary_dim, int64_t begin, int64_t count) {
  if (style == RG_STYLE_INTERLEAVED) return (pair_range){count, 2 * begin, 2 * begin, 1, 2 * count};
  const int64_t half = rotary_dim / 2;
  const int64_t runs = count == half ? 1 : 2;
  return (pair_range){count, begin, half + begin, runs, 2 * count / runs};
}

/* Contiguous rows of pairs, one per head. */
typedef struct pair_rows {
  char *first, *second; /* of head 0: first and second elements of the pairs; interleaved: `first` has both */
  int64_t head;         /* bytes from one head's row to the next one's */
} pair_rows;

/* Rows of a tile, HEADS_AT_ONCE of each, one after the other, in any dtype: none is larger than rg_real. */
typedef struct row_buffer {
  rg_real element[HEADS_AT_ONCE * 2 * TILE_PAIRS];
} row_buffer;

/* Row r of the buffer, of all heads. With interleaved pairs nobody looks at `second`. */
static inline pair_rows buffer_rows(row_buffer *buffer, int r, int64_t element, const pair_range *range) {
  const int64_t head = 2 * range->count * element;
  char *first = (char *)buffer->element + r * HEADS_AT_ONCE * head;
  return (pair_rows){first, first + range->count * element, head};
}

/* The pairs of the row of contiguous columns at `row`, and of those of other heads. */
static inline pair_rows rows_in_place(const row_view *v, char *row, const pair_range *range) {
  return (pair_rows){moved(row, range->first_column * v->element), moved(row, range->second_column * v->element),
                     v->head};
}

/* The pairs of `heads` rows, of which the first begins at `row`: in place where columns are contiguous, else gathered
 * into row r of the buffer. */
static inline pair_rows fetch_rows(const row_view *v, char *row, const pair_range *range, int heads, int r,
                                   row_buffer *buffer) {
  if (contiguous_columns(v)) return rows_in_place(v, row, range);
  const pair_rows rows = buffer_rows(buffer, r, v->element, range);
  for (int h = 0; h < heads; ++h, row += v->head) {
    char *to = rows.first + h * rows.head;
    copy_elements(v->element, to, v->element, row + range->first_column * v->column, v->column, range->run_columns);
    if (range->runs == 1) continue;
    copy_elements(v->element, to + range->run_columns * v->element, v->element, row + range->second_column * v->column,
                  v->column, range->run_columns);
  }
  return rows;
}

static inline void store_run(const row_view *v, char *to, const char *from, int64_t columns, bool stream) {
  if (contiguous_columns(v)) {
    copy_bytes(to, from, columns * v->element, stream);
  } else {
    copy_elements(v->element, to, v->column, from, v->element, columns);
  }
}

/* Writes what buffer_rows points to to `heads` rows, of which the first begins at `row`. */
static inline void store_rows(const row_view *v, char *row, const pair_range *range, int heads, bool stream,
                              pair_rows rows) {
  for (int h = 0; h < heads; ++h, row += v->head) {
    const char *from = rows.first + h * rows.head;
    store_run(v, row + range->first_column * v->column, from, range->run_columns, stream);
    if (range->runs == 1) continue;
    store_run(v, row + range->second_column * v->column, from + range->run_columns * v->element, range->run_columns,
              stream);
  }
}

/* ---- blocks of pairs: two vectors, or as many pairs as are left at the end of a row ---- */

enum { BLOCK_PAIRS = 2 * RG_VF_WIDTH };

/* In whole blocks of rotate_half the order of the pairs is the one that rg_vf_load_two has for the gradients' dtype,
 * `splits` (rg_vf_two_splits): in tables too, which may have another dtype. */
typedef struct pair_block {
  rg_pair lower, upper; /* upper: only with more than RG_VF_WIDTH pairs */
} pair_block;

RG_INLINE int64_t lower_pairs(int64_t pairs) { return pairs < RG_VF_WIDTH ? pairs : RG_VF_WIDTH; }

RG_INLINE pair_block load_block(bool splits, rg_dtype T, rg_style S, const char *first, const char *second, int64_t i,
                                int64_t pairs) {
  pair_block block = {{rg_vf_zero(), rg_vf_zero()}, {rg_vf_zero(), rg_vf_zero()}};
  if (S == RG_STYLE_ROTATE_HALF && pairs == BLOCK_PAIRS) {
    rg_vf_load_two_like(splits, T, rg_at_const(T, first, i), &block.lower.first, &block.upper.first);
    rg_vf_load_two_like(splits, T, rg_at_const(T, second, i), &block.lower.second, &block.upper.second);
    return block;
  }
  block.lower = rg_load_pairs(T, S, first, second, i, lower_pairs(pairs));
  if (pairs > RG_VF_WIDTH) block.upper = rg_load_pairs(T, S, first, second, i + RG_VF_WIDTH, pairs - RG_VF_WIDTH);
  return block;
}

/* May whole blocks of these rows be written past the caches? Each must fill whole lines. */
RG_INLINE bool can_stream_blocks(rg_style style, const pair_range *range, const row_view *v, pair_rows rows) {
  const uintptr_t places = (uintptr_t)rows.first | (uintptr_t)rows.second | (uintptr_t)rows.head | (uintptr_t)v->row;
  return style == RG_STYLE_ROTATE_HALF && range->count % BLOCK_PAIRS == 0 && places % RG_CACHE_LINE_BYTES == 0;
}

/* `stream`: past the caches, for blocks that are split as T is. */
RG_INLINE void store_block(bool splits, rg_dtype T, rg_style S, char *first, char *second, int64_t i, pair_block block,
                           int64_t pairs, bool stream) {
  if (S == RG_STYLE_ROTATE_HALF && pairs == BLOCK_PAIRS) {
    if (stream) {
      rg_vf_stream_two(T, rg_at(T, first, i), block.lower.first, block.upper.first);
      rg_vf_stream_two(T, rg_at(T, second, i), block.lower.second, block.upper.second);
    } else {
      rg_vf_store_two_like(splits, T, rg_at(T, first, i), block.lower.first, block.upper.first);
      rg_vf_store_two_like(splits, T, rg_at(T, second, i), block.lower.second, block.upper.second);
    }
    return;
  }
  rg_store_pairs(T, S, first, second, i, block.lower, lower_pairs(pairs));
  if (pairs > RG_VF_WIDTH) rg_store_pairs(T, S, first, second, i + RG_VF_WIDTH, block.upper, pairs - RG_VF_WIDTH);
}

/* Runs the statements for each block of `count` pairs, with constant `pairs` for all but the last. */
#define FOR_EACH_BLOCK(count, i, pairs, ...)               \
  do {                                                     \
    int64_t i = 0;                                         \
    for (; i + BLOCK_PAIRS <= (count); i += BLOCK_PAIRS) { \
      const int64_t pairs = BLOCK_PAIRS;                   \
      __VA_ARGS__;                                         \
    }                                                      \
    if (i < (count)) {                                     \
      const int64_t pairs = (count)-i;                     \
      __VA_ARGS__;                                         \
    }                                                      \
  } while (0)

/* ---- what is staged for a row ---- */

/* Arrays of `room` pairs, whole blocks: the first and the second elements of cos, then those of sin. */
enum { STAGED_COS = 0, STAGED_SIN = 2, STAGED_TABLE_HALVES = 4 };

static inline int64_t room_for(int64_t pairs) { return (pairs + BLOCK_PAIRS - 1) / BLOCK_PAIRS * BLOCK_PAIRS; }

/* Blocks that begin below `count`; the last may have lanes beyond, which nobody looks at. */
RG_INLINE pair_block load_staged(const rg_real *first, int64_t room, int64_t i) {
  const rg_real *second = first + room;
  const int64_t upper = i + RG_VF_WIDTH;
  return (pair_block){{rg_vf_load(RG_REAL_DTYPE, first + i), rg_vf_load(RG_REAL_DTYPE, second + i)},
                      {rg_vf_load(RG_REAL_DTYPE, first + upper), rg_vf_load(RG_REAL_DTYPE, second + upper)}};
}

RG_INLINE void store_staged(rg_real *first, int64_t room, int64_t i, pair_block block) {
  rg_real *second = first + room;
  const int64_t upper = i + RG_VF_WIDTH;
  rg_vf_store(RG_REAL_DTYPE, first + i, block.lower.first);
  rg_vf_store(RG_REAL_DTYPE, second + i, block.lower.second);
  rg_vf_store(RG_REAL_DTYPE, first + upper, block.upper.first);
  rg_vf_store(RG_REAL_DTYPE, second + upper, block.upper.second);
}

RG_INLINE void stage_as(bool splits, rg_dtype T, rg_style S, pair_rows from, rg_real *to, int64_t count) {
  const int64_t room = room_for(count);
  FOR_EACH_BLOCK(count, i, pairs,
                 store_staged(to, room, i, load_block(splits, T, S, from.first, from.second, i, pairs)));
}

static inline void stage(bool splits, rg_dtype dtype, rg_style style, pair_rows from, rg_real *to, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, stage_as(splits, T, S, from, to, count)));
}

RG_INLINE void unstage_as(bool splits, rg_dtype T, rg_style S, const rg_real *from, pair_rows to, int64_t count) {
  const int64_t room = room_for(count);
  FOR_EACH_BLOCK(count, i, pairs,
                 store_block(splits, T, S, to.first, to.second, i, load_staged(from, room, i), pairs, false));
}

static inline void unstage(bool splits, rg_dtype dtype, rg_style style, const rg_real *from, pair_rows to,
                           int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, unstage_as(splits, T, S, from, to, count)));
}

/* Asks for what a block of pairs, of a row like the present ones, will take. */
RG_INLINE void ask_for_block(rg_dtype T, const char *row, int64_t i) {
  const int64_t begin = 2 * i * (int64_t)RG_SIZE(T), bytes = 2 * BLOCK_PAIRS * (int64_t)RG_SIZE(T);
  for (int64_t line = 0; line < bytes && RG_VF_WIDTH > 1; line += RG_CACHE_LINE_BYTES)
    __builtin_prefetch(row + begin + line);
}

#endif
