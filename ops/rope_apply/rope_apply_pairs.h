/* Rows of pairs in memory, and staged as split rows.
 *
 * A split row holds n pairs as rg_real: their first elements, then, `half` elements further on, their second ones. It
 * is what a row of the style rotate_half looks like, so one body serves both. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_PAIRS_H
#define ROPEGRAD_OPS_ROPE_APPLY_PAIRS_H

#include "src/simd/pairs.h"
#include "src/simd/rows.h"

/* Pairs p to p + n of a contiguous row; the second elements of rotate_half lie `half` after the first. See pairs.h. */
RG_INLINE rg_pair load_pairs(rg_dtype T, rg_style style, const void *row, int64_t half, int64_t p, int64_t n) {
  return rg_load_pairs(T, style, row, rg_at_const(T, row, half), p, n);
}

RG_INLINE void store_pairs(rg_dtype T, rg_style style, void *row, int64_t half, int64_t p, rg_pair pairs, int64_t n) {
  rg_store_pairs(T, style, row, rg_at(T, row, half), p, pairs, n);
}

RG_INLINE void stream_pairs(rg_dtype T, rg_style style, void *row, int64_t half, int64_t p, rg_pair pairs) {
  rg_stream_pairs(T, style, row, rg_at(T, row, half), p, pairs);
}

/* How the pairs of a row lie in memory, in elements: `gap` from a pair's first element to its second, `step` from one
 * pair to the next. */
typedef struct pair_steps {
  int64_t gap, step;
} pair_steps;

RG_INLINE pair_steps pairs_at(rg_style style, int64_t stride, int64_t half) {
  if (style == RG_STYLE_ROTATE_HALF) return (pair_steps){half * stride, stride};
  return (pair_steps){stride, 2 * stride};
}

/* Do the pairs take turns in a contiguous row? */
RG_INLINE bool takes_turns(pair_steps at) { return at.gap == 1 && at.step == 2; }

/* n pairs of a row of any stride, as two arrays. */
static inline void read_pairs(rg_dtype dtype, const void *row, pair_steps at, rg_real *first, rg_real *second,
                              int64_t n) {
  if (!takes_turns(at)) {
    rg_row_gather(dtype, row, 0, at.step, first, n);
    rg_row_gather(dtype, row, at.gap, at.step, second, n);
    return;
  }
  for (int64_t p = 0; p < n; p += RG_VF_WIDTH) {
    const int64_t lanes = n - p < RG_VF_WIDTH ? n - p : RG_VF_WIDTH;
    rg_pair pairs;
    RG_WITH_DTYPE(dtype, T, pairs = load_pairs(T, RG_STYLE_INTERLEAVED, row, 0, p, lanes));
    rg_store_lanes(RG_REAL_DTYPE, first + p, pairs.first, lanes);
    rg_store_lanes(RG_REAL_DTYPE, second + p, pairs.second, lanes);
  }
}

/* The converse, rounding to nearest even. */
static inline void write_pairs(rg_dtype dtype, void *row, pair_steps at, const rg_real *first, const rg_real *second,
                               int64_t n) {
  if (!takes_turns(at)) {
    rg_row_scatter(dtype, row, 0, at.step, first, n);
    rg_row_scatter(dtype, row, at.gap, at.step, second, n);
    return;
  }
  for (int64_t p = 0; p < n; p += RG_VF_WIDTH) {
    const int64_t lanes = n - p < RG_VF_WIDTH ? n - p : RG_VF_WIDTH;
    const rg_pair pairs = {rg_load_lanes(RG_REAL_DTYPE, first + p, lanes),
                           rg_load_lanes(RG_REAL_DTYPE, second + p, lanes)};
    RG_WITH_DTYPE(dtype, T, store_pairs(T, RG_STYLE_INTERLEAVED, row, 0, p, pairs, lanes));
  }
}

#endif
