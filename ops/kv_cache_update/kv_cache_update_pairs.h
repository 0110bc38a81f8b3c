/* The rotation of new rows and their sums over heads, on pairs of columns. Built once per level, as part of
 * kv_cache_update_cpu.c.
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
  /* The most terms that are summed in rg_real before they go to a wider total: so few that even if all have one sign
   * and all roundings one direction, the error stays below 4 u times the sum. */
  HEADS_PER_SUM = 8,
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

/* Eight arrays of `room` pairs, whole blocks: the first and the second elements of cos, of sin, and of the sums so far
 * of grad_cos and grad_sin. */
enum {
  STAGED_COS = 0,
  STAGED_SIN = 2,
  SUM_COS = 4,
  SUM_SIN = 6,
  STAGED_HALVES = 8,
  SUM_HALVES = STAGED_HALVES - SUM_COS
};

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

/* ---- some new rows of a few heads ---- */

typedef struct head_group {
  int heads, rows;
  int64_t count; /* pairs of a row */
  bool wants_states, wants_sums;
  bool stream;                 /* states: past the caches, see can_stream_blocks */
  rg_real *staged[TILE_ROWS];  /* the sums over these heads are added to those that are there */
  pair_rows grad[TILE_ROWS];   /* of the cache rows */
  pair_rows states[TILE_ROWS]; /* with wants_states, written: grad rotated back */
  pair_rows key[TILE_ROWS];    /* with wants_sums */
  /* Rows to come, of the first head, as far from those of the other heads as in grad and key. Their lines are asked for
   * on the way. Addresses past the end of a tensor do no harm here. */
  const char *next_grad[TILE_ROWS], *next_key[TILE_ROWS];
} head_group;

/* Asks for what a block of pairs, of a row like the present ones, will take. */
RG_INLINE void ask_for_block(rg_dtype T, const char *row, int64_t i) {
  const int64_t begin = 2 * i * (int64_t)RG_SIZE(T), bytes = 2 * BLOCK_PAIRS * (int64_t)RG_SIZE(T);
  for (int64_t line = 0; line < bytes && RG_VF_WIDTH > 1; line += RG_CACHE_LINE_BYTES)
    __builtin_prefetch(row + begin + line);
}

/* One block of the tables, and of the sums, serves all heads before the next one. */
RG_INLINE void gather_row(rg_dtype T, rg_style S, rg_dtype table_product, rg_dtype key_product, const head_group *w,
                          int r) {
  const pair_rows grad = w->grad[r], states = w->states[r], key = w->key[r];
  const int64_t room = room_for(w->count);
  rg_real *staged = w->staged[r];
  rg_real *sum_cos = staged + SUM_COS * room, *sum_sin = staged + SUM_SIN * room;
  FOR_EACH_BLOCK(w->count, i, pairs, {
    const rg_pair zero = {rg_vf_zero(), rg_vf_zero()};
    const pair_block none = {zero, zero};
    const pair_block c = w->wants_states ? load_staged(staged + STAGED_COS * room, room, i) : none;
    const pair_block s = w->wants_states ? load_staged(staged + STAGED_SIN * room, room, i) : none;
    pair_block grad_cos = w->wants_sums ? load_staged(sum_cos, room, i) : none;
    pair_block grad_sin = w->wants_sums ? load_staged(sum_sin, room, i) : none;
    for (int64_t h = 0; h < w->heads; ++h) {
      const pair_block g =
          load_block(rg_vf_two_splits(T), T, S, grad.first + h * grad.head, grad.second + h * grad.head, i, pairs);
      ask_for_block(T, w->next_grad[r] + h * grad.head, i);
      if (w->wants_states) {
        const pair_block back = {rg_rotate_transpose(table_product, g.lower, c.lower, s.lower),
                                 rg_rotate_transpose(table_product, g.upper, c.upper, s.upper)};
        store_block(rg_vf_two_splits(T), T, S, states.first + h * states.head, states.second + h * states.head, i, back,
                    pairs, w->stream);
      }
      if (w->wants_sums) {
        const pair_block k =
            load_block(rg_vf_two_splits(T), T, S, key.first + h * key.head, key.second + h * key.head, i, pairs);
        ask_for_block(T, w->next_key[r] + h * key.head, i);
        rg_add_grad_cos(key_product, g.lower, k.lower, &grad_cos.lower);
        rg_add_grad_cos(key_product, g.upper, k.upper, &grad_cos.upper);
        rg_add_grad_sin(key_product, g.lower, k.lower, &grad_sin.lower);
        rg_add_grad_sin(key_product, g.upper, k.upper, &grad_sin.upper);
      }
    }
    if (w->wants_sums) {
      store_staged(sum_cos, room, i, grad_cos);
      store_staged(sum_sin, room, i, grad_sin);
    }
  });
}

RG_INLINE void gather_as(rg_dtype T, rg_style S, rg_dtype table_product, rg_dtype key_product, const head_group *w) {
  for (int r = 0; r < w->rows; ++r) gather_row(T, S, table_product, key_product, w, r);
}

/* Products with a table are rounded to table_product: NONE, the dtype itself, or that of rg_real; products with a key
 * to the dtype itself unless table_product is NONE. See rotate.h. */
static inline void gather_heads(rg_dtype dtype, rg_style style, rg_dtype table_product, const head_group *w) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, {
                  if (table_product == RG_DTYPE_NONE) {
                    gather_as(T, S, RG_DTYPE_NONE, RG_DTYPE_NONE, w);
                  } else if (table_product == T) {
                    gather_as(T, S, T, T, w);
                  } else {
                    gather_as(T, S, RG_REAL_DTYPE, T, w);
                  }
                }));
}

#endif
