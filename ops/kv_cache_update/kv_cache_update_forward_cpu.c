/* kv_cache_update_forward on the CPU, built once per level. Bound by memory, in two steps:
 *
 *   put   writes the new rows, keys rotated, to the rows of the caches that cache_position names;
 *   pass  copies all other rows; out of place only.
 *
 * Each byte moves once. No step writes or reads what the other one writes, and of new rows that name the same row of a
 * cache only the last is put, so that no thread waits for another. */
#include "ops/kv_cache_update/kv_cache_update_forward_put.h"
#include "src/base/parallel.h"

/* Half of the workspace has a bit for so many rows of a cache, the other half for as many new rows. */
enum { ROWS_AT_ONCE = 8 * RG_WORKSPACE_BYTES / 2 };

/* ---- pass ---- */

/* Rows [m, end) of one head of one cache. */
static void pass_rows(const task *job, int cache_input, int cache, int64_t b, int64_t h, int64_t m, int64_t end) {
  const row_view *from = &job->view[cache_input], *to = &job->view[cache];
  while (wanted(job, cache) && m < end) {
    const int64_t bit = m - job->cache_begin;
    const int64_t next = bit_run_end(job->named, bit, end - job->cache_begin) + job->cache_begin;
    if (!bit_at(job->named, bit)) {
      copy_rows(to, row_at(to, b, h, m), from, row_at(from, b, h, m), next - m, job->problem->dim[DIM_D], job->stream);
    }
    m = next;
  }
}

/* Items are the cache rows of the run, head by head of every batch. */
static void pass_range(const task *job, int64_t begin, int64_t end) {
  const int64_t H = job->problem->dim[DIM_H], rows = job->cache_rows;
  const int64_t turn = rows_of_turn(job->problem->dim[DIM_D] * job->view[FORWARD_KEY_CACHE].element);
  while (begin < end) {
    const int64_t b = begin / rows / H, h = begin / rows % H, row = begin % rows;
    int64_t m = job->cache_begin + row;
    const int64_t stop = m + (rows - row < end - begin ? rows - row : end - begin);
    for (int64_t next; m < stop; begin += next - m, m = next) {
      next = stop - m < turn ? stop : m + turn;
      pass_rows(job, FORWARD_KEY_CACHE_INPUT, FORWARD_KEY_CACHE, b, h, m, next);
      pass_rows(job, FORWARD_VALUE_CACHE_INPUT, FORWARD_VALUE_CACHE, b, h, m, next);
    }
  }
}

/* ---- both steps ---- */

static void run_parts(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  put_range(job, part_begin(job->put_items, begin), part_begin(job->put_items, end));
  pass_range(job, part_begin(job->pass_items, begin), part_begin(job->pass_items, end));
  rg_stream_fence();
}

/* Finds what is put of the run's new rows: those that name one of the run's cache rows that no later one names. */
static void keep_last(task *job) {
  clear_bits(job->kept, job->new_rows);
  for (int64_t n = job->new_rows - 1; n >= 0; --n) {
    const int64_t m = position(job, job->new_begin + n) - job->cache_begin;
    if (m < 0 || m >= job->cache_rows || bit_at(job->named, m)) continue;
    set_bit(job->named, m);
    set_bit(job->kept, n);
  }
}

static void run(task *job, int threads, bool passes) {
  const int64_t *dim = job->problem->dim;
  const row_view *view = job->view;
  job->put_items = dim[DIM_B] * job->new_rows;
  job->pass_items = passes ? dim[DIM_B] * dim[DIM_H] * job->cache_rows : 0;
  const int64_t row_bytes = 2 * dim[DIM_D] * (view[FORWARD_KEY_CACHE].element + view[FORWARD_VALUE_CACHE].element);
  rg_parallel_ranges(threads, PARTS, (job->put_items * dim[DIM_H] + job->pass_items) * row_bytes, run_parts, job);
}

RG_CPU_KERNEL(rg_kv_cache_update_forward) {
  const rg_kv_cache_update_forward_args *args = problem->args;
  const int64_t N = problem->dim[DIM_N], M = problem->dim[DIM_M];
  rg_cost cost;
  problem->op->cost(problem, &cost);
  task job = {
      .problem = problem,
      .style = args->style,
      .in_place = args->in_place,
      .stream = rg_stream_pays(cost.write_bytes),
      .named = resources->workspace,
      .kept = (uint64_t *)resources->workspace + ROWS_AT_ONCE / 64,
  };
  for (int k = 0; k < NUM_FORWARD_TENSORS; ++k) {
    if (k != FORWARD_CACHE_POSITION) job.view[k] = view_rows(&problem->tensor[k]);
  }
  for (job.cache_begin = 0; job.cache_begin < M; job.cache_begin += ROWS_AT_ONCE) {
    job.cache_rows = M - job.cache_begin < ROWS_AT_ONCE ? M - job.cache_begin : ROWS_AT_ONCE;
    clear_bits(job.named, job.cache_rows);
    /* The last new rows first: they mark the rows that earlier ones then leave alone. */
    for (int64_t end = N; end > 0; end = job.new_begin) {
      job.new_rows = end < ROWS_AT_ONCE ? end : ROWS_AT_ONCE;
      job.new_begin = end - job.new_rows;
      keep_last(&job);
      /* What passes is known when all entries have been seen. */
      run(&job, resources->threads, job.new_begin == 0 && !job.in_place);
    }
    if (N == 0 && !job.in_place) run(&job, resources->threads, true);
  }
}
