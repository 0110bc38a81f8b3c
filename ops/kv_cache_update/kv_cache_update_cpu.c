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

enum {
  /* Rows of as many heads are treated together. Also the most terms that are summed in rg_real before they go to a
     double: so few that even if all have one sign and all roundings one direction, the error stays below 4 u times the
     sum. */
  HEADS = 8,
  BLOCK_ROWS = 16,                    /* new rows that a thread takes at a time */
  NAMED_ROWS = 8 * RG_WORKSPACE_BYTES /* cache rows that the workspace has a bit for */
};

typedef struct task {
  const rg_problem *problem;
  rg_style style;
  rg_dtype product_table, product_key; /* what products with a table, with a key, are rounded to; see rotate.h */
  bool in_place, stream;
  bool wants_tables; /* grad_cos or grad_sin */
  /* gather */
  bool sums_batches; /* a table's gradient sums over the batches: one thread takes them all, in order */
  int64_t blocks;    /* of BLOCK_ROWS new rows */
  /* pass */
  const uint64_t *named;           /* bit m - block_begin is set: cache_position names row m */
  int64_t block_begin, begin, end; /* rows that have bits start at block_begin; the step treats [begin, end) */
} task;

static bool serves_every_batch(const rg_tensor *table) { return table->shape[0] == 1; }

/* ---- gather ---- */

typedef struct staged_pairs {
  rg_real first[MAX_PAIRS], second[MAX_PAIRS];
} staged_pairs;

static staged_row row_of(staged_pairs *pairs) { return (staged_row){pairs->first, pairs->second}; }

/* The sum for one row of a table's gradient, group by group of heads: the last group's share in rg_real, that of the
 * groups before it, if any, in double. */
typedef struct table_sum {
  staged_pairs last;
  double before_first[MAX_PAIRS], before_second[MAX_PAIRS];
  int64_t groups;
} table_sum;

/* What a thread works with. */
typedef struct gatherer {
  const task *job;
  pair_range range;
  staged_pairs cosine, sine;
  table_sum grad_cos, grad_sin;
  /* Rows of pairs in the tensors' own dtypes, on their way from or to memory. */
  rg_real grad_buffer[HEADS][2 * MAX_PAIRS], key_buffer[HEADS][2 * MAX_PAIRS], out_buffer[HEADS][2 * MAX_PAIRS];
} gatherer;

static int64_t row_at(const rg_tensor *t, int64_t b, int64_t h, int64_t row) {
  return b * t->stride[0] + h * t->stride[1] + row * t->stride[2];
}

static int64_t table_row_at(const rg_tensor *t, int64_t b, int64_t n) {
  return (serves_every_batch(t) ? 0 : b * t->stride[0]) + n * t->stride[1];
}

static void stage_table(gatherer *g, int table, int64_t b, int64_t n, staged_pairs *staged) {
  const rg_tensor *t = &g->job->problem->tensor[table];
  const const_pair_row row = fetch_pairs(t, table_row_at(t, b, n), g->range, g->out_buffer[0]);
  stage_row(t->dtype, g->range.style, row, row_of(staged), g->range.count);
}

/* Makes room in sum->last for another group. */
static void begin_group(const gatherer *g, table_sum *sum) {
  if (sum->groups > 0) {
    for (int64_t i = 0; i < g->range.count; ++i) {
      sum->before_first[i] = (sum->groups > 1 ? sum->before_first[i] : 0.0) + (double)sum->last.first[i];
      sum->before_second[i] = (sum->groups > 1 ? sum->before_second[i] : 0.0) + (double)sum->last.second[i];
    }
  }
  ++sum->groups;
}

/* Writes the sum to row (b, n) of the gradient and starts anew. */
static void store_sum(gatherer *g, int gradient, int64_t b, int64_t n, table_sum *sum) {
  const rg_tensor *t = &g->job->problem->tensor[gradient];
  for (int64_t i = 0; i < g->range.count && sum->groups != 1; ++i) {
    sum->last.first[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_first[i] + (double)sum->last.first[i]);
    sum->last.second[i] = sum->groups == 0 ? 0 : (rg_real)(sum->before_second[i] + (double)sum->last.second[i]);
  }
  sum->groups = 0;
  const pair_row made = buffer_pairs(rg_dtype_size(t->dtype), g->range, g->out_buffer[0]);
  unstage_row(t->dtype, g->range.style, row_of(&sum->last), made, g->range.count);
  store_pairs(t, table_row_at(t, b, n), g->range, g->out_buffer[0], g->job->stream);
}

/* New row n of batch b, which went to row m of the cache: heads [begin, begin + heads). */
static void gather_heads(gatherer *g, int64_t b, int64_t n, int64_t m, int64_t begin, int heads) {
  const task *job = g->job;
  const rg_tensor *cache = &job->problem->tensor[GRAD_KEY_CACHE], *keys = &job->problem->tensor[KEY_STATES];
  const rg_tensor *states = &job->problem->tensor[GRAD_KEY_STATES];
  const_pair_row grad[HEADS], key[HEADS];
  pair_row out[HEADS];
  for (int i = 0; i < heads; ++i) {
    grad[i] = fetch_pairs(cache, row_at(cache, b, begin + i, m), g->range, g->grad_buffer[i]);
    out[i] = buffer_pairs(rg_dtype_size(cache->dtype), g->range, g->out_buffer[i]);
  }
  if (rg_given(job->problem, GRAD_KEY_STATES)) {
    rotate_heads(cache->dtype, job->style, job->product_table, heads, grad, row_of(&g->cosine), row_of(&g->sine), out,
                 g->range.count);
    for (int i = 0; i < heads; ++i) {
      store_pairs(states, row_at(states, b, begin + i, n), g->range, g->out_buffer[i], job->stream);
    }
  }
  if (!job->wants_tables) return;
  for (int i = 0; i < heads; ++i) {
    key[i] = fetch_pairs(keys, row_at(keys, b, begin + i, n), g->range, g->key_buffer[i]);
  }
  begin_group(g, &g->grad_cos);
  begin_group(g, &g->grad_sin);
  sum_heads(cache->dtype, job->style, job->product_key, heads, grad, key, row_of(&g->grad_cos.last),
            row_of(&g->grad_sin.last), g->range.count);
}

/* The pairs of g->range of new row n in batches [begin, end). A sum goes out after each batch, or after the last one
 * when it is over all. */
static void gather_pairs(gatherer *g, int64_t n, int64_t m, int64_t begin, int64_t end) {
  const rg_problem *problem = g->job->problem;
  static const int gradients[2] = {GRAD_COS, GRAD_SIN};
  table_sum *const sums[2] = {&g->grad_cos, &g->grad_sin};
  const int64_t H = problem->dim[DIM_H];
  g->grad_cos.groups = g->grad_sin.groups = 0;
  for (int64_t b = begin; b < end; ++b) {
    if (m >= 0 && rg_given(problem, GRAD_KEY_STATES)) {
      stage_table(g, COS, b, n, &g->cosine);
      stage_table(g, SIN, b, n, &g->sine);
    }
    for (int64_t h = 0; h < H && m >= 0; h += HEADS) {
      gather_heads(g, b, n, m, h, H - h < HEADS ? (int)(H - h) : HEADS);
    }
    for (int k = 0; k < 2; ++k) {
      if (!rg_given(problem, gradients[k]) || serves_every_batch(&problem->tensor[gradients[k]])) continue;
      store_sum(g, gradients[k], b, n, sums[k]);
    }
  }
  for (int k = 0; k < 2; ++k) {
    if (!rg_given(problem, gradients[k]) || !serves_every_batch(&problem->tensor[gradients[k]])) continue;
    store_sum(g, gradients[k], 0, n, sums[k]);
  }
}

/* Columns from `column` on of new rows [n, end) of one head, copied from the cache as they are; where an entry is
 * negative the whole row becomes zero. */
static void gather_columns(const task *job, int cache, int states, int64_t column, int64_t b, int64_t h, int64_t n,
                           int64_t end) {
  const rg_tensor *from = &job->problem->tensor[cache], *to = &job->problem->tensor[states];
  const rg_tensor *positions = &job->problem->tensor[CACHE_POSITION];
  const int64_t columns = job->problem->dim[DIM_D] - column;
  for (int64_t run = 1; n < end; n += run, run = 1) {
    const int64_t m = rg_kv_cache_update_position(positions, n);
    if (m < 0) {
      clear_rows(to, row_at(to, b, h, n), 1, job->stream);
    } else if (columns > 0) {
      while (n + run < end && rg_kv_cache_update_position(positions, n + run) == m + run) ++run;
      copy_rows(to, row_at(to, b, h, n) + column * to->stride[3], from,
                row_at(from, b, h, m) + column * from->stride[3], run, columns, job->stream);
    }
  }
}

/* Items are blocks of new rows: of one batch each, batch by batch, or of all batches where a sum is over all. */
static void gather_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_problem *problem = job->problem;
  const int64_t N = problem->dim[DIM_N], half = problem->dim[DIM_R] / 2;
  const bool wants_keys = rg_given(problem, GRAD_KEY_STATES);
  gatherer g;
  g.job = job;
  for (int64_t item = begin; item < end; ++item) {
    const int64_t first_batch = job->sums_batches ? 0 : item / job->blocks;
    const int64_t last_batch = job->sums_batches ? problem->dim[DIM_B] : first_batch + 1;
    const int64_t first = item % job->blocks * BLOCK_ROWS, last = N - first < BLOCK_ROWS ? N : first + BLOCK_ROWS;
    for (int64_t n = first; n < last && (wants_keys || job->wants_tables); ++n) {
      const int64_t m = rg_kv_cache_update_position(&problem->tensor[CACHE_POSITION], n);
      for (int64_t pair = 0; pair < half; pair += MAX_PAIRS) {
        const int64_t count = half - pair < MAX_PAIRS ? half - pair : MAX_PAIRS;
        g.range = (pair_range){job->style, problem->dim[DIM_R], pair, count};
        gather_pairs(&g, n, m, first_batch, last_batch);
      }
    }
    for (int64_t b = first_batch; b < last_batch; ++b) {
      for (int64_t h = 0; h < problem->dim[DIM_H]; ++h) {
        if (wants_keys) gather_columns(job, GRAD_KEY_CACHE, GRAD_KEY_STATES, problem->dim[DIM_R], b, h, first, last);
        if (rg_given(problem, GRAD_VALUE_STATES)) {
          gather_columns(job, GRAD_VALUE_CACHE, GRAD_VALUE_STATES, 0, b, h, first, last);
        }
      }
    }
  }
  rg_stream_fence();
}

static void gather(task *job, int threads) {
  const rg_problem *problem = job->problem;
  const rg_tensor *t = problem->tensor;
  job->sums_batches = (rg_given(problem, GRAD_COS) && serves_every_batch(&t[GRAD_COS])) ||
                      (rg_given(problem, GRAD_SIN) && serves_every_batch(&t[GRAD_SIN]));
  job->blocks = (problem->dim[DIM_N] + BLOCK_ROWS - 1) / BLOCK_ROWS;
  /* A named row is read and written once for the keys and once for the values, and key_states is read. */
  const int64_t rows = problem->dim[DIM_B] * problem->dim[DIM_H] * problem->dim[DIM_N];
  const int64_t bytes =
      rows * problem->dim[DIM_D] *
      (int64_t)(3 * rg_dtype_size(t[GRAD_KEY_CACHE].dtype) + 2 * rg_dtype_size(t[GRAD_VALUE_CACHE].dtype));
  rg_parallel_ranges(threads, job->sums_batches ? job->blocks : problem->dim[DIM_B] * job->blocks, bytes, gather_range,
                     job);
}

/* ---- pass ---- */

/* Sets the bits of the named rows in [begin, begin + rows), and the range that the step treats: all of them, or in
 * place from the first to the last named one. */
static void name_rows(task *job, uint64_t *named, int64_t begin, int64_t rows) {
  const rg_problem *problem = job->problem;
  memset(named, 0, (size_t)((rows + 63) / 64) * sizeof *named);
  int64_t first = begin + rows, last = begin - 1;
  for (int64_t n = 0; n < problem->dim[DIM_N]; ++n) {
    const int64_t m = rg_kv_cache_update_position(&problem->tensor[CACHE_POSITION], n);
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
  if (!rg_given(job->problem, cache_input)) return;
  const rg_tensor *from = &job->problem->tensor[cache], *to = &job->problem->tensor[cache_input];
  while (m < end) {
    bool named;
    const int64_t next = run_end(job, m, end, &named);
    if (named) {
      clear_rows(to, row_at(to, b, h, m), next - m, job->stream);
    } else if (!job->in_place) {
      copy_rows(to, row_at(to, b, h, m), from, row_at(from, b, h, m), next - m, job->problem->dim[DIM_D], job->stream);
    }
    m = next;
  }
}

/* Items are the rows [job->begin, job->end) of every head of every batch. */
static void pass_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const int64_t H = job->problem->dim[DIM_H], rows = job->end - job->begin;
  while (begin < end) {
    const int64_t head = begin / rows, b = head / H, h = head % H;
    const int64_t m = job->begin + begin % rows;
    const int64_t stop = job->end - m < end - begin ? job->end : m + (end - begin);
    pass_rows(job, GRAD_KEY_CACHE, GRAD_KEY_CACHE_INPUT, b, h, m, stop);
    pass_rows(job, GRAD_VALUE_CACHE, GRAD_VALUE_CACHE_INPUT, b, h, m, stop);
    begin += stop - m;
  }
  rg_stream_fence();
}

static void pass(task *job, const rg_cpu_resources *resources) {
  const rg_problem *problem = job->problem;
  const int64_t heads = problem->dim[DIM_B] * problem->dim[DIM_H], M = problem->dim[DIM_M];
  const size_t element_bytes = rg_dtype_size(problem->tensor[GRAD_KEY_CACHE_INPUT].dtype) +
                               rg_dtype_size(problem->tensor[GRAD_VALUE_CACHE_INPUT].dtype);
  for (int64_t begin = 0; begin < M; begin += NAMED_ROWS) {
    name_rows(job, resources->workspace, begin, M - begin < NAMED_ROWS ? M - begin : NAMED_ROWS);
    const int64_t items = job->end > job->begin ? heads * (job->end - job->begin) : 0;
    const int64_t bytes = 2 * items * problem->dim[DIM_D] * (int64_t)element_bytes;
    rg_parallel_ranges(resources->threads, items, bytes, pass_range, job);
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
      .product_table =
          eager ? rg_kv_cache_update_promote(t[GRAD_KEY_CACHE].dtype, t[COS].dtype) : (rg_dtype)RG_DTYPE_NONE,
      .product_key = eager ? t[GRAD_KEY_CACHE].dtype : (rg_dtype)RG_DTYPE_NONE,
      .in_place = args->in_place,
      .stream = rg_stream_pays(cost.write_bytes),
      .wants_tables = rg_given(problem, GRAD_COS) || rg_given(problem, GRAD_SIN),
  };
  bool gathers = false;
  for (int k = GRAD_KEY_STATES; k <= GRAD_SIN; ++k) gathers = gathers || rg_given(problem, k);
  if (gathers) gather(&job, resources->threads);
  if (rg_given(problem, GRAD_KEY_CACHE_INPUT) || rg_given(problem, GRAD_VALUE_CACHE_INPUT)) pass(&job, resources);
}
