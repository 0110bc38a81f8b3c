/* Tiles: some positions of one batch and some pairs of their rows, whose tables stay in the caches while every head
 * passes by. What both directions share: where rows lie, and the runs of them that rope_apply_rows.h does. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_TILES_H
#define ROPEGRAD_OPS_ROPE_APPLY_TILES_H

#include "ops/rope_apply/rope_apply_rows.h"
#include "ops/rope_apply/rope_apply_spec.h"

enum {
  /* Elements of each table: in float32 the rows of a head in a tile are 16 KiB, four pages. Fewer cost time in the
   * translation of addresses, more would not stay in the second-level cache. */
  TILE_ELEMENTS = 4096,
  /* Pairs of a slice: one cache line of float32 at the least. */
  MIN_SLICE_PAIRS = 16,
  MAX_SLICE_PAIRS = 512
};

/* The tensors of q or of k. */
typedef struct side_tensors {
  const rg_tensor *source;
  const rg_tensor *x;      /* NULL: no gradient of a table is wanted */
  const rg_tensor *turned; /* NULL: not wanted */
  int64_t heads;           /* 0 where the side has no part in what is wanted */
  bool contiguous_rows;
} side_tensors;

typedef struct task {
  int64_t seq_len, head_dim, rotary_dim;
  side_tensors sides[2];
  const rg_tensor *cosine, *sine; /* NULL: no turned rows are wanted */
  rg_style style;
  bool same_half; /* the two sines of a pair exchanged */
  bool in_place;  /* turned rows are where their sources are */
  bool stream;
  int64_t heads_at_one_position; /* of a run, where tiles have one position */
  int64_t rows;                  /* positions, times the batches where nothing is summed over them */
  int64_t tile_rows;             /* at most so many in a tile */
  int64_t tile_halves;           /* of one position in the tile: 4, or with sums TILE_ROW_HALVES */
  int64_t slice_pairs;           /* at most so many of a row's pairs in a tile */
  int64_t slices;                /* of a row */
} task;

/* What a tile covers: positions [s, s + rows) of batch b, pairs [pair, pair + pairs) of each row. */
typedef struct region {
  int64_t b, s, rows;
  int64_t slice, pair, pairs;
} region;

/* A thread's buffers for a tile. */
typedef struct tile_memory {
  rg_real *rows; /* see row_run; with same_half the sines of a pair exchanged */
  char *buffer;  /* HEADS_AT_ONCE * ROW_BUFFER_BYTES, aligned to a cache line */
} tile_memory;

/* ---- what is cut into tiles ---- */

static inline side_tensors side_of(const rg_tensor *source, const rg_tensor *x, const rg_tensor *turned,
                                   int64_t heads) {
  if (x == NULL && turned == NULL) return (side_tensors){0};
  return (side_tensors){.source = source,
                        .x = x,
                        .turned = turned,
                        .heads = heads,
                        .contiguous_rows = source->stride[3] == 1 && (x == NULL || x->stride[3] == 1) &&
                                           (turned == NULL || turned->stride[3] == 1)};
}

/* 1 for each tensor whose heads lie closer together than its positions, as in [B, S, H, D]; -1 for each of the others.
 */
static inline int votes_for_heads_inside(const side_tensors *side) {
  const rg_tensor *tensors[3] = {side->source, side->x, side->turned};
  int votes = 0;
  for (int k = 0; side->heads > 1 && k < 3; ++k) {
    if (tensors[k] == NULL) continue;
    const int64_t h = tensors[k]->stride[1], s = tensors[k]->stride[2];
    votes += (h < 0 ? -h : h) < (s < 0 ? -s : s) ? 1 : -1;
  }
  return votes;
}

/* Sets the sizes of tiles and slices; the task has at least one row. */
static inline void cut_into_tiles(task *job, int threads) {
  const int64_t pairs = job->rotary_dim / 2;
  /* Fewer rows than threads, as where a short sequence is summed over a large batch: the rows are cut too. No bit
   * depends on the cut, because each pair of columns is done on its own. */
  const int64_t cuts = job->rows < threads ? (threads + job->rows - 1) / job->rows : 1;
  job->slice_pairs = (pairs + cuts - 1) / cuts;
  if (job->slice_pairs < MIN_SLICE_PAIRS) job->slice_pairs = MIN_SLICE_PAIRS;
  if (job->slice_pairs > MAX_SLICE_PAIRS) job->slice_pairs = MAX_SLICE_PAIRS;
  if (job->slice_pairs > pairs) job->slice_pairs = pairs;
  job->slices = (pairs + job->slice_pairs - 1) / job->slice_pairs;
  /* The tile is as wide as memory is contiguous: several positions of one head, or all heads of one position. */
  const bool heads_inside = votes_for_heads_inside(&job->sides[0]) + votes_for_heads_inside(&job->sides[1]) > 0;
  job->tile_rows = heads_inside ? 1 : TILE_ELEMENTS / (2 * job->slice_pairs);
}

/* The region that begins with unit u: slice u / rows of row u % rows, which is position s of batch b where the row is
 * b*S + s. */
static inline region region_at(const task *job, int64_t u, int64_t end) {
  const int64_t S = job->seq_len, pairs = job->rotary_dim / 2;
  const int64_t row = u % job->rows;
  region at = {.b = row / S, .s = row % S, .slice = u / job->rows, .pair = u / job->rows * job->slice_pairs};
  at.pairs = pairs - at.pair < job->slice_pairs ? pairs - at.pair : job->slice_pairs;
  at.rows = job->tile_rows;
  if (at.rows > S - at.s) at.rows = S - at.s;
  if (at.rows > end - u) at.rows = end - u;
  return at;
}

static inline int64_t first_column(const task *job, const region *at) {
  return job->style == RG_STYLE_INTERLEAVED ? 2 * at->pair : at->pair;
}

/* ---- tables ---- */

/* The address of row r of the region in a table or its gradient, [B or 1, S, R]. */
static inline void *table_row(const task *job, const rg_tensor *t, const region *at, int64_t r) {
  const int64_t b = t->shape[0] == 1 ? 0 : at->b;
  return rg_element(t, b * t->stride[0] + (at->s + r) * t->stride[1] + first_column(job, at) * t->stride[2]);
}

static inline void stage_tables(const task *job, rg_real *tile_rows, const region *at) {
  const rg_tensor *cosine = job->cosine, *sine = job->sine;
  const int64_t half = job->rotary_dim / 2;
  for (int64_t r = 0; r < at->rows; ++r) {
    rg_real *c1 = tile_rows + r * job->tile_halves * job->slice_pairs, *c2 = c1 + job->slice_pairs;
    rg_real *s1 = c2 + job->slice_pairs, *s2 = s1 + job->slice_pairs;
    read_pairs(cosine->dtype, table_row(job, cosine, at, r), pairs_at(job->style, cosine->stride[2], half), c1, c2,
               at->pairs);
    read_pairs(sine->dtype, table_row(job, sine, at, r), pairs_at(job->style, sine->stride[2], half),
               job->same_half ? s2 : s1, job->same_half ? s1 : s2, at->pairs);
  }
}

/* ---- heads ---- */

/* The heads from the h-th on that are done together. At one position many that follow each other, up to
 * heads_at_one_position. At many positions HEADS_AT_ONCE that lie equally far apart: with the usual numbers of heads
 * all of them cross from one page to the next at the same position, so that the pages are looked up side by side (the
 * README has measurements). What is left over is done at the end. */
typedef struct head_group {
  int64_t first, step, count;
} head_group;

static inline head_group heads_at(const task *job, const side_tensors *side, int64_t h) {
  if (job->tile_rows == 1) {
    const int64_t left = side->heads - h, most = job->heads_at_one_position;
    return (head_group){h, 1, left < most ? left : most};
  }
  const int64_t step = side->heads / HEADS_AT_ONCE, left = side->heads - HEADS_AT_ONCE * step;
  if (h < HEADS_AT_ONCE * step) return (head_group){h / HEADS_AT_ONCE, step, HEADS_AT_ONCE};
  return (head_group){h, 1, left};
}

static inline row_walk walk(const task *job, const rg_tensor *t, const region *at, head_group group) {
  if (t == NULL) return (row_walk){NULL, 0, 0};
  const int64_t size = (int64_t)rg_dtype_size(t->dtype);
  const int64_t place =
      at->b * t->stride[0] + group.first * t->stride[1] + at->s * t->stride[2] + first_column(job, at) * t->stride[3];
  return (row_walk){rg_element(t, place), group.step * t->stride[1] * size, t->stride[2] * size};
}

/* The h-th head and those that are done with it. */
static inline row_run run_at(const task *job, tile_memory tile, const side_tensors *side, const region *at, int64_t h) {
  const int64_t R = job->rotary_dim, rest = job->in_place ? 0 : (job->head_dim - R) / 2;
  const int64_t size = (int64_t)rg_dtype_size(side->source->dtype);
  const head_group group = heads_at(job, side, h);
  /* Each slice has its share of what lies past rotary_dim, in whole pairs. */
  const int64_t pass_begin = rest * at->slice / job->slices, pass_end = rest * (at->slice + 1) / job->slices;
  return (row_run){.source = walk(job, side->source, at, group),
                   .x = walk(job, side->x, at, group),
                   .turned = walk(job, side->turned, at, group),
                   .heads = group.count,
                   .rows = at->rows,
                   .pairs = at->pairs,
                   .half = R / 2,
                   .tile_row = tile.rows,
                   .tile_half = job->slice_pairs,
                   .tile_to_row = job->tile_halves * job->slice_pairs,
                   .pass_at = (R + 2 * pass_begin - first_column(job, at)) * size,
                   .pass_bytes = 2 * (pass_end - pass_begin) * size,
                   .output = job->stream ? OUTPUT_STREAM : OUTPUT_STORE,
                   .buffer = tile.buffer};
}

/* What to prefetch while the heads from h on are at work, see do_contiguous_run; `next` is the next tile. */
static inline row_run run_after(const task *job, tile_memory tile, const side_tensors *side, const region *at,
                                int64_t h, const region *next) {
  const side_tensors *q = &job->sides[0], *k = &job->sides[1];
  if (at->rows == 1) return run_at(job, tile, side, next, h);
  if (h + HEADS_AT_ONCE < side->heads) return run_at(job, tile, side, at, h + HEADS_AT_ONCE);
  if (side == q && k->heads > 0) return run_at(job, tile, k, at, 0);
  return run_at(job, tile, q->heads > 0 ? q : k, next, 0);
}

/* The pairs of a row that is not contiguous in one of the tensors, through split rows. */
RG_INLINE void do_staged_row(const task *job, row_work work, const side_tensors *side, const row_run *run) {
  rg_real source[2 * MAX_SLICE_PAIRS], x[2 * MAX_SLICE_PAIRS], turned[2 * MAX_SLICE_PAIRS];
  const int64_t n = run->pairs;
  row_run staged = *run;
  staged.half = n;
  staged.output = OUTPUT_STORE;
  read_pairs(side->source->dtype, run->source.row, pairs_at(job->style, side->source->stride[3], run->half), source,
             source + n, n);
  staged.source.row = (char *)source;
  if (work.tables) {
    read_pairs(side->x->dtype, run->x.row, pairs_at(job->style, side->x->stride[3], run->half), x, x + n, n);
    staged.x.row = (char *)x;
  }
  if (work.turned) staged.turned.row = (char *)turned;
  work.prefetch = false;
  do_row(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, work, 1, &staged);
  if (work.turned) {
    write_pairs(side->turned->dtype, run->turned.row, pairs_at(job->style, side->turned->stride[3], run->half), turned,
                turned + n, n);
  }
}

RG_INLINE void do_staged_run(const task *job, row_work work, const side_tensors *side, row_run run) {
  const int64_t size = (int64_t)rg_dtype_size(side->source->dtype);
  for (; run.heads > 0; skip_heads(&run, 1)) {
    row_run row = run;
    for (int64_t r = 0; r < run.rows; ++r, next_row(&row)) {
      do_staged_row(job, work, side, &row);
      if (!work.turned || run.pass_bytes == 0) continue;
      const int64_t from_step = side->source->stride[3], to_step = side->turned->stride[3];
      const char *from = row.source.row + run.pass_at * from_step;
      char *to = row.turned.row + run.pass_at * to_step;
      RG_WITH_DTYPE(side->source->dtype, T,
                    rg_copy_strided(RG_SIZE(T), to, to_step, from, from_step, run.pass_bytes / size));
    }
  }
}

/* `direction` is a constant. */
RG_INLINE void do_run(const task *job, rg_direction direction, const side_tensors *side, row_run run, row_run next) {
  const row_work work = {.direction = direction,
                         .turned = direction == RG_FORWARD || side->turned != NULL,
                         .tables = direction == RG_BACKWARD && side->x != NULL,
                         .prefetch = true};
  if (!side->contiguous_rows) {
    do_staged_run(job, work, side, run);
  } else if (job->style == RG_STYLE_ROTATE_HALF) {
    RG_WITH_DTYPE(side->source->dtype, T, do_contiguous_run(T, RG_STYLE_ROTATE_HALF, work, run, next));
  } else {
    RG_WITH_DTYPE(side->source->dtype, T, do_contiguous_run(T, RG_STYLE_INTERLEAVED, work, run, next));
  }
}

#endif
