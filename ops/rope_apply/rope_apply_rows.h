/* Runs of rows: the same few heads at the positions of a tile. Here is the arithmetic, for contiguous rows; all else is
 * in rope_apply_cpu.c. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_ROWS_H
#define ROPEGRAD_OPS_ROPE_APPLY_ROWS_H

#include "ops/rope_apply/rope_apply_pairs.h"

enum {
  /* So many heads are done together: a vector of the tables and of the sums is then loaded once for all of them.
   * Without that the second-level cache, where those lie, limits the speed and not memory. */
  HEADS_AT_ONCE = 4,
  /* So many rows ahead of the arithmetic the inputs are asked for. The hardware's own prefetching stops at every page
   * and at the end of every head's rows. */
  ROWS_AHEAD = 2,
  CACHE_LINE = 64
};

/* Where a tensor has the first row of a run, and how far it is from there to the same row of the next head and to the
 * next row of the same head, in bytes. */
typedef struct row_walk {
  char *row; /* NULL: nothing to read or write */
  int64_t to_head, to_row;
} row_walk;

/* What a position needs at hand lies side by side in a tile: four split rows of tile_half pairs, which are cos, sin,
 * and the sums so far of grad_cos and of grad_sin. */
enum { TABLE_COS = 0, TABLE_SIN = 2, SUM_COS = 4, SUM_SIN = 6, TILE_ROW_HALVES = 8 };

typedef struct row_run {
  row_walk grad_y, x, grad_x; /* x: NULL where no gradient of a table is wanted; grad_x: NULL where not wanted */
  int64_t heads, rows;        /* heads <= HEADS_AT_ONCE */
  int64_t pairs;              /* of a row */
  int64_t half;               /* from the first to the second elements of rotate_half in a row */
  rg_real *tile_row;          /* the first position's */
  int64_t tile_half;
  bool stream;
} row_run;

static inline void next_row(row_run *run) {
  if (run->grad_y.row) run->grad_y.row += run->grad_y.to_row;
  if (run->x.row) run->x.row += run->x.to_row;
  if (run->grad_x.row) run->grad_x.row += run->grad_x.to_row;
  run->tile_row += TILE_ROW_HALVES * run->tile_half;
}

static inline void next_head(row_run *run) {
  if (run->grad_y.row) run->grad_y.row += run->grad_y.to_head;
  if (run->x.row) run->x.row += run->x.to_head;
  if (run->grad_x.row) run->grad_x.row += run->grad_x.to_head;
}

RG_INLINE rg_pair tile_load(const row_run *run, int64_t which, int64_t p, int64_t n) {
  return load_pairs(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, run->tile_row + which * run->tile_half, run->tile_half, p, n);
}

RG_INLINE void tile_store(const row_run *run, int64_t which, int64_t p, rg_pair pairs, int64_t n) {
  store_pairs(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, run->tile_row + which * run->tile_half, run->tile_half, p, pairs, n);
}

/* To the second-level cache: it keeps more lines on their way at a time than the first level. */
RG_INLINE void prefetch_pairs(rg_dtype T, const char *row, int64_t p) {
  const int64_t begin = 2 * p * (int64_t)RG_SIZE(T), end = begin + 2 * RG_VF_WIDTH * (int64_t)RG_SIZE(T);
  if (begin % CACHE_LINE != 0) return;
  for (int64_t at = begin; at < end; at += CACHE_LINE) __builtin_prefetch(row + at, 0, 2);
}

/* What to do with a row, constants where a loop over pairs is compiled. */
typedef struct row_work {
  bool grad_x, tables; /* which gradients are wanted */
  bool stream;         /* grad_x past the caches */
  bool prefetch;
} row_work;

/* Pairs p to p + n of the same row of all heads of the run; `ahead` has the rows to prefetch meanwhile. */
RG_INLINE void do_pairs(rg_dtype T, rg_style style, row_work work, const row_run *run, const row_run *ahead, int64_t p,
                        int64_t n) {
  rg_pair cosine, sine, sum_cos, sum_sin;
  if (work.grad_x) {
    cosine = tile_load(run, TABLE_COS, p, n);
    sine = tile_load(run, TABLE_SIN, p, n);
  }
  if (work.tables) {
    sum_cos = tile_load(run, SUM_COS, p, n);
    sum_sin = tile_load(run, SUM_SIN, p, n);
  }
  const char *grad_y = run->grad_y.row, *x = run->x.row, *next_grad_y = ahead->grad_y.row, *next_x = ahead->x.row;
  char *grad_x = run->grad_x.row;
  for (int64_t h = 0; h < run->heads; ++h) {
    const rg_pair g = load_pairs(T, style, grad_y, run->half, p, n);
    grad_y += run->grad_y.to_head;
    if (work.prefetch) {
      prefetch_pairs(T, next_grad_y, p);
      next_grad_y += ahead->grad_y.to_head;
    }
    if (work.grad_x) {
      const rg_pair rotated = rg_rotate_transpose(RG_DTYPE_NONE, g, cosine, sine);
      if (work.stream && n == RG_VF_WIDTH) {
        stream_pairs(T, style, grad_x, run->half, p, rotated);
      } else {
        store_pairs(T, style, grad_x, run->half, p, rotated, n);
      }
      grad_x += run->grad_x.to_head;
    }
    if (work.tables) {
      const rg_pair of_x = load_pairs(T, style, x, run->half, p, n);
      x += run->x.to_head;
      rg_add_grad_cos(RG_DTYPE_NONE, g, of_x, &sum_cos);
      rg_add_grad_sin(RG_DTYPE_NONE, g, of_x, &sum_sin);
      if (work.prefetch) {
        prefetch_pairs(T, next_x, p);
        next_x += ahead->x.to_head;
      }
    }
  }
  if (work.tables) {
    tile_store(run, SUM_COS, p, sum_cos, n);
    tile_store(run, SUM_SIN, p, sum_sin, n);
  }
}

RG_INLINE void do_row(rg_dtype T, rg_style style, row_work work, const row_run *run, const row_run *ahead) {
  int64_t p = 0;
  for (; p + RG_VF_WIDTH <= run->pairs; p += RG_VF_WIDTH) do_pairs(T, style, work, run, ahead, p, RG_VF_WIDTH);
  if (p < run->pairs) do_pairs(T, style, work, run, ahead, p, run->pairs - p);
}

/* `next` is the run that follows. */
RG_INLINE void do_rows(rg_dtype T, rg_style style, row_work work, row_run run, row_run next) {
  row_run ahead = run;
  for (int64_t r = 0; r < ROWS_AHEAD && r < run.rows; ++r) next_row(&ahead);
  for (int64_t r = 0; r < run.rows; ++r) {
    if (r + ROWS_AHEAD == run.rows || run.rows < ROWS_AHEAD) ahead = next;
    do_row(T, style, work, &run, &ahead);
    next_row(&run);
    next_row(&ahead);
  }
}

/* Streamed vectors must be aligned, in every row: its address and all steps are multiples of a vector. */
RG_INLINE bool can_stream(rg_dtype T, rg_style style, const row_run *run) {
  const int64_t half = style == RG_STYLE_ROTATE_HALF ? run->half * (int64_t)RG_SIZE(T) : 0;
  const int64_t places = (int64_t)(intptr_t)run->grad_x.row | run->grad_x.to_row | run->grad_x.to_head | half;
  return places % (int64_t)(RG_VF_WIDTH * RG_SIZE(T)) == 0;
}

RG_INLINE void do_contiguous_run(rg_dtype T, rg_style style, row_run run, row_run next) {
  const bool stream = run.stream && can_stream(T, style, &run);
  if (run.grad_x.row == NULL) {
    do_rows(T, style, (row_work){.tables = true, .prefetch = true}, run, next);
  } else if (run.x.row == NULL && stream) {
    do_rows(T, style, (row_work){.grad_x = true, .stream = true, .prefetch = true}, run, next);
  } else if (run.x.row == NULL) {
    do_rows(T, style, (row_work){.grad_x = true, .prefetch = true}, run, next);
  } else if (stream) {
    do_rows(T, style, (row_work){.grad_x = true, .tables = true, .stream = true, .prefetch = true}, run, next);
  } else {
    do_rows(T, style, (row_work){.grad_x = true, .tables = true, .prefetch = true}, run, next);
  }
}

#endif
