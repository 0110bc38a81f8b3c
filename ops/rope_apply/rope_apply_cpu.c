/* rope_apply, backward, on the CPU, built once per level. Bound by memory: 12 bytes an element of q and k in float32,
 * against a few products. The sums of a tile's positions stay in the caches beside its tables; the README says more. */
#include <stdalign.h>

#include "ops/rope_apply/rope_apply_tiles.h"
#include "src/base/parallel.h"
#include "src/simd/stream.h"

/* So many heads are summed in rg_real before their sum goes to a wider total: the error stays near 4 roundings even
 * where all terms are alike, and whatever the number of heads and batches. */
enum { HEADS_PER_SUM = 24 };
_Static_assert(HEADS_PER_SUM % HEADS_AT_ONCE == 0, "a run of heads belongs to one sum");

typedef struct tile_buffers {
  alignas(RG_CACHE_LINE_BYTES) rg_real rows[4 * TILE_ELEMENTS];   /* see row_run */
  alignas(RG_CACHE_LINE_BYTES) rg_wide totals[2 * TILE_ELEMENTS]; /* of the sums: two split rows a position */
  alignas(RG_CACHE_LINE_BYTES) char buffer[HEADS_AT_ONCE * ROW_BUFFER_BYTES];
} tile_buffers;

typedef struct sum_task {
  task common;
  const rg_tensor *grad_cos, *grad_sin; /* NULL: not wanted */
  bool wants_tables;
  bool sums_cos, sums_sin; /* over the batch */
  int64_t tile_batches;    /* B where something is summed over the batch, else 1 */
} sum_task;

/* ---- sums ---- */

/* Adds the sums of the region's positions to their totals and clears them. */
static void add_to_totals(const sum_task *sum_job, tile_buffers *tile, const region *at) {
  const int64_t half = sum_job->common.slice_pairs, n = SUM_HALVES * half;
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *sum = tile->rows + (r * TILE_ROW_HALVES + SUM_COS) * half;
    rg_wide *total = tile->totals + r * n;
    for (int64_t i = 0; i < n; ++i) {
      total[i] += (rg_wide)sum[i];
      sum[i] = 0;
    }
  }
}

/* Stores and clears the region's sums and totals, if that gradient is wanted; which: SUM_COS or SUM_SIN. */
static void finish_table(const task *job, tile_buffers *tile, const rg_tensor *grad_table, int which,
                         const region *at) {
  if (grad_table == NULL) return;
  const int64_t half = job->slice_pairs;
  rg_real row[2 * MAX_SLICE_PAIRS];
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *sum = tile->rows + (r * TILE_ROW_HALVES + which) * half;
    rg_wide *total = tile->totals + (r * SUM_HALVES + which - SUM_COS) * half;
    for (int64_t i = 0; i < 2 * half; ++i) {
      row[i] = (rg_real)(total[i] + (rg_wide)sum[i]);
      sum[i] = 0;
      total[i] = 0;
    }
    write_pairs(grad_table->dtype, table_row(job, grad_table, at, r),
                pairs_at(job->style, grad_table->stride[2], job->rotary_dim / 2), row, row + half, at->pairs);
  }
}

/* ---- tiles ---- */

/* `summed`: how many heads are in the sums since these were last added to the totals. When they are added depends on
 * the numbers of heads alone and not on how many are done in one run. */
static void do_side(const sum_task *sum_job, tile_buffers *buffers, const side_tensors *side, const region *at,
                    const region *next, int64_t *summed) {
  const tile_memory tile = {buffers->rows, buffers->buffer};
  const task *job = &sum_job->common;
  for (int64_t h = 0; h < side->heads;) {
    if (sum_job->wants_tables && h % HEADS_PER_SUM == 0) {
      const int64_t more = side->heads - h < HEADS_PER_SUM ? side->heads - h : HEADS_PER_SUM;
      if (*summed + more > HEADS_PER_SUM) {
        add_to_totals(sum_job, buffers, at);
        *summed = 0;
      }
      *summed += more;
    }
    const row_run run = run_at(job, tile, side, at, h);
    do_run(job, RG_BACKWARD, side, run, run_after(job, tile, side, at, h, next));
    h += run.heads;
  }
}

/* `next` is the region that follows, or the same one. */
static void do_tile(const sum_task *sum_job, tile_buffers *tile, region at, const region *next) {
  const task *job = &sum_job->common;
  int64_t summed = 0;
  for (int64_t i = 0; i < sum_job->tile_batches; ++i, ++at.b) {
    if (job->cosine != NULL) stage_tables(job, tile->rows, &at);
    do_side(sum_job, tile, &job->sides[0], &at, next, &summed);
    do_side(sum_job, tile, &job->sides[1], &at, next, &summed);
    if (!sum_job->sums_cos) finish_table(job, tile, sum_job->grad_cos, SUM_COS, &at);
    if (!sum_job->sums_sin) finish_table(job, tile, sum_job->grad_sin, SUM_SIN, &at);
  }
  if (sum_job->sums_cos) finish_table(job, tile, sum_job->grad_cos, SUM_COS, &at);
  if (sum_job->sums_sin) finish_table(job, tile, sum_job->grad_sin, SUM_SIN, &at);
}

static void unit_range(void *arg, int64_t begin, int64_t end) {
  const sum_task *sum_job = arg;
  const task *job = &sum_job->common;
  tile_buffers tile;
  if (sum_job->wants_tables) {
    const int64_t rows = job->tile_rows < end - begin ? job->tile_rows : end - begin;
    memset(tile.rows, 0, (size_t)(rows * TILE_ROW_HALVES * job->slice_pairs) * sizeof *tile.rows);
    memset(tile.totals, 0, (size_t)(rows * SUM_HALVES * job->slice_pairs) * sizeof *tile.totals);
  }
  region at = region_at(job, begin, end);
  for (int64_t u = begin; u < end;) {
    u += at.rows;
    const region next = u < end ? region_at(job, u, end) : at;
    do_tile(sum_job, &tile, at, &next);
    at = next;
  }
  rg_stream_fence();
}

static const rg_tensor *wanted(const rg_problem *problem, int tensor) {
  return rg_given(problem, tensor) ? &problem->tensor[tensor] : NULL;
}

RG_CPU_KERNEL(rg_rope_apply_backward) {
  const rg_rope_apply_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor, *grad_q = wanted(problem, GRAD_Q), *grad_k = wanted(problem, GRAD_K);
  const bool rotates = grad_q != NULL || grad_k != NULL;
  sum_task sum_job = {.grad_cos = wanted(problem, GRAD_COS),
                      .grad_sin = wanted(problem, GRAD_SIN),
                      .sums_cos = rope_apply_sums_batch(problem, GRAD_COS),
                      .sums_sin = rope_apply_sums_batch(problem, GRAD_SIN)};
  sum_job.wants_tables = sum_job.grad_cos != NULL || sum_job.grad_sin != NULL;
  const bool sums_batch = sum_job.sums_cos || sum_job.sums_sin;
  sum_job.tile_batches = sums_batch ? problem->dim[DIM_B] : 1;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  const rg_tensor *q = sum_job.wants_tables ? &t[Q] : NULL, *k = sum_job.wants_tables ? &t[K] : NULL;
  sum_job.common = (task){.seq_len = problem->dim[DIM_S],
                          .head_dim = problem->dim[DIM_D],
                          .rotary_dim = problem->dim[DIM_R],
                          .sides = {side_of(&t[GRAD_Q_EMBED], q, grad_q, problem->dim[DIM_HQ]),
                                    side_of(&t[GRAD_K_EMBED], k, grad_k, problem->dim[DIM_HK])},
                          .cosine = rotates ? &t[COS] : NULL,
                          .sine = rotates ? &t[SIN] : NULL,
                          .style = args->style,
                          .same_half = args->sin_pairing == RG_SIN_SAME_HALF,
                          .stream = rg_stream_pays(cost.write_bytes),
                          .heads_at_one_position = HEADS_PER_SUM,
                          .tile_halves = TILE_ROW_HALVES,
                          .rows = problem->dim[DIM_S] * (sums_batch ? 1 : problem->dim[DIM_B])};
  if (sum_job.common.rows == 0) return;
  cut_into_tiles(&sum_job.common, resources->threads);
  rg_parallel_ranges(resources->threads, sum_job.common.rows * sum_job.common.slices,
                     cost.read_bytes + cost.write_bytes, unit_range, &sum_job);
}
