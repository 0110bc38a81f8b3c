/* The backward pass on some new rows of a few heads: their rotation, and their sums over heads. Built once per level, as
 * part of kv_cache_update_cpu.c. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_HEADS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_HEADS_H

#include "ops/kv_cache_update/kv_cache_update_pairs.h"

enum {
  /* The most terms that are summed in rg_real before they go to a wider total: so few that even if all have one sign
   * and all roundings one direction, the error stays below 4 u times the sum. */
  HEADS_PER_SUM = 8
};

/* Beside the tables the sums so far are staged: the first and the second elements of grad_cos, then those of grad_sin.
 */
enum {
  SUM_COS = STAGED_TABLE_HALVES,
  SUM_SIN = SUM_COS + 2,
  STAGED_HALVES = SUM_SIN + 2,
  SUM_HALVES = STAGED_HALVES - SUM_COS
};

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
