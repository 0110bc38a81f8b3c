/* kv_cache_update on the CPU, built once per level. Bound by memory, in two steps:
 *
 *   gather  reads the rows of the caches that cache_position names and makes of them the gradients of the states and
 *           of the tables;
 *   pass    writes the gradients of the caches' inputs: named rows as zeros, without reading them, the others copied.
 *
 * Each byte moves once, and in place, where the second step clears what the first one reads, the order is the right one
 * even for entries that repeat. */
#include "ops/kv_cache_update/kv_cache_update_pairs.h"
#include "ops/kv_cache_update/kv_cache_update_spec.h"
#include "src/base/parallel.h"

/* Cache rows that the workspace has a bit for. */
enum { NAMED_ROWS = 8 * RG_WORKSPACE_BYTES };

typedef struct task {
  const rg_problem *problem;
  row_view view[NUM_BACKWARD_TENSORS]; /* CACHE_POSITION aside */
  rg_style style;
  rg_dtype table_product; /* see gather_heads */
  bool in_place, stream;
  bool wants_sums; /* grad_cos or grad_sin */
  /* gather */
  bool sums_batches; /* a table's gradient sums over the batches: one thread takes them all, in order */
  /* pass */
  const uint64_t *named;           /* bit m - block_begin is set: cache_position names row m */
  int64_t block_begin, begin, end; /* rows that have bits start at block_begin; the step treats [begin, end) */
} task;

static bool wanted(const task *job, int output) { return rg_given(job->problem, output); }

static int64_t position(const task *job, int64_t n) {
  return rg_kv_cache_update_position(&job->problem->tensor[CACHE_POSITION], n);
}

/* ---- gather ---- */

/* The sum for one row of a table's gradient, group by group of heads: the last group's share in rg_real, that of the
 * groups before it, if any, in double. */
typedef struct table_sum {
  staged_row last;
  double before_first[MAX_PAIRS], before_second[MAX_PAIRS];
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

static void stage_table(gatherer *g, int table, int64_t b, int64_t n, staged_row *staged) {
  const row_view *v = &g->job->view[table];
  const pair_rows row = fetch_rows(v, row_at(v, b, 0, n), &g->range, 1, &g->key_buffer);
  stage(g->job->problem->tensor[table].dtype, g->job->style, row, staged, g->range.count);
}

/* Makes room in sum->last for another group. */
static void begin_group(const gatherer *g, table_sum *sum) {
  for (int64_t i = 0; i < g->range.count && sum->groups > 0; ++i) {
    sum->before_first[i] = (sum->groups > 1 ? sum->before_first[i] : 0.0) + (double)sum->last.first[i];
    sum->before_second[i] = (sum->groups > 1 ? sum->before_second[i] : 0.0) + (double)sum->last.second[i];
  }
  ++sum->groups;
}

/* Writes the sum to row (b, n) of the gradient and starts anew. */
static void store_sum(gatherer *g, int gradient, int64_t b, int64_t n, table_sum *sum) {
  const row_view *v = &g->job->view[gradient];
  for (int64_t i = 0; i < g->range.count && sum->groups != 1; ++i) {
    sum->last.first[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_first[i] + (double)sum->last.first[i]);
    sum->last.second[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_second[i] + (double)sum->last.second[i]);
  }
  sum->groups = 0;
  unstage(g->job->problem->tensor[gradient].dtype, g->job->style, &sum->last,
          buffer_rows(&g->out_buffer, v->element, &g->range), g->range.count);
  store_rows(v, row_at(v, b, 0, n), &g->range, 1, g->job->stream, &g->out_buffer);
}

/* Heads from h on of new row n of batch b, or those of the same number of a later row. */
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

static void gather_group(gatherer *g, place at, int heads, place next) {
  const task *job = g->job;
  const row_view *cache = &job->view[GRAD_KEY_CACHE], *keys = &job->view[KEY_STATES];
  const row_view *states = &job->view[GRAD_KEY_STATES];
  head_group group = {
      .heads = heads,
      .count = g->range.count,
      .wants_states = wanted(job, GRAD_KEY_STATES),
      .wants_sums = job->wants_sums,
      .next_grad = cache_row(job, next),
      .grad = fetch_rows(cache, cache_row(job, at), &g->range, heads, &g->grad_buffer),
      .cosine = &g->cosine,
      .sine = &g->sine,
      .states = buffer_rows(&g->out_buffer, cache->element, &g->range),
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
  if (group.wants_states) {
    store_rows(states, row_at(states, at.b, at.h, at.n), &g->range, heads, job->stream, &g->out_buffer);
  }
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
                                       : (place){begin, n + 1, 0};
      gather_group(g, (place){b, n, h}, H - h < HEADS ? (int)(H - h) : HEADS, next);
    }
    for (int k = 0; k < 2; ++k) {
      const bool over_all = wanted(job, gradients[k]) && job->problem->tensor[gradients[k]].shape[0] == 1;
      if (wanted(job, gradients[k]) && !over_all) store_sum(g, gradients[k], b, n, sums[k]);
    }
  }
  for (int k = 0; k < 2; ++k) {
    const bool over_all = wanted(job, gradients[k]) && job->problem->tensor[gradients[k]].shape[0] == 1;
    if (over_all) store_sum(g, gradients[k], 0, n, sums[k]);
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
static void gather_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
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
  rg_stream_fence();
}

static void gather(task *job, int threads) {
  const int64_t B = job->problem->dim[DIM_B], H = job->problem->dim[DIM_H], N = job->problem->dim[DIM_N];
  const rg_tensor *t = job->problem->tensor;
  job->sums_batches =
      (wanted(job, GRAD_COS) && t[GRAD_COS].shape[0] == 1) || (wanted(job, GRAD_SIN) && t[GRAD_SIN].shape[0] == 1);
  /* A named row is read and written once for the keys and once for the values, and key_states is read. */
  const int64_t row_bytes =
      job->problem->dim[DIM_D] * (3 * job->view[GRAD_KEY_CACHE].element + 2 * job->view[GRAD_VALUE_CACHE].element);
  rg_parallel_ranges(threads, job->sums_batches ? N : B * N, B * H * N * row_bytes, gather_range, job);
}

/* ---- pass ---- */

/* Sets the bits of the named rows in [begin, begin + rows), and the range that the step treats: all of them, or in
 * place from the first to the last named one. */
static void name_rows(task *job, uint64_t *named, int64_t begin, int64_t rows) {
  memset(named, 0, (size_t)((rows + 63) / 64) * sizeof *named);
  int64_t first = begin + rows, last = begin - 1;
  for (int64_t n = 0; n < job->problem->dim[DIM_N]; ++n) {
    const int64_t m = position(job, n);
    if (m < begin || m >= begin + rows) continue;
    named[(m - begin) / 64] |= UINT64_C(1) << (m - begin) % 64;
    first = m < first ? m : first;
    last = m > last ? m : last;
  }
  job->named = named;
  job->block_begin = begin;
  job->begin = job->in_place ? first : begin;
  job->end = job->in_place ? last + 1 : begin + rows;
}

/* The end of the run of rows, from row m to at most `end`, that are all named or all not. */
static int64_t run_end(const task *job, int64_t m, int64_t end, bool *named) {
  int64_t bit = m - job->block_begin;
  *named = job->named[bit / 64] >> bit % 64 & 1;
  const uint64_t same = *named ? UINT64_MAX : 0;
  while (bit < end - job->block_begin) {
    const uint64_t different = (job->named[bit / 64] ^ same) >> bit % 64;
    if (different != 0) {
      bit += __builtin_ctzll(different);
      break;
    }
    bit += 64 - bit % 64;
  }
  return bit < end - job->block_begin ? bit + job->block_begin : end;
}

/* Rows [m, end) of one head of one cache. */
static void pass_rows(const task *job, int cache, int cache_input, int64_t b, int64_t h, int64_t m, int64_t end) {
  const row_view *from = &job->view[cache], *to = &job->view[cache_input];
  const int64_t D = job->problem->dim[DIM_D];
  while (wanted(job, cache_input) && m < end) {
    bool named;
    const int64_t next = run_end(job, m, end, &named);
    if (named) {
      clear_rows(to, row_at(to, b, h, m), next - m, D, job->stream);
    } else if (!job->in_place) {
      copy_rows(to, row_at(to, b, h, m), from, row_at(from, b, h, m), next - m, D, job->stream);
    }
    m = next;
  }
}

/* Items are the rows [job->begin, job->end) of every head of every batch. */
static void pass_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const int64_t H = job->problem->dim[DIM_H], rows = job->end - job->begin;
  while (begin < end) {
    const int64_t b = begin / rows / H, h = begin / rows % H, m = job->begin + begin % rows;
    const int64_t stop = job->end - m < end - begin ? job->end : m + (end - begin);
    pass_rows(job, GRAD_KEY_CACHE, GRAD_KEY_CACHE_INPUT, b, h, m, stop);
    pass_rows(job, GRAD_VALUE_CACHE, GRAD_VALUE_CACHE_INPUT, b, h, m, stop);
    begin += stop - m;
  }
  rg_stream_fence();
}

static void pass(task *job, const rg_cpu_resources *resources) {
  const int64_t heads = job->problem->dim[DIM_B] * job->problem->dim[DIM_H], M = job->problem->dim[DIM_M];
  const int64_t row_bytes = 2 * job->problem->dim[DIM_D] *
                            (job->view[GRAD_KEY_CACHE_INPUT].element + job->view[GRAD_VALUE_CACHE_INPUT].element);
  for (int64_t begin = 0; begin < M; begin += NAMED_ROWS) {
    name_rows(job, resources->workspace, begin, M - begin < NAMED_ROWS ? M - begin : NAMED_ROWS);
    const int64_t rows = job->end > job->begin ? heads * (job->end - job->begin) : 0;
    rg_parallel_ranges(resources->threads, rows, rows * row_bytes, pass_range, job);
  }
}

RG_CPU_KERNEL(rg_kv_cache_update_backward) {
  const rg_kv_cache_update_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  const bool eager = args->rounding == RG_ROUNDING_EAGER;
  task job = {
      .problem = problem,
      .style = args->style,
      .table_product =
          eager ? rg_kv_cache_update_promote(t[GRAD_KEY_CACHE].dtype, t[COS].dtype) : (rg_dtype)RG_DTYPE_NONE,
      .in_place = args->in_place,
      .stream = rg_stream_pays(cost.write_bytes),
      .wants_sums = rg_given(problem, GRAD_COS) || rg_given(problem, GRAD_SIN),
  };
  for (int k = 0; k < NUM_BACKWARD_TENSORS; ++k) {
    if (k != CACHE_POSITION) job.view[k] = view_rows(&t[k]);
  }
  bool gathers = false;
  for (int k = GRAD_KEY_STATES; k <= GRAD_SIN; ++k) gathers = gathers || rg_given(problem, k);
  if (gathers) gather(&job, resources->threads);
  if (rg_given(problem, GRAD_KEY_CACHE_INPUT) || rg_given(problem, GRAD_VALUE_CACHE_INPUT)) pass(&job, resources);
}
