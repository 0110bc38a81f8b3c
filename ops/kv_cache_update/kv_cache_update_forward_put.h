/* The step put of kv_cache_update_forward_cpu.c, and what both steps know of a call. Built once per level.
 *
 * put writes the new rows, keys rotated, to the rows of the caches that cache_position names. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_PUT_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_FORWARD_PUT_H

#include <stdalign.h>

#include "ops/kv_cache_update/kv_cache_update_pairs.h"
#include "ops/kv_cache_update/kv_cache_update_spec.h"
#include "ops/kv_cache_update/kv_cache_update_split.h"

typedef struct task {
  const rg_problem *problem;
  row_view view[NUM_FORWARD_TENSORS]; /* FORWARD_CACHE_POSITION aside */
  rg_style style;
  bool in_place, stream;
  /* Of the present run: new rows [new_begin, new_begin + new_rows), of which those are put whose bit is set in `kept`,
   * and cache rows [cache_begin, cache_begin + cache_rows), of which those pass whose bit in `named` is not. */
  int64_t new_begin, new_rows, cache_begin, cache_rows;
  uint64_t *kept, *named;
  int64_t put_items, pass_items; /* see put_range and pass_range */
} task;

static bool wanted(const task *job, int output) { return rg_given(job->problem, output); }

static int64_t position(const task *job, int64_t n) {
  return rg_kv_cache_update_position(&job->problem->tensor[FORWARD_CACHE_POSITION], n);
}

static bool is_kept(const task *job, int64_t n) { return bit_at(job->kept, n - job->new_begin); }

/* What a thread works with. A tile is new rows n, n + 1, ..., of which those are live that are put. */
typedef struct putter {
  const task *job;
  pair_range range;
  int live;
  int64_t new_row[TILE_ROWS];                                                    /* of the live ones, ascending */
  int64_t cache_row[TILE_ROWS];                                                  /* where they go */
  alignas(RG_CACHE_LINE_BYTES) rg_real tables[STAGED_TABLE_HALVES * TILE_PAIRS]; /* one live row after the other */
  row_buffer key_buffer, out_buffer;
} putter;

static rg_real *staged_tables(putter *g, int i) {
  return g->tables + i * STAGED_TABLE_HALVES * room_for(g->range.count);
}

/* In which order are whole blocks of pairs staged? See pair_block. */
static bool splits_blocks(const task *job) { return rg_vf_two_splits(job->problem->tensor[FORWARD_KEY_CACHE].dtype); }

static void stage_table(putter *g, int table, int64_t b, int64_t n, rg_real *to) {
  const row_view *v = &g->job->view[table];
  const pair_rows row = fetch_rows(v, row_at(v, b, 0, n), &g->range, 1, 0, &g->key_buffer);
  stage(splits_blocks(g->job), g->job->problem->tensor[table].dtype, g->job->style, row, to, g->range.count);
}

/* ---- keys ---- */

/* A live row of a few heads. */
typedef struct head_rows {
  int heads;
  int64_t count; /* pairs */
  bool stream;   /* past the caches, see can_stream_blocks */
  const rg_real *tables;
  pair_rows key, out;
  const char *next_key; /* a row to come, of the first head. Its lines, and those of the other heads, are asked for */
} head_rows;

/* One block of the tables serves all heads before the next one. */
RG_INLINE void rotate_as(rg_dtype T, rg_style S, const head_rows *w) {
  const pair_rows key = w->key, out = w->out;
  const int64_t room = room_for(w->count);
  FOR_EACH_BLOCK(w->count, i, pairs, {
    const pair_block c = load_staged(w->tables + STAGED_COS * room, room, i);
    const pair_block s = load_staged(w->tables + STAGED_SIN * room, room, i);
    for (int64_t h = 0; h < w->heads; ++h) {
      const pair_block k =
          load_block(rg_vf_two_splits(T), T, S, key.first + h * key.head, key.second + h * key.head, i, pairs);
      ask_for_block(T, w->next_key + h * key.head, i);
      const pair_block rotated = {rg_rotate(RG_DTYPE_NONE, k.lower, c.lower, s.lower),
                                  rg_rotate(RG_DTYPE_NONE, k.upper, c.upper, s.upper)};
      store_block(rg_vf_two_splits(T), T, S, out.first + h * out.head, out.second + h * out.head, i, rotated, pairs,
                  w->stream);
    }
  });
}

/* How many rows ahead memory is asked for: what one row takes is less than the latency of memory. */
enum { ROWS_AHEAD = 2 };

/* Heads from h on of the tile's live rows in batch b. */
static void put_heads(putter *g, int64_t b, int64_t h, int heads) {
  const task *job = g->job;
  const row_view *keys = &job->view[FORWARD_KEY_STATES], *cache = &job->view[FORWARD_KEY_CACHE];
  const rg_dtype dtype = job->problem->tensor[FORWARD_KEY_CACHE].dtype;
  for (int i = 0; i < g->live; ++i) {
    char *key = row_at(keys, b, h, g->new_row[i]), *target = row_at(cache, b, h, g->cache_row[i]);
    /* Results go straight to their rows where that makes whole lines, else by way of the buffer. */
    const bool direct =
        contiguous_columns(cache) &&
        (!job->stream || can_stream_blocks(job->style, &g->range, cache, rows_in_place(cache, target, &g->range)));
    /* At the end of the tile, the first rows of the heads that come next. */
    const int ahead = i + ROWS_AHEAD;
    const int64_t h_ahead = ahead < g->live ? h : h + heads;
    const head_rows rows = {
        .heads = heads,
        .count = g->range.count,
        .stream = direct && job->stream,
        .tables = staged_tables(g, i),
        .key = fetch_rows(keys, key, &g->range, heads, 0, &g->key_buffer),
        .out = direct ? rows_in_place(cache, target, &g->range)
                      : buffer_rows(&g->out_buffer, 0, cache->element, &g->range),
        .next_key = row_at(keys, b, h_ahead, g->new_row[ahead % g->live]),
    };
    RG_WITH_DTYPE(dtype, T, WITH_STYLE(job->style, S, rotate_as(T, S, &rows)));
    if (!direct) store_rows(cache, target, &g->range, heads, job->stream, rows.out);
  }
}

/* The pairs of g->range of the kept ones of new rows [n, n + rows) in batch b. */
static void put_tile(putter *g, int64_t b, int64_t n, int64_t rows) {
  const task *job = g->job;
  const int64_t H = job->problem->dim[DIM_H];
  g->live = 0;
  for (int64_t i = n; i < n + rows; ++i) {
    if (!is_kept(job, i)) continue;
    rg_real *tables = staged_tables(g, g->live);
    stage_table(g, FORWARD_COS, b, i, tables + STAGED_COS * room_for(g->range.count));
    stage_table(g, FORWARD_SIN, b, i, tables + STAGED_SIN * room_for(g->range.count));
    g->new_row[g->live] = i;
    g->cache_row[g->live++] = position(job, i);
  }
  for (int64_t h = 0; h < H; h += HEADS_AT_ONCE) {
    put_heads(g, b, h, H - h < HEADS_AT_ONCE ? (int)(H - h) : HEADS_AT_ONCE);
  }
}

/* The rotated columns of new rows [begin, end) of batch b. */
static void put_keys(const task *job, int64_t b, int64_t begin, int64_t end) {
  const int64_t pairs = job->problem->dim[DIM_R] / 2;
  const int64_t most_pairs = pairs < TILE_PAIRS ? pairs : TILE_PAIRS;
  const int64_t fitting = TILE_PAIRS / room_for(most_pairs);
  const int64_t tile_rows = fitting < TILE_ROWS ? fitting : TILE_ROWS;
  putter g;
  g.job = job;
  for (int64_t n = begin; n < end; n += tile_rows) {
    for (int64_t pair = 0; pair < pairs; pair += TILE_PAIRS) {
      g.range = range_of(job->style, 2 * pairs, pair, pairs - pair < TILE_PAIRS ? pairs - pair : TILE_PAIRS);
      put_tile(&g, b, n, end - n < tile_rows ? end - n : tile_rows);
    }
  }
}

/* ---- columns that are copied ---- */

/* Columns from `column` on of the kept ones of new rows [begin, end) of batch b. */
static void put_columns(const task *job, int states, int cache, int64_t column, int64_t b, int64_t begin, int64_t end) {
  const row_view *from = &job->view[states], *to = &job->view[cache];
  const int64_t D = job->problem->dim[DIM_D];
  for (int64_t h = 0; h < job->problem->dim[DIM_H] && column < D; ++h) {
    for (int64_t n = begin, run = 1; n < end; n += run, run = 1) {
      if (!is_kept(job, n)) continue;
      const int64_t m = position(job, n);
      while (n + run < end && is_kept(job, n + run) && position(job, n + run) == m + run) ++run;
      copy_rows(to, row_at(to, b, h, m) + column * to->column, from, row_at(from, b, h, n) + column * from->column, run,
                D - column, job->stream);
    }
  }
}

/* Items are the new rows of the run, batch by batch. First all that is computed, row by row through a few heads at a
 * time, then all that is copied, head by head: memory serves a few long streams best, and each of the two orders makes
 * no more of them than it must. */
static void put_range(const task *job, int64_t begin, int64_t end) {
  for (int64_t item = begin, rows; item < end; item += rows) {
    const int64_t b = item / job->new_rows, n = item % job->new_rows;
    rows = job->new_rows - n < end - item ? job->new_rows - n : end - item;
    const int64_t first = job->new_begin + n;
    if (wanted(job, FORWARD_KEY_CACHE)) {
      put_keys(job, b, first, first + rows);
      put_columns(job, FORWARD_KEY_STATES, FORWARD_KEY_CACHE, job->problem->dim[DIM_R], b, first, first + rows);
    }
    if (wanted(job, FORWARD_VALUE_CACHE)) {
      put_columns(job, FORWARD_VALUE_STATES, FORWARD_VALUE_CACHE, 0, b, first, first + rows);
    }
  }
}

#endif
