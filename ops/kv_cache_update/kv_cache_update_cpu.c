/* kv_cache_update on the CPU, built once per level. Bound by memory, in two steps:
 *
 *   gather  reads the rows of the caches that cache_position names and makes of them the gradients of the states and
 *           of the tables;
 *   pass    writes the gradients of the caches' inputs: named rows as zeros, without reading them, the others copied.
 *
 * Each byte moves once. Out of place every thread does its share of both steps without waiting for the others; in
 * place, where the second step clears what the first one reads, all finish the first before any begins the second. */
#include "ops/kv_cache_update/kv_cache_update_gather.h"
#include "ops/kv_cache_update/kv_cache_update_split.h"
#include "src/base/parallel.h"

/* Cache rows that the workspace has a bit for. */
enum { NAMED_ROWS = 8 * RG_WORKSPACE_BYTES };

/* ---- pass ---- */

/* Sets the bits of the named rows in [begin, begin + rows), and the range that the step treats: all of them, or in
 * place from the first to the last named one. */
static void name_rows(task *job, uint64_t *named, int64_t begin, int64_t rows) {
  clear_bits(named, rows);
  int64_t first = begin + rows, last = begin - 1;
  for (int64_t n = 0; n < job->problem->dim[DIM_N]; ++n) {
    const int64_t m = position(job, n);
    if (m < begin || m >= begin + rows) continue;
    set_bit(named, m - begin);
    first = m < first ? m : first;
    last = m > last ? m : last;
  }
  job->named = named;
  job->block_begin = begin;
  job->begin = job->in_place ? first : begin;
  job->end = job->in_place ? last + 1 : begin + rows;
}

/* Rows [m, end) of one head of one cache. */
static void pass_rows(const task *job, int cache, int cache_input, int64_t b, int64_t h, int64_t m, int64_t end) {
  const row_view *from = &job->view[cache], *to = &job->view[cache_input];
  const int64_t D = job->problem->dim[DIM_D];
  while (wanted(job, cache_input) && m < end) {
    const int64_t bit = m - job->block_begin;
    const int64_t next = bit_run_end(job->named, bit, end - job->block_begin) + job->block_begin;
    if (bit_at(job->named, bit)) {
      clear_rows(to, row_at(to, b, h, m), next - m, D, job->stream);
    } else if (!job->in_place) {
      copy_rows(to, row_at(to, b, h, m), from, row_at(from, b, h, m), next - m, D, job->stream);
    }
    m = next;
  }
}

/* Items are the rows [job->begin, job->end) of every head of every batch. */
static void pass_range(const task *job, int64_t begin, int64_t end) {
  const int64_t H = job->problem->dim[DIM_H], rows = job->end - job->begin;
  const int64_t turn = rows_of_turn(job->problem->dim[DIM_D] * job->view[GRAD_KEY_CACHE_INPUT].element);
  while (begin < end) {
    const int64_t b = begin / rows / H, h = begin / rows % H;
    int64_t m = job->begin + begin % rows;
    const int64_t stop = job->end - m < end - begin ? job->end : m + (end - begin);
    for (int64_t next; m < stop; begin += next - m, m = next) {
      next = stop - m < turn ? stop : m + turn;
      pass_rows(job, GRAD_KEY_CACHE, GRAD_KEY_CACHE_INPUT, b, h, m, next);
      pass_rows(job, GRAD_VALUE_CACHE, GRAD_VALUE_CACHE_INPUT, b, h, m, next);
    }
  }
}

/* ---- both steps ---- */

static void run_parts(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  gather_range(job, part_begin(job->gather_items, begin), part_begin(job->gather_items, end));
  pass_range(job, part_begin(job->pass_items, begin), part_begin(job->pass_items, end));
  rg_stream_fence();
}

static void run(task *job, int threads, int64_t gather_items, int64_t pass_items) {
  const int64_t *dim = job->problem->dim;
  const row_view *view = job->view;
  job->gather_items = gather_items;
  job->pass_items = pass_items;
  /* A named row is read and written once for the keys and once for the values, and key_states is read. */
  const int64_t gather_bytes = (job->sums_batches ? dim[DIM_B] : 1) * dim[DIM_H] * dim[DIM_D] *
                               (3 * view[GRAD_KEY_CACHE].element + 2 * view[GRAD_VALUE_CACHE].element);
  const int64_t pass_bytes =
      2 * dim[DIM_D] * (view[GRAD_KEY_CACHE_INPUT].element + view[GRAD_VALUE_CACHE_INPUT].element);
  rg_parallel_ranges(threads, PARTS, gather_items * gather_bytes + pass_items * pass_bytes, run_parts, job);
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
  job.sums_batches = sums_over_batches(&job, GRAD_COS) || sums_over_batches(&job, GRAD_SIN);

  const int64_t B = problem->dim[DIM_B], N = problem->dim[DIM_N], M = problem->dim[DIM_M];
  bool gathers = false;
  for (int k = GRAD_KEY_STATES; k <= GRAD_SIN; ++k) gathers = gathers || rg_given(problem, k);
  const bool passes = rg_given(problem, GRAD_KEY_CACHE_INPUT) || rg_given(problem, GRAD_VALUE_CACHE_INPUT);
  int64_t gather_items = !gathers ? 0 : job.sums_batches ? N : B * N;
  if (job.in_place || !passes) {
    run(&job, resources->threads, gather_items, 0);
    gather_items = 0;
  }
  for (int64_t begin = 0; passes && (begin < M || begin == 0); begin += NAMED_ROWS) {
    name_rows(&job, resources->workspace, begin, M - begin < NAMED_ROWS ? M - begin : NAMED_ROWS);
    const int64_t rows = job.end > job.begin ? job.end - job.begin : 0;
    run(&job, resources->threads, gather_items, B * problem->dim[DIM_H] * rows);
    gather_items = 0;
  }
}
