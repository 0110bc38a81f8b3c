/* The step gather of kv_cache_update_cpu.c, and what both steps know of a call. Built once per level.
 *
 * gather reads the rows of the caches that cache_position names and makes of them the gradients of the states and of
 * the tables. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_GATHER_H

#include "ops/kv_cache_update/kv_cache_update_pairs.h"
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

/* The sum for one row of a table's gradient, group by group of heads: the last group's share in rg_real, that of the
 * groups before it, if any, in rg_wide. */
typedef struct table_sum {
  staged_row last;
  rg_wide before_first[MAX_PAIRS], before_second[MAX_PAIRS];
  int64_t groups;
} table_sum;

/* What a thread works with. */
typedef struct gatherer {
  const task *job;
  pair_range range;
  staged_row cosine, sine;
  table_sum grad_cos, grad_sin;
  row_buffer grad_buffer, key_buffer, out_buffer;
} gatherer;

/* In which order are whole blocks of pairs staged? See pair_block. */
static bool splits_blocks(const task *job) { return rg_vf_two_splits(job->problem->tensor[GRAD_KEY_CACHE].dtype); }

static void stage_table(gatherer *g, int table, int64_t b, int64_t n, staged_row *staged) {
  const row_view *v = &g->job->view[table];
  const pair_rows row = fetch_rows(v, row_at(v, b, 0, n), &g->range, 1, &g->key_buffer);
  stage(splits_blocks(g->job), g->job->problem->tensor[table].dtype, g->job->style, row, staged, g->range.count);
}

/* Makes room in sum->last for another group. */
static void begin_group(const gatherer *g, table_sum *sum) {
  for (int64_t i = 0; i < g->range.count && sum->groups > 0; ++i) {
    sum->before_first[i] = (sum->groups > 1 ? sum->before_first[i] : 0) + (rg_wide)sum->last.first[i];
    sum->before_second[i] = (sum->groups > 1 ? sum->before_second[i] : 0) + (rg_wide)sum->last.second[i];
  }
  ++sum->groups;
}

/* Writes the sum to row (b, n) of the gradient and starts anew. */
static void store_sum(gatherer *g, int gradient, int64_t b, int64_t n, table_sum *sum) {
  const row_view *v = &g->job->view[gradient];
  for (int64_t i = 0; i < g->range.count && sum->groups != 1; ++i) {
    sum->last.first[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_first[i] + (rg_wide)sum->last.first[i]);
    sum->last.second[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_second[i] + (rg_wide)sum->last.second[i]);
  }
  sum->groups = 0;
  unstage(splits_blocks(g->job), g->job->problem->tensor[gradient].dtype, g->job->style, &sum->last,
          buffer_rows(&g->out_buffer, v->element, &g->range), g->range.count);
  store_rows(v, row_at(v, b, 0, n), &g->range, 1, g->job->stream, &g->out_buffer);
}

/* How many new rows ahead memory is asked for: what one row takes is less than the latency of memory. */
enum { ROWS_AHEAD = 2 };

/* Heads from h on of new row n of batch b. */
typedef struct place {
  int64_t b, n, h;
} place;

/* Where the cache has the row. A row that it has not, for want of an entry or of a valid one, comes out as row 0. */
static char *cache_row(const task *job, place at) {
  const int64_t m = at.n < job->problem->dim[DIM_N] ? position(job, at.n) : 0;
  const row_view *cache = &job->view[GRAD_KEY_CACHE];
  return row_at(cache, at.b, at.h, m < 0 ? 0 : m);
}

static char *key_row(const task *job, place at) {
  const row_view *keys = &job->view[KEY_STATES];
  return row_at(keys, at.b, at.h, at.n);
}

/* `heads` heads, while memory is asked for those at `next`. */
static void gather_group(gatherer *g, place at, int heads, place next) {
  const task *job = g->job;
  const row_view *cache = &job->view[GRAD_KEY_CACHE], *keys = &job->view[KEY_STATES];
  const row_view *states = &job->view[GRAD_KEY_STATES];
  /* Results go straight to their rows where that makes whole lines, else by way of the buffer. */
  char *row = row_at(states, at.b, at.h, at.n);
  const pair_rows in_place = rows_in_place(states, row, &g->range);
  const bool direct =
      contiguous_columns(states) && (!job->stream || can_stream_blocks(job->style, &g->range, in_place));
  head_group group = {
      .heads = heads,
      .count = g->range.count,
      .wants_states = wanted(job, GRAD_KEY_STATES),
      .wants_sums = job->wants_sums,
      .next_grad = cache_row(job, next),
      .grad = fetch_rows(cache, cache_row(job, at), &g->range, heads, &g->grad_buffer),
      .cosine = &g->cosine,
      .sine = &g->sine,
      .states = direct ? in_place : buffer_rows(&g->out_buffer, cache->element, &g->range),
      .stream = direct && job->stream,
      .grad_cos = &g->grad_cos.last,
      .grad_sin = &g->grad_sin.last,
  };
  if (job->wants_sums) {
    group.next_key = key_row(job, next);
    group.key = fetch_rows(keys, key_row(job, at), &g->range, heads, &g->key_buffer);
    begin_group(g, &g->grad_cos);
    begin_group(g, &g->grad_sin);
  }
  gather_heads(job->problem->tensor[GRAD_KEY_CACHE].dtype, job->style, job->table_product, &group);
  if (group.wants_states && !direct) store_rows(states, row, &g->range, heads, job->stream, &g->out_buffer);
}

/* The pairs of g->range of new row n in batches [begin, end). A sum goes out after each batch, or after the last one
 * when it is over all. */
static void gather_pairs(gatherer *g, int64_t n, int64_t begin, int64_t end) {
  const task *job = g->job;
  const bool written = position(job, n) >= 0;
  const int64_t H = job->problem->dim[DIM_H];
  static const int gradients[2] = {GRAD_COS, GRAD_SIN};
  table_sum *const sums[2] = {&g->grad_cos, &g->grad_sin};
  g->grad_cos.groups = g->grad_sin.groups = 0;
  for (int64_t b = begin; b < end; ++b) {
    if (written && wanted(job, GRAD_KEY_STATES)) {
      stage_table(g, COS, b, n, &g->cosine);
      stage_table(g, SIN, b, n, &g->sine);
    }
    for (int64_t h = 0; h < H && written; h += HEADS) {
      const place next = h + HEADS < H ? (place){b, n, h + HEADS}
                         : b + 1 < end ? (place){b + 1, n, 0}
                                       : (place){begin, n + ROWS_AHEAD, 0};
      gather_group(g, (place){b, n, h}, H - h < HEADS ? (int)(H - h) : HEADS, next);
    }
    for (int k = 0; k < 2; ++k) {
      if (wanted(job, gradients[k]) && !sums_over_batches(job, gradients[k])) store_sum(g, gradients[k], b, n, sums[k]);
    }
  }
  for (int k = 0; k < 2; ++k) {
    if (sums_over_batches(job, gradients[k])) store_sum(g, gradients[k], 0, n, sums[k]);
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
  gatherer g;
  g.job = job;
  for (int64_t item = begin; item < end && (wanted(job, GRAD_KEY_STATES) || job->wants_sums); ++item) {
    for (int64_t pair = 0; pair < R / 2; pair += MAX_PAIRS) {
      g.range = range_of(job->style, R, pair, R / 2 - pair < MAX_PAIRS ? R / 2 - pair : MAX_PAIRS);
      gather_pairs(&g, item % N, item / N, item / N + batches);
    }
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
