/* The rotation of new rows and their sums over heads, on pairs of columns. Built once per level, as part of
 * kv_cache_update_cpu.c.
 *
 * Rows come in the tensors' own dtypes, contiguous, with pair j where the style has it. What serves several heads, the
 * row of a table or of its gradient, is staged as rg_real, with the first elements of the pairs in one array and the
 * second in another. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H

#include "ops/kv_cache_update/kv_cache_update_rows.h"
#include "src/simd/rotate.h"

enum {
  /* Rows of as many heads are treated together. Also the most terms that are summed in rg_real before they go to a
     wider total: so few that even if all have one sign and all roundings one direction, the error stays below 4 u times
     the sum. */
  HEADS = 8,
  /* The most pairs of a row that are treated at a time: whole vectors at every level. */
  MAX_PAIRS = 256
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

/* Rows of HEADS heads, one after the other, in any dtype: none is larger than rg_real. */
typedef struct row_buffer {
  rg_real element[HEADS * 2 * MAX_PAIRS];
} row_buffer;

/* With interleaved pairs nobody looks at `second`. */
static inline pair_rows buffer_rows(row_buffer *buffer, int64_t element, const pair_range *range) {
  char *first = (char *)buffer->element;
  return (pair_rows){first, first + range->count * element, 2 * range->count * element};
}

/* The pairs of the row of contiguous columns at `row`, and of those of other heads. */
static inline pair_rows rows_in_place(const row_view *v, char *row, const pair_range *range) {
  return (pair_rows){moved(row, range->first_column * v->element), moved(row, range->second_column * v->element),
                     v->head};
}

/* The pairs of `heads` rows, of which the first begins at `row`: in place where columns are contiguous, else gathered
 * into the buffer. */
static inline pair_rows fetch_rows(const row_view *v, char *row, const pair_range *range, int heads,
                                   row_buffer *buffer) {
  if (contiguous_columns(v)) return rows_in_place(v, row, range);
  const pair_rows rows = buffer_rows(buffer, v->element, range);
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

/* Writes what the buffer holds to `heads` rows, of which the first begins at `row`. */
static inline void store_rows(const row_view *v, char *row, const pair_range *range, int heads, bool stream,
                              const row_buffer *buffer) {
  for (int h = 0; h < heads; ++h, row += v->head) {
    const char *from = (const char *)buffer->element + h * 2 * range->count * v->element;
    store_run(v, row + range->first_column * v->column, from, range->run_columns, stream);
    if (range->runs == 1) continue;
    store_run(v, row + range->second_column * v->column, from + range->run_columns * v->element, range->run_columns,
              stream);
  }
}

/* ---- vectors of pairs: `lanes` of them from pair i on, 0 < lanes <= RG_VF_WIDTH ---- */

RG_INLINE rg_vf load_lanes(rg_dtype T, const void *p, int64_t lanes) {
  return lanes == RG_VF_WIDTH ? rg_vf_load(T, p) : rg_vf_load_part(T, p, lanes);
}

RG_INLINE void store_lanes(rg_dtype T, void *p, rg_vf v, int64_t lanes) {
  if (lanes == RG_VF_WIDTH) {
    rg_vf_store(T, p, v);
  } else {
    rg_vf_store_part(T, p, v, lanes);
  }
}

/* How many of 2*lanes interleaved elements the first of two vectors takes; the second takes the others. */
RG_INLINE int64_t lower_lanes(int64_t lanes) { return 2 * lanes < RG_VF_WIDTH ? 2 * lanes : RG_VF_WIDTH; }

RG_INLINE rg_pair load_pair(rg_dtype T, rg_style S, const char *first, const char *second, int64_t i, int64_t lanes) {
  if (S == RG_STYLE_ROTATE_HALF) {
    return (rg_pair){load_lanes(T, rg_at_const(T, first, i), lanes), load_lanes(T, rg_at_const(T, second, i), lanes)};
  }
  const int64_t lower = lower_lanes(lanes);
  rg_pair pair;
  rg_vf_deinterleave(load_lanes(T, rg_at_const(T, first, 2 * i), lower),
                     load_lanes(T, rg_at_const(T, first, 2 * i + lower), 2 * lanes - lower), &pair.first, &pair.second);
  return pair;
}

RG_INLINE void store_pair(rg_dtype T, rg_style S, char *first, char *second, int64_t i, rg_pair pair, int64_t lanes) {
  if (S == RG_STYLE_ROTATE_HALF) {
    store_lanes(T, rg_at(T, first, i), pair.first, lanes);
    store_lanes(T, rg_at(T, second, i), pair.second, lanes);
    return;
  }
  const int64_t lower = lower_lanes(lanes);
  rg_vf a, b;
  rg_vf_interleave(pair.first, pair.second, &a, &b);
  store_lanes(T, rg_at(T, first, 2 * i), a, lower);
  store_lanes(T, rg_at(T, first, 2 * i + lower), b, 2 * lanes - lower);
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
  block.lower = load_pair(T, S, first, second, i, lower_pairs(pairs));
  if (pairs > RG_VF_WIDTH) block.upper = load_pair(T, S, first, second, i + RG_VF_WIDTH, pairs - RG_VF_WIDTH);
  return block;
}

/* May whole blocks of these rows be written past the caches? Each must fill whole lines. */
RG_INLINE bool can_stream_blocks(rg_style style, const pair_range *range, pair_rows rows) {
  const uintptr_t places = (uintptr_t)rows.first | (uintptr_t)rows.second | (uintptr_t)rows.head;
  return style == RG_STYLE_ROTATE_HALF && range->count % BLOCK_PAIRS == 0 && places % LINE_BYTES == 0;
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
  store_pair(T, S, first, second, i, block.lower, lower_pairs(pairs));
  if (pairs > RG_VF_WIDTH) store_pair(T, S, first, second, i + RG_VF_WIDTH, block.upper, pairs - RG_VF_WIDTH);
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

/* ---- tables ---- */

typedef struct staged_row {
  rg_real first[MAX_PAIRS], second[MAX_PAIRS];
} staged_row;

/* Blocks that begin below `count`; the last may have lanes beyond, which nobody looks at. */
RG_INLINE pair_block load_staged(const staged_row *row, int64_t i) {
  const int64_t upper = i + RG_VF_WIDTH;
  return (pair_block){{rg_vf_load(RG_REAL_DTYPE, row->first + i), rg_vf_load(RG_REAL_DTYPE, row->second + i)},
                      {rg_vf_load(RG_REAL_DTYPE, row->first + upper), rg_vf_load(RG_REAL_DTYPE, row->second + upper)}};
}

RG_INLINE void store_staged(staged_row *row, int64_t i, pair_block block) {
  rg_vf_store(RG_REAL_DTYPE, row->first + i, block.lower.first);
  rg_vf_store(RG_REAL_DTYPE, row->second + i, block.lower.second);
  rg_vf_store(RG_REAL_DTYPE, row->first + i + RG_VF_WIDTH, block.upper.first);
  rg_vf_store(RG_REAL_DTYPE, row->second + i + RG_VF_WIDTH, block.upper.second);
}

RG_INLINE void stage_as(bool splits, rg_dtype T, rg_style S, pair_rows from, staged_row *to, int64_t count) {
  FOR_EACH_BLOCK(count, i, pairs, store_staged(to, i, load_block(splits, T, S, from.first, from.second, i, pairs)));
}

static inline void stage(bool splits, rg_dtype dtype, rg_style style, pair_rows from, staged_row *to, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, stage_as(splits, T, S, from, to, count)));
}

RG_INLINE void unstage_as(bool splits, rg_dtype T, rg_style S, const staged_row *from, pair_rows to, int64_t count) {
  FOR_EACH_BLOCK(count, i, pairs,
                 store_block(splits, T, S, to.first, to.second, i, load_staged(from, i), pairs, false));
}

static inline void unstage(bool splits, rg_dtype dtype, rg_style style, const staged_row *from, pair_rows to,
                           int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, unstage_as(splits, T, S, from, to, count)));
}

/* ---- one new row of several heads ---- */

typedef struct head_group {
  int heads;
  int64_t count; /* pairs */
  /* Rows to come, of head 0, as far from those of the other heads as in grad and key. Their lines are asked for on the
     way: left to itself the processor waits for each row anew, because so many rows are open at a time. Addresses past
     the end of a tensor do no harm here. */
  const char *next_grad, *next_key;
  bool wants_states, wants_sums;
  pair_rows grad;                  /* of the cache row */
  const staged_row *cosine, *sine; /* with wants_states */
  pair_rows states;                /* with wants_states, written: grad rotated back */
  bool stream;                     /* states: past the caches, see can_stream_blocks */
  pair_rows key;                   /* with wants_sums */
  staged_row *grad_cos, *grad_sin; /* with wants_sums, written: the sums over these heads */
} head_group;

/* Asks for what a block of pairs, of a row like the present ones, will take. */
RG_INLINE void ask_for_block(rg_dtype T, const char *row, int64_t i) {
  const int64_t begin = 2 * i * (int64_t)RG_SIZE(T), bytes = 2 * BLOCK_PAIRS * (int64_t)RG_SIZE(T);
  for (int64_t line = 0; line < bytes && RG_VF_WIDTH > 1; line += LINE_BYTES) __builtin_prefetch(row + begin + line);
}

/* One block of the tables, and of the sums, serves all heads before the next one. */
RG_INLINE void gather_as(rg_dtype T, rg_style S, rg_dtype table_product, rg_dtype key_product, const head_group *w) {
  FOR_EACH_BLOCK(w->count, i, pairs, {
    const rg_pair zero = {rg_vf_zero(), rg_vf_zero()};
    const pair_block none = {zero, zero};
    const pair_block c = w->wants_states ? load_staged(w->cosine, i) : none;
    const pair_block s = w->wants_states ? load_staged(w->sine, i) : none;
    pair_block grad_cos = none, grad_sin = none;
    for (int64_t h = 0; h < w->heads; ++h) {
      const pair_block g = load_block(rg_vf_two_splits(T), T, S, w->grad.first + h * w->grad.head,
                                      w->grad.second + h * w->grad.head, i, pairs);
      ask_for_block(T, w->next_grad + h * w->grad.head, i);
      if (w->wants_states) {
        const pair_block back = {rg_rotate_transpose(table_product, g.lower, c.lower, s.lower),
                                 rg_rotate_transpose(table_product, g.upper, c.upper, s.upper)};
        store_block(rg_vf_two_splits(T), T, S, w->states.first + h * w->states.head,
                    w->states.second + h * w->states.head, i, back, pairs, w->stream);
      }
      if (w->wants_sums) {
        const pair_block k = load_block(rg_vf_two_splits(T), T, S, w->key.first + h * w->key.head,
                                        w->key.second + h * w->key.head, i, pairs);
        ask_for_block(T, w->next_key + h * w->key.head, i);
        rg_add_grad_cos(key_product, g.lower, k.lower, &grad_cos.lower);
        rg_add_grad_cos(key_product, g.upper, k.upper, &grad_cos.upper);
        rg_add_grad_sin(key_product, g.lower, k.lower, &grad_sin.lower);
        rg_add_grad_sin(key_product, g.upper, k.upper, &grad_sin.upper);
      }
    }
    if (w->wants_sums) {
      store_staged(w->grad_cos, i, grad_cos);
      store_staged(w->grad_sin, i, grad_sin);
    }
  });
}

/* Products with a table are rounded to table_product: NONE, the dtype itself, or that of rg_real; products with a key
 * to the dtype itself unless table_product is NONE. See rotate.h. */
static inline void gather_heads(rg_dtype dtype, rg_style style, rg_dtype table_product, const head_group *group) {
  const head_group w = *group;
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, {
                  if (table_product == RG_DTYPE_NONE) {
                    gather_as(T, S, RG_DTYPE_NONE, RG_DTYPE_NONE, &w);
                  } else if (table_product == T) {
                    gather_as(T, S, T, T, &w);
                  } else {
                    gather_as(T, S, RG_REAL_DTYPE, T, &w);
                  }
                }));
}

#endif
