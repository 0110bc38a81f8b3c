/* rope_apply on the CPU, built once per level. Bound by memory: 12 bytes an element of q and k in float32, against a
 * few products. The sequence is cut into tiles of a few positions, whose tables and sums stay in the caches while every
 * head passes by; the README says more. */
#include <stdalign.h>

#include "ops/rope_apply/rope_apply_rows.h"
#include "ops/rope_apply/rope_apply_spec.h"
#include "src/base/parallel.h"
#include "src/simd/stream.h"

enum {
  /* Elements of each table: in float32 the rows of a head in a tile are 16 KiB, four pages. Fewer cost time in the
   * translation of addresses, more would not stay in the second-level cache. */
  TILE_ELEMENTS = 4096,
  /* Pairs of a slice: one cache line of float32 at the least. */
  MIN_SLICE_PAIRS = 16,
  MAX_SLICE_PAIRS = 512,
  /* So many heads are summed in rg_real before their sum goes to a wider total: the error stays near 4 roundings even
   * where all terms are alike, and whatever the number of heads and batches. */
  HEADS_PER_SUM = 24
};
_Static_assert(HEADS_PER_SUM % HEADS_AT_ONCE == 0, "a run of heads belongs to one sum");

typedef struct tile_buffers {
  alignas(RG_CACHE_LINE_BYTES)
      rg_real rows[4 * TILE_ELEMENTS]; /* see row_run; for RG_SIN_SAME_HALF the sines of a pair exchanged */
  alignas(RG_CACHE_LINE_BYTES) rg_wide totals[2 * TILE_ELEMENTS]; /* of the sums: two split rows a position */
  alignas(RG_CACHE_LINE_BYTES) char buffer[HEADS_AT_ONCE * ROW_BUFFER_BYTES];
} tile_buffers;

/* The tensors of q or of k. */
typedef struct side_tensors {
  const rg_tensor *grad_y;
  const rg_tensor *x;      /* NULL: no gradient of a table is wanted */
  const rg_tensor *grad_x; /* NULL: not wanted */
  int64_t heads;           /* 0 where the side has no part in what is wanted */
  bool contiguous_rows;
} side_tensors;

typedef struct task {
  const rg_problem *problem;
  side_tensors sides[2];
  rg_style style;
  bool same_half, stream;
  bool wants_tables, wants_grad_x;
  bool sums_cos, sums_sin; /* over the batch */
  int64_t tile_batches;    /* B where something is summed over the batch, else 1 */
  int64_t rows;            /* positions, times the batches where nothing is summed over them */
  int64_t tile_rows;       /* at most so many in a tile */
  int64_t slice_pairs;     /* at most so many of a row's pairs in a tile */
  int64_t slices;          /* of a row */
} task;

/* What a tile covers: positions [s, s + rows) of batch b, pairs [pair, pair + pairs) of each row. */
typedef struct region {
  int64_t b, s, rows;
  int64_t slice, pair, pairs;
} region;

static int64_t first_column(const task *job, const region *at) {
  return job->style == RG_STYLE_INTERLEAVED ? 2 * at->pair : at->pair;
}

/* ---- heads ---- */

static row_walk walk(const task *job, const rg_tensor *t, const region *at, int64_t h) {
  if (t == NULL) return (row_walk){NULL, 0, 0};
  const int64_t size = (int64_t)rg_dtype_size(t->dtype);
  const int64_t place =
      at->b * t->stride[0] + h * t->stride[1] + at->s * t->stride[2] + first_column(job, at) * t->stride[3];
  return (row_walk){rg_element(t, place), t->stride[1] * size, t->stride[2] * size};
}

/* Head h and some that follow: a few, of which the tile has many positions, or many at one position. */
static row_run run_at(const task *job, tile_buffers *tile, const side_tensors *side, const region *at, int64_t h) {
  const int64_t R = job->problem->dim[DIM_R], rest = (job->problem->dim[DIM_D] - R) / 2;
  const int64_t size = (int64_t)rg_dtype_size(side->grad_y->dtype);
  const int64_t heads = at->rows > 1 ? HEADS_AT_ONCE : HEADS_PER_SUM;
  /* Each slice has its share of what lies past rotary_dim, in whole pairs. */
  const int64_t pass_begin = rest * at->slice / job->slices, pass_end = rest * (at->slice + 1) / job->slices;
  return (row_run){.grad_y = walk(job, side->grad_y, at, h),
                   .x = walk(job, side->x, at, h),
                   .grad_x = walk(job, side->grad_x, at, h),
                   .heads = side->heads - h < heads ? side->heads - h : heads,
                   .rows = at->rows,
                   .pairs = at->pairs,
                   .half = R / 2,
                   .tile_row = tile->rows,
                   .tile_half = job->slice_pairs,
                   .pass_at = (R + 2 * pass_begin - first_column(job, at)) * size,
                   .pass_bytes = 2 * (pass_end - pass_begin) * size,
                   .output = job->stream ? OUTPUT_STREAM : OUTPUT_STORE,
                   .buffer = tile->buffer};
}

/* The pairs of a row that is not contiguous in one of the tensors, through split rows. */
static void do_staged_row(const task *job, const side_tensors *side, const row_run *run) {
  rg_real grad_y[2 * MAX_SLICE_PAIRS], x[2 * MAX_SLICE_PAIRS], grad_x[2 * MAX_SLICE_PAIRS];
  const int64_t n = run->pairs;
  row_run staged = *run;
  staged.half = n;
  staged.output = OUTPUT_STORE;
  read_pairs(side->grad_y->dtype, run->grad_y.row, pairs_at(job->style, side->grad_y->stride[3], run->half), grad_y,
             grad_y + n, n);
  staged.grad_y.row = (char *)grad_y;
  if (side->x) {
    read_pairs(side->x->dtype, run->x.row, pairs_at(job->style, side->x->stride[3], run->half), x, x + n, n);
    staged.x.row = (char *)x;
  }
  if (side->grad_x) staged.grad_x.row = (char *)grad_x;
  const row_work work = {.grad_x = side->grad_x != NULL, .tables = side->x != NULL};
  do_row(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, work, 1, &staged);
  if (side->grad_x) {
    write_pairs(side->grad_x->dtype, run->grad_x.row, pairs_at(job->style, side->grad_x->stride[3], run->half), grad_x,
                grad_x + n, n);
  }
}

static void do_staged_run(const task *job, const side_tensors *side, row_run run) {
  const int64_t size = (int64_t)rg_dtype_size(side->grad_y->dtype);
  for (; run.heads > 0; skip_heads(&run, 1)) {
    row_run row = run;
    for (int64_t r = 0; r < run.rows; ++r, next_row(&row)) {
      do_staged_row(job, side, &row);
      if (side->grad_x == NULL) continue;
      const int64_t from_step = side->grad_y->stride[3], to_step = side->grad_x->stride[3];
      const char *from = row.grad_y.row + run.pass_at * from_step;
      char *to = row.grad_x.row + run.pass_at * to_step;
      RG_WITH_DTYPE(side->grad_y->dtype, T,
                    rg_copy_strided(RG_SIZE(T), to, to_step, from, from_step, run.pass_bytes / size));
    }
  }
}

static void do_run(const task *job, const side_tensors *side, row_run run, row_run next) {
  if (!side->contiguous_rows) {
    do_staged_run(job, side, run);
  } else if (job->style == RG_STYLE_ROTATE_HALF) {
    RG_WITH_DTYPE(side->grad_y->dtype, T, do_contiguous_run(T, RG_STYLE_ROTATE_HALF, run, next));
  } else {
    RG_WITH_DTYPE(side->grad_y->dtype, T, do_contiguous_run(T, RG_STYLE_INTERLEAVED, run, next));
  }
}

/* ---- tables and sums ---- */

/* Adds the sums of the region's positions to their totals and clears them. */
static void add_to_totals(const task *job, tile_buffers *tile, const region *at) {
  const int64_t half = job->slice_pairs, n = SUM_HALVES * half;
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *sum = tile->rows + (r * TILE_ROW_HALVES + SUM_COS) * half;
    rg_wide *total = tile->totals + r * n;
    for (int64_t i = 0; i < n; ++i) {
      total[i] += (rg_wide)sum[i];
      sum[i] = 0;
    }
  }
}

/* The address of row r of the region in a table or its gradient, [B or 1, S, R]. */
static void *table_row(const task *job, const rg_tensor *t, const region *at, int64_t r) {
  const int64_t b = t->shape[0] == 1 ? 0 : at->b;
  return rg_element(t, b * t->stride[0] + (at->s + r) * t->stride[1] + first_column(job, at) * t->stride[2]);
}

static void stage_tables(const task *job, tile_buffers *tile, const region *at) {
  const rg_tensor *cosine = &job->problem->tensor[COS], *sine = &job->problem->tensor[SIN];
  const int64_t half = job->problem->dim[DIM_R] / 2;
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *c1 = tile->rows + r * TILE_ROW_HALVES * job->slice_pairs, *c2 = c1 + job->slice_pairs;
    rg_real *s1 = c2 + job->slice_pairs, *s2 = s1 + job->slice_pairs;
    read_pairs(cosine->dtype, table_row(job, cosine, at, r), pairs_at(job->style, cosine->stride[2], half), c1, c2,
               at->pairs);
    read_pairs(sine->dtype, table_row(job, sine, at, r), pairs_at(job->style, sine->stride[2], half),
               job->same_half ? s2 : s1, job->same_half ? s1 : s2, at->pairs);
  }
}

/* Stores and clears the region's sums and totals, if that gradient is wanted. */
static void finish_table(const task *job, tile_buffers *tile, int grad_table, const region *at) {
  if (!rg_given(job->problem, grad_table)) return;
  const rg_tensor *t = &job->problem->tensor[grad_table];
  const int64_t half = job->slice_pairs;
  const bool is_cos = grad_table == GRAD_COS;
  rg_real row[2 * MAX_SLICE_PAIRS];
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *sum = tile->rows + (r * TILE_ROW_HALVES + (is_cos ? SUM_COS : SUM_SIN)) * half;
    rg_wide *total = tile->totals + (r * SUM_HALVES + (is_cos ? SUM_COS : SUM_SIN) - SUM_COS) * half;
    for (int64_t i = 0; i < 2 * half; ++i) {
      row[i] = (rg_real)(total[i] + (rg_wide)sum[i]);
      sum[i] = 0;
      total[i] = 0;
    }
    write_pairs(t->dtype, table_row(job, t, at, r), pairs_at(job->style, t->stride[2], job->problem->dim[DIM_R] / 2),
                row, row + half, at->pairs);
  }
}

/* ---- tiles ---- */

/* What to prefetch while the heads from h on are at work, see do_contiguous_run; `next` is the next tile. */
static row_run run_after(const task *job, tile_buffers *tile, const side_tensors *side, const region *at, int64_t h,
                         const region *next) {
  const side_tensors *q = &job->sides[0], *k = &job->sides[1];
  if (at->rows == 1) return run_at(job, tile, side, next, h);
  if (h + HEADS_AT_ONCE < side->heads) return run_at(job, tile, side, at, h + HEADS_AT_ONCE);
  if (side == q && k->heads > 0) return run_at(job, tile, k, at, 0);
  return run_at(job, tile, q->heads > 0 ? q : k, next, 0);
}

/* `summed`: how many heads are in the sums since these were last added to the totals. When they are added depends on
 * the numbers of heads alone and not on how many are done in one run. */
static void do_side(const task *job, tile_buffers *tile, const side_tensors *side, const region *at, const region *next,
                    int64_t *summed) {
  for (int64_t h = 0; h < side->heads;) {
    if (job->wants_tables && h % HEADS_PER_SUM == 0) {
      const int64_t more = side->heads - h < HEADS_PER_SUM ? side->heads - h : HEADS_PER_SUM;
      if (*summed + more > HEADS_PER_SUM) {
        add_to_totals(job, tile, at);
        *summed = 0;
      }
      *summed += more;
    }
    const row_run run = run_at(job, tile, side, at, h);
    do_run(job, side, run, run_after(job, tile, side, at, h, next));
    h += run.heads;
  }
}

/* `next` is the region that follows, or the same one. */
static void do_tile(const task *job, tile_buffers *tile, region at, const region *next) {
  int64_t summed = 0;
  for (int64_t i = 0; i < job->tile_batches; ++i, ++at.b) {
    if (job->wants_grad_x) stage_tables(job, tile, &at);
    do_side(job, tile, &job->sides[0], &at, next, &summed);
    do_side(job, tile, &job->sides[1], &at, next, &summed);
    if (!job->sums_cos) finish_table(job, tile, GRAD_COS, &at);
    if (!job->sums_sin) finish_table(job, tile, GRAD_SIN, &at);
  }
  if (job->sums_cos) finish_table(job, tile, GRAD_COS, &at);
  if (job->sums_sin) finish_table(job, tile, GRAD_SIN, &at);
}

/* The region that begins with unit u: slice u / rows of row u % rows, which is position s of batch b where the row is
 * b*S + s. */
static region region_at(const task *job, int64_t u, int64_t end) {
  const int64_t S = job->problem->dim[DIM_S], pairs = job->problem->dim[DIM_R] / 2;
  const int64_t row = u % job->rows;
  region at = {.b = row / S, .s = row % S, .slice = u / job->rows, .pair = u / job->rows * job->slice_pairs};
  at.pairs = pairs - at.pair < job->slice_pairs ? pairs - at.pair : job->slice_pairs;
  at.rows = job->tile_rows;
  if (at.rows > S - at.s) at.rows = S - at.s;
  if (at.rows > end - u) at.rows = end - u;
  return at;
}

static void unit_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  tile_buffers tile;
  if (job->wants_tables) {
    const int64_t rows = job->tile_rows < end - begin ? job->tile_rows : end - begin;
    memset(tile.rows, 0, (size_t)(rows * TILE_ROW_HALVES * job->slice_pairs) * sizeof *tile.rows);
    memset(tile.totals, 0, (size_t)(rows * SUM_HALVES * job->slice_pairs) * sizeof *tile.totals);
  }
  region at = region_at(job, begin, end);
  for (int64_t u = begin; u < end;) {
    u += at.rows;
    const region next = u < end ? region_at(job, u, end) : at;
    do_tile(job, &tile, at, &next);
    at = next;
  }
  rg_stream_fence();
}

static side_tensors side_of(const rg_problem *problem, int grad_y, int x, int grad_x, int64_t heads,
                            bool wants_tables) {
  const rg_tensor *t = problem->tensor;
  side_tensors side = {
      .grad_y = &t[grad_y], .x = wants_tables ? &t[x] : NULL, .grad_x = rg_given(problem, grad_x) ? &t[grad_x] : NULL};
  if (side.x == NULL && side.grad_x == NULL) return side;
  side.heads = heads;
  side.contiguous_rows = side.grad_y->stride[3] == 1 && (side.x == NULL || side.x->stride[3] == 1) &&
                         (side.grad_x == NULL || side.grad_x->stride[3] == 1);
  return side;
}

/* 1 for each tensor whose heads lie closer together than its positions, as in [B, S, H, D]; -1 for each of the others.
 */
static int votes_for_heads_inside(const side_tensors *side) {
  const rg_tensor *tensors[3] = {side->grad_y, side->x, side->grad_x};
  int votes = 0;
  for (int k = 0; side->heads > 1 && k < 3; ++k) {
    if (tensors[k] == NULL) continue;
    const int64_t h = tensors[k]->stride[1], s = tensors[k]->stride[2];
    votes += (h < 0 ? -h : h) < (s < 0 ? -s : s) ? 1 : -1;
  }
  return votes;
}

RG_CPU_KERNEL(rg_rope_apply_backward) {
  const rg_rope_apply_backward_args *args = problem->args;
  const int64_t pairs = problem->dim[DIM_R] / 2;
  const bool wants_tables = rg_given(problem, GRAD_COS) || rg_given(problem, GRAD_SIN);
  rg_cost cost;
  problem->op->cost(problem, &cost);
  task job = {.problem = problem,
              .sides = {side_of(problem, GRAD_Q_EMBED, Q, GRAD_Q, problem->dim[DIM_HQ], wants_tables),
                        side_of(problem, GRAD_K_EMBED, K, GRAD_K, problem->dim[DIM_HK], wants_tables)},
              .style = args->style,
              .same_half = args->sin_pairing == RG_SIN_SAME_HALF,
              .stream = rg_stream_pays(cost.write_bytes),
              .wants_tables = wants_tables,
              .wants_grad_x = rg_given(problem, GRAD_Q) || rg_given(problem, GRAD_K),
              .sums_cos = rope_apply_sums_batch(problem, GRAD_COS),
              .sums_sin = rope_apply_sums_batch(problem, GRAD_SIN)};
  const bool sums_batch = job.sums_cos || job.sums_sin;
  job.tile_batches = sums_batch ? problem->dim[DIM_B] : 1;
  job.rows = problem->dim[DIM_S] * (sums_batch ? 1 : problem->dim[DIM_B]);
  if (job.rows == 0) return;
  /* Fewer rows than threads, as where a short sequence is summed over a large batch: the rows are cut too. No bit
   * depends on the cut, because each pair of columns is summed on its own. */
  const int64_t cuts = job.rows < resources->threads ? (resources->threads + job.rows - 1) / job.rows : 1;
  job.slice_pairs = (pairs + cuts - 1) / cuts;
  if (job.slice_pairs < MIN_SLICE_PAIRS) job.slice_pairs = MIN_SLICE_PAIRS;
  if (job.slice_pairs > MAX_SLICE_PAIRS) job.slice_pairs = MAX_SLICE_PAIRS;
  if (job.slice_pairs > pairs) job.slice_pairs = pairs;
  job.slices = (pairs + job.slice_pairs - 1) / job.slice_pairs;
  /* The tile is as wide as memory is contiguous: several positions of one head, or all heads of one position. */
  const bool heads_inside = votes_for_heads_inside(&job.sides[0]) + votes_for_heads_inside(&job.sides[1]) > 0;
  job.tile_rows = heads_inside ? 1 : TILE_ELEMENTS / (2 * job.slice_pairs);
  rg_parallel_ranges(resources->threads, job.rows * job.slices, cost.read_bytes + cost.write_bytes, unit_range, &job);
}
