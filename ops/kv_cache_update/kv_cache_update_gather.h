/* The step gather of kv_cache_update_cpu.c, and what both steps know of a call. Built once per level.
 *
 * gather reads the rows of the caches that cache_position names and makes of them the gradients of the states and of
 * the tables. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_H

#include <stdalign.h>

#include "ops/kv_cache_update/kv_cache_update_heads.h"
#include "ops/kv_cache_update/kv_cache_update_spec.h"

typedef struct task {
  const rg_problem *problem;
  row_view view[NUM_BACKWARD_TENSORS]; /* CACHE_POSITION aside */
  rg_style style;
  rg_dtype table_product; /* see gather_heads */
  bool in_place, stream;
  bool wants_sums;                  /* grad_cos or grad_sin */
  bool sums_batches;                /* a table's gradient sums over the batches: one thread takes them all, in order */
  const uint64_t *named;            /* bit m - block_begin is set: cache_position names row m */
  int64_t block_begin, begin, end;  /* rows that have bits start at block_begin; pass treats [begin, end) */
  int64_t gather_items, pass_items; /* of the present run; see gather_range and pass_range */
} task;

static bool wanted(const task *job, int output) { return rg_given(job->problem, output); }

static int64_t position(const task *job, int64_t n) {
  return rg_kv_cache_update_position(&job->problem->tensor[CACHE_POSITION], n);
}

/* Does the gradient of a table sum over the batches, because one table serves them all? */
static bool sums_over_batches(const task *job, int gradient) {
  return wanted(job, gradient) && job->problem->tensor[gradient].shape[0] == 1;
}

/* What a thread works with. A tile is new rows n, n + 1, ..., of which those are live that name a row of the cache. */
typedef struct gatherer {
  const task *job;
  pair_range range;
  int live;
  int live_row[TILE_ROWS];      /* which rows of the tile, ascending */
  int64_t cache_row[TILE_ROWS]; /* and which of the cache */
  /* How many heads are in the sums since these were last added to the totals. When they are added depends on the
   * numbers of heads and batches alone. */
  int64_t summed;
  bool has_totals;
  alignas(RG_CACHE_LINE_BYTES) rg_real staged[STAGED_HALVES * TILE_PAIRS]; /* row by row */
  rg_wide totals[SUM_HALVES * TILE_PAIRS]; /* row by row, of SUM_COS to the end; with has_totals */
  row_buffer grad_buffer, key_buffer, out_buffer;
} gatherer;

static rg_real *staged_row(gatherer *g, int64_t r) { return g->staged + r * STAGED_HALVES * room_for(g->range.count); }

/* In which order are whole blocks of pairs staged? See pair_block. */
static bool splits_blocks(const task *job) { return rg_vf_two_splits(job->problem->tensor[GRAD_KEY_CACHE].dtype); }

static void stage_table(gatherer *g, int table, int64_t b, int64_t n, rg_real *to) {
  const row_view *v = &g->job->view[table];
  const pair_rows row = fetch_rows(v, row_at(v, b, 0, n), &g->range, 1, 0, &g->key_buffer);
  stage(splits_blocks(g->job), g->job->problem->tensor[table].dtype, g->job->style, row, to, g->range.count);
}

static void clear_sums(gatherer *g, int64_t rows) {
  const int64_t room = room_for(g->range.count);
  for (int64_t r = 0; r < rows; ++r) {
    memset(staged_row(g, r) + SUM_COS * room, 0, (size_t)(SUM_HALVES * room) * sizeof(rg_real));
  }
  g->summed = 0;
  g->has_totals = false;
}

/* Makes room in the sums for `heads` more. */
static void make_room_in_sums(gatherer *g, int64_t rows, int64_t heads) {
  g->summed += heads;
  if (g->summed <= HEADS_PER_SUM) return;
  g->summed = heads;
  const int64_t room = room_for(g->range.count), sums = SUM_HALVES * room;
  for (int64_t r = 0; r < rows; ++r) {
    rg_real *sum = staged_row(g, r) + SUM_COS * room;
    rg_wide *total = g->totals + r * sums;
    for (int64_t i = 0; i < sums; ++i) {
      total[i] = (g->has_totals ? total[i] : 0) + (rg_wide)sum[i];
      sum[i] = 0;
    }
  }
  g->has_totals = true;
}

/* Writes the sums to rows n, n + 1, ... of batch b of the gradient. `clear`: and begins new ones. */
static void store_sums(gatherer *g, int gradient, int64_t b, int64_t n, int64_t rows, bool clear) {
  const row_view *v = &g->job->view[gradient];
  const int64_t room = room_for(g->range.count), which = gradient == GRAD_COS ? SUM_COS : SUM_SIN;
  const pair_rows row = buffer_rows(&g->out_buffer, 0, v->element, &g->range);
  for (int64_t r = 0; r < rows; ++r) {
    rg_real *sum = staged_row(g, r) + which * room;
    rg_wide *total = g->totals + (SUM_HALVES * r + which - SUM_COS) * room;
    for (int64_t i = 0; g->has_totals && i < 2 * room; ++i) {
      sum[i] = (rg_real)(total[i] + (rg_wide)sum[i]);
      total[i] = 0;
    }
    unstage(splits_blocks(g->job), g->job->problem->tensor[gradient].dtype, g->job->style, sum, row, g->range.count);
    store_rows(v, row_at(v, b, 0, n + r), &g->range, 1, g->job->stream, row);
    if (clear) memset(sum, 0, (size_t)(2 * room) * sizeof *sum);
  }
}

/* Heads from h on of new rows n, n + 1, ... of batch b. */
typedef struct place {
  int64_t b, n, h;
} place;

/* The row of the cache for new row n. One that it has not, for want of an entry or of a valid one, comes out as 0. */
static int64_t row_to_ask_for(const task *job, int64_t n) {
  const int64_t m = n < job->problem->dim[DIM_N] ? position(job, n) : 0;
  return m < 0 ? 0 : m;
}

/* How many rows ahead memory is asked for: what one row takes is less than the latency of memory. With more, or with
 * the same rows of the next heads instead, the lines push each other out of the first-level cache, where the rows of
 * all heads share a few sets if heads are a power of two apart. */
enum { ROWS_AHEAD = 2 };

/* Says which rows to ask for while row i of the group at `at` is worked on: ROWS_AHEAD later in the tile, or in the
 * group at `next`. */
static void look_ahead(const gatherer *g, head_group *group, int i, place at, place next) {
  const task *job = g->job;
  const row_view *cache = &job->view[GRAD_KEY_CACHE], *keys = &job->view[KEY_STATES];
  const int k = (i + ROWS_AHEAD) % g->live;
  const place there = i + ROWS_AHEAD < g->live ? at : next;
  const bool same_tile = there.n == at.n;
  group->next_grad[i] = row_at(cache, there.b, there.h, same_tile ? g->cache_row[k] : row_to_ask_for(job, there.n + k));
  group->next_key[i] = row_at(keys, there.b, there.h, there.n + (same_tile ? g->live_row[k] : k));
}

/* The live rows of `heads` heads, while memory is asked for those at `next`. */
static void gather_group(gatherer *g, place at, int heads, place next) {
  const task *job = g->job;
  const row_view *cache = &job->view[GRAD_KEY_CACHE], *keys = &job->view[KEY_STATES];
  const row_view *states = &job->view[GRAD_KEY_STATES];
  /* Results go straight to their rows where that makes whole lines, else by way of the buffer. */
  char *first_row = row_at(states, at.b, at.h, at.n), *first_grad = row_at(cache, at.b, at.h, 0);
  char *first_key = row_at(keys, at.b, at.h, at.n);
  const bool direct =
      contiguous_columns(states) &&
      (!job->stream || can_stream_blocks(job->style, &g->range, states, rows_in_place(states, first_row, &g->range)));
  head_group group;
  group.heads = heads;
  group.rows = g->live;
  group.count = g->range.count;
  group.wants_states = wanted(job, GRAD_KEY_STATES);
  group.wants_sums = job->wants_sums;
  group.stream = direct && job->stream;
  for (int i = 0; i < g->live; ++i) {
    const int r = g->live_row[i];
    group.staged[i] = staged_row(g, r);
    group.grad[i] =
        fetch_rows(cache, moved(first_grad, g->cache_row[i] * cache->row), &g->range, heads, i, &g->grad_buffer);
    group.states[i] = direct ? rows_in_place(states, moved(first_row, r * states->row), &g->range)
                             : buffer_rows(&g->out_buffer, i, cache->element, &g->range);
    group.key[i] = job->wants_sums
                       ? fetch_rows(keys, moved(first_key, r * keys->row), &g->range, heads, i, &g->key_buffer)
                       : group.grad[i];
    look_ahead(g, &group, i, at, next);
  }
  gather_heads(job->problem->tensor[GRAD_KEY_CACHE].dtype, job->style, job->table_product, &group);
  for (int i = 0; i < g->live && group.wants_states && !direct; ++i) {
    store_rows(states, moved(first_row, g->live_row[i] * states->row), &g->range, heads, job->stream, group.states[i]);
  }
}

/* The pairs of g->range of `rows` new rows from n on in batches [begin, end). A sum goes out after each batch, or after
 * the last one when it is over all. */
static void gather_tile(gatherer *g, int64_t n, int64_t rows, int64_t begin, int64_t end) {
  const task *job = g->job;
  const int64_t H = job->problem->dim[DIM_H];
  static const int gradients[2] = {GRAD_COS, GRAD_SIN};
  g->live = 0;
  for (int r = 0; r < rows; ++r) {
    const int64_t m = position(job, n + r);
    if (m < 0) continue;
    g->live_row[g->live] = r;
    g->cache_row[g->live++] = m;
  }
  if (job->wants_sums) clear_sums(g, rows);
  for (int64_t b = begin; b < end; ++b) {
    for (int i = 0; i < g->live && wanted(job, GRAD_KEY_STATES); ++i) {
      rg_real *staged = staged_row(g, g->live_row[i]);
      stage_table(g, COS, b, n + g->live_row[i], staged + STAGED_COS * room_for(g->range.count));
      stage_table(g, SIN, b, n + g->live_row[i], staged + STAGED_SIN * room_for(g->range.count));
    }
    for (int64_t h = 0; h < H && g->live > 0; h += HEADS_AT_ONCE) {
      const place next = h + HEADS_AT_ONCE < H ? (place){b, n, h + HEADS_AT_ONCE}
                         : b + 1 < end         ? (place){b + 1, n, 0}
                                               : (place){begin, n + rows, 0};
      const int heads = H - h < HEADS_AT_ONCE ? (int)(H - h) : HEADS_AT_ONCE;
      if (job->wants_sums) make_room_in_sums(g, rows, heads);
      gather_group(g, (place){b, n, h}, heads, next);
    }
    for (int k = 0; k < 2; ++k) {
      if (!wanted(job, gradients[k]) || sums_over_batches(job, gradients[k])) continue;
      store_sums(g, gradients[k], b, n, rows, b + 1 < end);
    }
  }
  for (int k = 0; k < 2; ++k) {
    if (sums_over_batches(job, gradients[k])) store_sums(g, gradients[k], 0, n, rows, false);
  }
}

/* Columns from `column` on of new rows [begin, end) of batch b, copied from the cache as they are; where an entry is
 * negative the whole row becomes zero. */
static void gather_columns(const task *job, int cache, int states, int64_t column, int64_t b, int64_t begin,
                           int64_t end) {
  const row_view *from = &job->view[cache], *to = &job->view[states];
  const int64_t D = job->problem->dim[DIM_D];
  for (int64_t h = 0; h < job->problem->dim[DIM_H] && wanted(job, states); ++h) {
    for (int64_t n = begin, run = 1; n < end; n += run, run = 1) {
      const int64_t m = position(job, n);
      char *target = row_at(to, b, h, n);
      if (m < 0) {
        clear_rows(to, target, 1, D, job->stream);
      } else if (column < D) {
        while (n + run < end && position(job, n + run) == m + run) ++run;
        copy_rows(to, target + column * to->column, from, row_at(from, b, h, m) + column * from->column, run,
                  D - column, job->stream);
      }
    }
  }
}

/* Items are new rows: of one batch each, batch by batch, or of all batches where a sum is over all. First all that is
 * computed, row by row through all heads, then all that is copied, head by head: memory serves a few long streams best,
 * and each of the two orders makes no more of them than it must. */
static void gather_range(const task *job, int64_t begin, int64_t end) {
  const int64_t N = job->problem->dim[DIM_N], R = job->problem->dim[DIM_R];
  const int64_t batches = job->sums_batches ? job->problem->dim[DIM_B] : 1;
  const int64_t most_pairs = R / 2 < TILE_PAIRS ? R / 2 : TILE_PAIRS;
  const int64_t fitting = most_pairs > 0 ? TILE_PAIRS / room_for(most_pairs) : TILE_ROWS;
  const int64_t tile_rows = fitting < TILE_ROWS ? fitting : TILE_ROWS;
  gatherer g;
  g.job = job;
  for (int64_t item = begin; item < end && (wanted(job, GRAD_KEY_STATES) || job->wants_sums);) {
    const int64_t n = item % N, b = item / N;
    int64_t rows = tile_rows;
    if (rows > N - n) rows = N - n;
    if (rows > end - item) rows = end - item;
    for (int64_t pair = 0; pair < R / 2; pair += TILE_PAIRS) {
      g.range = range_of(job->style, R, pair, R / 2 - pair < TILE_PAIRS ? R / 2 - pair : TILE_PAIRS);
      gather_tile(&g, n, rows, b, b + batches);
    }
    item += rows;
  }
  for (int64_t item = begin, rows; item < end; item += rows) {
    const int64_t n = item % N;
    rows = N - n < end - item ? N - n : end - item;
    for (int64_t b = item / N; b < item / N + batches; ++b) {
      gather_columns(job, GRAD_KEY_CACHE, GRAD_KEY_STATES, R, b, n, n + rows);
      gather_columns(job, GRAD_VALUE_CACHE, GRAD_VALUE_STATES, 0, b, n, n + rows);
    }
  }
}

#endif
