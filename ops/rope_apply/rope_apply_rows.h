/* Runs of rows: the same few heads at the positions of a tile. Here is the arithmetic, for contiguous rows; where runs
 * come from rope_apply_tiles.h says. Both directions turn the rows of a `source`: forward q or k itself, backward the
 * gradient of what became of it. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_ROWS_H
#define ROPEGRAD_OPS_ROPE_APPLY_ROWS_H

#include "ops/rope_apply/rope_apply_pairs.h"
#include "src/simd/prefetch.h"

enum {
  /* So many heads are done together: a vector of the tables and of the sums is then loaded once for all of them.
   * Without that the second-level cache, where those lie, limits the speed and not memory. */
  HEADS_AT_ONCE = 4,
  /* So many rows ahead of the arithmetic the inputs are asked for, first into the second-level cache, then from there
   * into the first: the hardware's own prefetching stops at every page and at the end of every head's rows. */
  ROWS_FAR = 8,
  ROWS_NEAR = 1,
  /* Of a turned row on its way past the caches. */
  ROW_BUFFER_BYTES = 4096
};

/* Where a tensor has the first row of a run, and how far it is from there to the same row of the next head and to the
 * next row of the same head, in bytes. */
typedef struct row_walk {
  char *row; /* NULL: nothing to read or write */
  int64_t to_head, to_row;
} row_walk;

/* What a position needs at hand lies side by side in a tile: split rows of tile_half pairs, which are cos and sin and,
 * backward, the sums so far of grad_cos and of grad_sin. */
enum {
  TABLE_COS = 0,
  TABLE_SIN = 2,
  SUM_COS = 4,
  SUM_SIN = 6,
  TILE_ROW_HALVES = 8,
  SUM_HALVES = TILE_ROW_HALVES - SUM_COS
};

/* How turned rows get to memory: by ordinary stores, past the caches from registers, or past the caches through a buffer,
 * where the parts of a row are not aligned to vectors but the row is long enough for whole cache lines. */
typedef enum row_output { OUTPUT_STORE, OUTPUT_STREAM, OUTPUT_BUFFER } row_output;

/* A row that is to be prefetched, the first head's, and how far it is to that of the next head. */
typedef struct row_ahead {
  uintptr_t row; /* outside the tensor where there is no such row */
  int64_t to_head;
} row_ahead;

typedef struct row_run {
  row_walk source, turned; /* turned: NULL where not wanted; in place it is the source */
  row_walk x;              /* NULL where no gradient of a table is wanted */
  int64_t heads, rows;
  int64_t pairs;     /* of a row */
  int64_t half;      /* from the first to the second elements of rotate_half in a row */
  rg_real *tile_row; /* the first position's */
  int64_t tile_half, tile_to_row;
  int64_t pass_at, pass_bytes; /* what passes through: where it begins in the row, and how much */
  row_output output;
  char *buffer; /* HEADS_AT_ONCE times ROW_BUFFER_BYTES */
  row_ahead source_near, source_far, x_near, x_far;
} row_run;

static inline void next_row(row_run *run) {
  if (run->source.row) run->source.row += run->source.to_row;
  if (run->x.row) run->x.row += run->x.to_row;
  if (run->turned.row) run->turned.row += run->turned.to_row;
  run->tile_row += run->tile_to_row;
}

static inline void skip_heads(row_run *run, int64_t heads) {
  if (run->source.row) run->source.row += heads * run->source.to_head;
  if (run->x.row) run->x.row += heads * run->x.to_head;
  if (run->turned.row) run->turned.row += heads * run->turned.to_head;
  run->heads -= heads;
}

RG_INLINE rg_pair tile_load(const row_run *run, int64_t which, int64_t p, int64_t n) {
  return load_pairs(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, run->tile_row + which * run->tile_half, run->tile_half, p, n);
}

RG_INLINE void tile_store(const row_run *run, int64_t which, int64_t p, rg_pair pairs, int64_t n) {
  store_pairs(RG_REAL_DTYPE, RG_STYLE_ROTATE_HALF, run->tile_row + which * run->tile_half, run->tile_half, p, pairs, n);
}

/* As many bytes of head h's row as a vector of pairs has. */
RG_INLINE void prefetch_pairs(rg_dtype T, rg_cache_level level, row_ahead ahead, int64_t h, int64_t p) {
  const int64_t begin = 2 * p * (int64_t)RG_SIZE(T), bytes = 2 * RG_VF_WIDTH * (int64_t)RG_SIZE(T);
  if (begin % RG_CACHE_LINE_BYTES == 0) rg_prefetch(level, ahead.row + (uintptr_t)(h * ahead.to_head + begin), bytes);
}

/* What to do with a row: constants where a loop over pairs is compiled. */
typedef struct row_work {
  rg_direction direction;
  bool turned; /* turned rows are wanted */
  bool tables; /* gradients of the tables are */
  bool prefetch;
} row_work;

/* Pairs p to p + n of the same row of `heads` heads. */
RG_INLINE void do_pairs(rg_dtype T, rg_style style, row_work work, int64_t heads, const row_run *run, int64_t p,
                        int64_t n) {
  rg_pair cosine, sine, sum_cos, sum_sin;
  if (work.turned) {
    cosine = tile_load(run, TABLE_COS, p, n);
    sine = tile_load(run, TABLE_SIN, p, n);
  }
  if (work.tables) {
    sum_cos = tile_load(run, SUM_COS, p, n);
    sum_sin = tile_load(run, SUM_SIN, p, n);
  }
  for (int64_t h = 0; h < heads; ++h) {
    const char *source = run->source.row + h * run->source.to_head;
    if (work.prefetch) {
      prefetch_pairs(T, RG_SECOND_LEVEL, run->source_far, h, p);
      prefetch_pairs(T, RG_FIRST_LEVEL, run->source_near, h, p);
    }
    const rg_pair from = load_pairs(T, style, source, run->half, p, n);
    if (work.turned) {
      char *turned = run->turned.row + h * run->turned.to_head;
      const rg_pair to = work.direction == RG_FORWARD ? rg_rotate(RG_DTYPE_NONE, from, cosine, sine)
                                                      : rg_rotate_transpose(RG_DTYPE_NONE, from, cosine, sine);
      if (run->output == OUTPUT_STREAM && n == RG_VF_WIDTH) {
        stream_pairs(T, style, turned, run->half, p, to);
      } else {
        store_pairs(T, style, turned, run->half, p, to, n);
      }
    }
    if (work.tables) {
      const char *of_x = run->x.row + h * run->x.to_head;
      if (work.prefetch) {
        prefetch_pairs(T, RG_SECOND_LEVEL, run->x_far, h, p);
        prefetch_pairs(T, RG_FIRST_LEVEL, run->x_near, h, p);
      }
      const rg_pair x = load_pairs(T, style, of_x, run->half, p, n);
      rg_add_grad_cos(RG_DTYPE_NONE, from, x, &sum_cos);
      rg_add_grad_sin(RG_DTYPE_NONE, from, x, &sum_sin);
    }
  }
  if (work.tables) {
    tile_store(run, SUM_COS, p, sum_cos, n);
    tile_store(run, SUM_SIN, p, sum_sin, n);
  }
}

/* The last pairs of a row, fewer than a vector. An ordinary function, so that masked accesses are compiled once for
 * each dtype and style and not for every kind of work; it gets a copy of the run, so that the caller's stays in
 * registers. */
static void do_last_pairs(rg_dtype dtype, rg_style style, row_work work, int64_t heads, row_run run, int64_t p) {
  const int64_t n = run.pairs - p;
  if (style == RG_STYLE_ROTATE_HALF) {
    RG_WITH_DTYPE(dtype, T, do_pairs(T, RG_STYLE_ROTATE_HALF, work, heads, &run, p, n));
  } else {
    RG_WITH_DTYPE(dtype, T, do_pairs(T, RG_STYLE_INTERLEAVED, work, heads, &run, p, n));
  }
}

RG_INLINE void do_row(rg_dtype T, rg_style style, row_work work, int64_t heads, const row_run *run) {
  int64_t p = 0;
  for (; p + RG_VF_WIDTH <= run->pairs; p += RG_VF_WIDTH) do_pairs(T, style, work, heads, run, p, RG_VF_WIDTH);
  if (p < run->pairs) do_last_pairs(T, style, work, heads, *run, p);
}

/* Copies bytes past the caches. */
static void stream_bytes(char *to, const char *from, int64_t bytes) {
  const int64_t vector = RG_VF_WIDTH * (int64_t)sizeof(rg_real);
  int64_t at = (int64_t)(-(uintptr_t)to % RG_CACHE_LINE_BYTES);
  if (at > bytes) at = bytes;
  memcpy(to, from, (size_t)at);
  for (; at + vector <= bytes; at += vector) {
    rg_vf_stream(RG_REAL_DTYPE, to + at, rg_vf_load(RG_REAL_DTYPE, from + at));
  }
  memcpy(to + at, from + at, (size_t)(bytes - at));
}

/* What is left to do for a row of each head: what passes through, and what lies in the buffer. */
static void finish_rows(row_run run, int64_t heads) {
  for (int64_t h = 0; h < heads; ++h, skip_heads(&run, 1), run.buffer += ROW_BUFFER_BYTES) {
    const char *passes = run.source.row + run.pass_at;
    rg_prefetch(RG_SECOND_LEVEL, run.source_far.row + (uintptr_t)(h * run.source_far.to_head + run.pass_at),
                run.pass_bytes);
    if (run.output == OUTPUT_BUFFER) {
      memcpy(run.buffer + run.pass_at, passes, (size_t)run.pass_bytes);
      stream_bytes(run.turned.row, run.buffer, run.pass_at + run.pass_bytes);
    } else if (run.output == OUTPUT_STREAM) {
      stream_bytes(run.turned.row + run.pass_at, passes, run.pass_bytes);
    } else {
      memcpy(run.turned.row + run.pass_at, passes, (size_t)run.pass_bytes);
    }
  }
}

/* The row `distance` after row r of a run: in the same run or in the next, or the same row of the next run where runs
 * are shorter than that. */
RG_INLINE row_ahead row_after(row_walk now, int64_t r, int64_t rows, row_walk next, int64_t distance) {
  if (r + distance < rows) return (row_ahead){(uintptr_t)now.row + (uintptr_t)(distance * now.to_row), now.to_head};
  const int64_t row = rows < distance ? r : r + distance - rows;
  return (row_ahead){(uintptr_t)next.row + (uintptr_t)(row * next.to_row), next.to_head};
}

/* Row r itself where the run has no other: the heads that follow at one position would push each other out of the
 * first-level cache. */
RG_INLINE row_ahead row_after_soon(row_walk now, int64_t r, int64_t rows, row_walk next) {
  return row_after(now, r, rows, next, rows == 1 ? 0 : ROWS_NEAR);
}

/* Some heads, position by position. */
RG_INLINE void do_rows(rg_dtype T, rg_style style, row_work work, int64_t heads, row_run run, const row_run *next) {
  const row_walk buffer = {run.buffer, ROW_BUFFER_BYTES, 0};
  for (int64_t r = 0; r < run.rows; ++r) {
    run.source_far = row_after(run.source, r, run.rows, next->source, ROWS_FAR);
    run.source_near = row_after_soon(run.source, r, run.rows, next->source);
    if (work.tables) {
      run.x_far = row_after(run.x, r, run.rows, next->x, ROWS_FAR);
      run.x_near = row_after_soon(run.x, r, run.rows, next->x);
    }
    row_run now = run;
    if (run.output == OUTPUT_BUFFER) now.turned = buffer;
    do_row(T, style, work, heads, &now);
    if (work.turned && (run.pass_bytes > 0 || run.output == OUTPUT_BUFFER)) finish_rows(run, heads);
    next_row(&run);
  }
}

/* For a run whose turned rows are to be streamed. */
RG_INLINE row_output choose_output(rg_dtype T, rg_style style, const row_run *run) {
  const int64_t half = style == RG_STYLE_ROTATE_HALF ? run->half * (int64_t)RG_SIZE(T) : 0;
  const int64_t places = (int64_t)(intptr_t)run->turned.row | run->turned.to_row | run->turned.to_head | half;
  if (places % (int64_t)(RG_VF_WIDTH * RG_SIZE(T)) == 0) return OUTPUT_STREAM;
  const bool whole_row = run->pass_at == 2 * run->pairs * (int64_t)RG_SIZE(T);
  return whole_row && run->pass_at + run->pass_bytes <= ROW_BUFFER_BYTES ? OUTPUT_BUFFER : OUTPUT_STORE;
}

/* Compiled apart for each kind of work on HEADS_AT_ONCE heads, and once for the few heads that are left. */
RG_INLINE void do_heads(rg_dtype T, rg_style style, row_work work, row_run run, const row_run *next) {
  if (run.heads < HEADS_AT_ONCE) {
    do_rows(T, style, work, run.heads, run, next);
  } else if (work.direction == RG_FORWARD) {
    do_rows(T, style, (row_work){RG_FORWARD, true, false, true}, HEADS_AT_ONCE, run, next);
  } else if (!work.tables) {
    do_rows(T, style, (row_work){RG_BACKWARD, true, false, true}, HEADS_AT_ONCE, run, next);
  } else if (!work.turned) {
    do_rows(T, style, (row_work){RG_BACKWARD, false, true, true}, HEADS_AT_ONCE, run, next);
  } else {
    do_rows(T, style, (row_work){RG_BACKWARD, true, true, true}, HEADS_AT_ONCE, run, next);
  }
}

/* `next` is the run that follows or, where the run has one position alone, the same heads at the next position. */
RG_INLINE void do_contiguous_run(rg_dtype T, rg_style style, row_work work, row_run run, row_run next) {
  if (run.output == OUTPUT_STREAM) run.output = choose_output(T, style, &run);
  while (run.heads > 0) {
    do_heads(T, style, work, run, &next);
    skip_heads(&run, HEADS_AT_ONCE);
    skip_heads(&next, HEADS_AT_ONCE);
  }
}

#endif
