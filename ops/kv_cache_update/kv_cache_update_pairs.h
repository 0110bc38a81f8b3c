/* The rotation of one row and its sums, on pairs of columns. Built once per level, as part of kv_cache_update_cpu.c.
 *
 * A row of a tensor comes as `pair_row`: contiguous memory in the tensor's own dtype, where pair j lies as the style
 * has it. What is used again for every head, tables and their gradients, is staged as rg_real with the first elements
 * of the pairs in one array and the second in another. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_PAIRS_H

#include "ops/kv_cache_update/kv_cache_update_rows.h"
#include "src/simd/rotate.h"

/* The most pairs of a row that are staged at a time, whole vectors at every level. */
enum { MAX_PAIRS = 256 };

/* Which pairs of a row: `count` of them from `begin` on. */
typedef struct pair_range {
  rg_style style;
  int64_t rotary_dim, begin, count;
} pair_range;

/* rotate_half: `first` holds the first elements of the pairs, `second` the second. interleaved: `first` holds both. */
typedef struct pair_row {
  void *first, *second;
} pair_row;

typedef struct const_pair_row {
  const void *first, *second;
} const_pair_row;

/* Runs the statements with S, a constant, set to the style. */
#define WITH_STYLE(style, S, ...)              \
  do {                                         \
    if ((style) == RG_STYLE_ROTATE_HALF) {     \
      const rg_style S = RG_STYLE_ROTATE_HALF; \
      __VA_ARGS__;                             \
    } else {                                   \
      const rg_style S = RG_STYLE_INTERLEAVED; \
      __VA_ARGS__;                             \
    }                                          \
  } while (0)

/* ---- rows in memory ---- */

/* The pairs of the row that starts at element `at`, in place where the columns are contiguous and else through
 * `buffer`, which holds 2*MAX_PAIRS elements. */
static inline const_pair_row fetch_pairs(const rg_tensor *t, int64_t at, pair_range range, void *buffer) {
  const int64_t stride = t->stride[t->rank - 1], half = range.rotary_dim / 2;
  const size_t size = rg_dtype_size(t->dtype);
  if (range.style == RG_STYLE_INTERLEAVED) {
    const void *pairs = rg_element(t, at + 2 * range.begin * stride);
    if (stride == 1) return (const_pair_row){pairs, NULL};
    copy_elements(size, buffer, 1, pairs, stride, 2 * range.count);
    return (const_pair_row){buffer, NULL};
  }
  const void *first = rg_element(t, at + range.begin * stride);
  const void *second = rg_element(t, at + (half + range.begin) * stride);
  if (stride == 1) return (const_pair_row){first, second};
  void *upper = (char *)buffer + range.count * (int64_t)size;
  copy_elements(size, buffer, 1, first, stride, range.count);
  copy_elements(size, upper, 1, second, stride, range.count);
  return (const_pair_row){buffer, upper};
}

/* Where in `buffer` (2*MAX_PAIRS elements) a row for store_pairs is made. */
static inline pair_row buffer_pairs(size_t size, pair_range range, void *buffer) {
  return (pair_row){buffer, (char *)buffer + range.count * (int64_t)size};
}

/* Writes the row made in `buffer` to the row that starts at element `at`. */
static inline void store_pairs(const rg_tensor *t, int64_t at, pair_range range, const void *buffer, bool stream) {
  const int64_t stride = t->stride[t->rank - 1], half = range.rotary_dim / 2;
  const size_t size = rg_dtype_size(t->dtype);
  /* Interleaved pairs are one run of columns; so are the halves when all of both is there. */
  const bool one_run = range.style == RG_STYLE_INTERLEAVED || range.count == half;
  const int64_t columns = one_run ? 2 * range.count : range.count;
  int64_t column = range.style == RG_STYLE_INTERLEAVED ? 2 * range.begin : range.begin;
  const char *from = buffer;
  for (int run = 0; run < (one_run ? 1 : 2); ++run) {
    void *to = rg_element(t, at + column * stride);
    if (stride == 1) {
      copy_bytes(to, from, columns * (int64_t)size, stream);
    } else {
      copy_elements(size, to, stride, from, 1, columns);
    }
    from += columns * (int64_t)size;
    column += half;
  }
}

/* ---- vectors of pairs: `lanes` of them from pair i on, 0 < lanes <= RG_VF_WIDTH ---- */

RG_INLINE rg_vf load_lanes(rg_dtype T, const void *p, int64_t lanes) {
  return lanes == RG_VF_WIDTH ? rg_vf_load(T, p) : rg_vf_load_part(T, p, lanes);
}

RG_INLINE void store_lanes(rg_dtype T, void *p, rg_vf v, int64_t lanes) {
  if (lanes == RG_VF_WIDTH) {
    rg_vf_store(T, p, v);
  } else {
    rg_vf_store_part(T, p, v, lanes);
  }
}

/* How many of 2*lanes interleaved elements the first of two vectors takes; the second takes the others. */
RG_INLINE int64_t lower_lanes(int64_t lanes) { return 2 * lanes < RG_VF_WIDTH ? 2 * lanes : RG_VF_WIDTH; }

RG_INLINE rg_pair load_pair(rg_dtype T, rg_style S, const_pair_row row, int64_t i, int64_t lanes) {
  if (S == RG_STYLE_ROTATE_HALF) {
    return (rg_pair){load_lanes(T, rg_at_const(T, row.first, i), lanes),
                     load_lanes(T, rg_at_const(T, row.second, i), lanes)};
  }
  const int64_t lower = lower_lanes(lanes);
  rg_pair pair;
  rg_vf_deinterleave(load_lanes(T, rg_at_const(T, row.first, 2 * i), lower),
                     load_lanes(T, rg_at_const(T, row.first, 2 * i + lower), 2 * lanes - lower), &pair.first,
                     &pair.second);
  return pair;
}

RG_INLINE void store_pair(rg_dtype T, rg_style S, pair_row row, int64_t i, rg_pair pair, int64_t lanes) {
  if (S == RG_STYLE_ROTATE_HALF) {
    store_lanes(T, rg_at(T, row.first, i), pair.first, lanes);
    store_lanes(T, rg_at(T, row.second, i), pair.second, lanes);
    return;
  }
  const int64_t lower = lower_lanes(lanes);
  rg_vf a, b;
  rg_vf_interleave(pair.first, pair.second, &a, &b);
  store_lanes(T, rg_at(T, row.first, 2 * i), a, lower);
  store_lanes(T, rg_at(T, row.first, 2 * i + lower), b, 2 * lanes - lower);
}

/* Pairs i and on of a staged row. Its arrays end on whole vectors, so that no part is needed. */
typedef struct staged_row {
  rg_real *first, *second;
} staged_row;

RG_INLINE rg_pair load_staged(staged_row row, int64_t i) {
  return (rg_pair){rg_vf_load(RG_REAL_DTYPE, row.first + i), rg_vf_load(RG_REAL_DTYPE, row.second + i)};
}

RG_INLINE void store_staged(staged_row row, int64_t i, rg_pair pair) {
  rg_vf_store(RG_REAL_DTYPE, row.first + i, pair.first);
  rg_vf_store(RG_REAL_DTYPE, row.second + i, pair.second);
}

/* Runs the statements for each vector of `count` pairs, with constant `lanes` for all but the last. */
#define FOR_EACH_VECTOR(count, i, lanes, ...)              \
  do {                                                     \
    int64_t i = 0;                                         \
    for (; i + RG_VF_WIDTH <= (count); i += RG_VF_WIDTH) { \
      const int64_t lanes = RG_VF_WIDTH;                   \
      __VA_ARGS__;                                         \
    }                                                      \
    if (i < (count)) {                                     \
      const int64_t lanes = (count)-i;                     \
      __VA_ARGS__;                                         \
    }                                                      \
  } while (0)

/* ---- what is done to a row ---- */

RG_INLINE void stage_as(rg_dtype T, rg_style S, const_pair_row from, staged_row to, int64_t count) {
  FOR_EACH_VECTOR(count, i, lanes, store_staged(to, i, load_pair(T, S, from, i, lanes)));
}

static inline void stage_row(rg_dtype dtype, rg_style style, const_pair_row from, staged_row to, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, stage_as(T, S, from, to, count)));
}

RG_INLINE void unstage_as(rg_dtype T, rg_style S, staged_row from, pair_row to, int64_t count) {
  FOR_EACH_VECTOR(count, i, lanes, store_pair(T, S, to, i, load_staged(from, i), lanes));
}

static inline void unstage_row(rg_dtype dtype, rg_style style, staged_row from, pair_row to, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, unstage_as(T, S, from, to, count)));
}

/* For each of `heads` rows: out = grad rotated back. One vector of the table serves all heads before the next. */
RG_INLINE void rotate_as(rg_dtype T, rg_style S, rg_dtype product, int heads, const const_pair_row *grad,
                         staged_row cosine, staged_row sine, const pair_row *out, int64_t count) {
  FOR_EACH_VECTOR(count, i, lanes, {
    const rg_pair c = load_staged(cosine, i), s = load_staged(sine, i);
    for (int h = 0; h < heads; ++h) {
      store_pair(T, S, out[h], i, rg_rotate_transpose(product, load_pair(T, S, grad[h], i, lanes), c, s), lanes);
    }
  });
}

/* product: NONE, the dtype itself, or that of rg_real; see rotate.h. */
static inline void rotate_heads(rg_dtype dtype, rg_style style, rg_dtype product, int heads, const const_pair_row *grad,
                                staged_row cosine, staged_row sine, const pair_row *out, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, {
                  if (product == RG_DTYPE_NONE) {
                    rotate_as(T, S, RG_DTYPE_NONE, heads, grad, cosine, sine, out, count);
                  } else if (product == T) {
                    rotate_as(T, S, T, heads, grad, cosine, sine, out, count);
                  } else {
                    rotate_as(T, S, RG_REAL_DTYPE, heads, grad, cosine, sine, out, count);
                  }
                }));
}

/* grad_cos and grad_sin = the sums over `heads` rows, few enough for rg_real. */
RG_INLINE void sum_as(rg_dtype T, rg_style S, rg_dtype product, int heads, const const_pair_row *grad,
                      const const_pair_row *key, staged_row grad_cos, staged_row grad_sin, int64_t count) {
  FOR_EACH_VECTOR(count, i, lanes, {
    rg_pair cosine = {rg_vf_zero(), rg_vf_zero()}, sine = cosine;
    for (int h = 0; h < heads; ++h) {
      const rg_pair g = load_pair(T, S, grad[h], i, lanes), k = load_pair(T, S, key[h], i, lanes);
      rg_add_grad_cos(product, g, k, &cosine);
      rg_add_grad_sin(product, g, k, &sine);
    }
    store_staged(grad_cos, i, cosine);
    store_staged(grad_sin, i, sine);
  });
}

/* product: NONE or the dtype itself. */
static inline void sum_heads(rg_dtype dtype, rg_style style, rg_dtype product, int heads, const const_pair_row *grad,
                             const const_pair_row *key, staged_row grad_cos, staged_row grad_sin, int64_t count) {
  RG_WITH_DTYPE(dtype, T, WITH_STYLE(style, S, {
                  if (product == RG_DTYPE_NONE) {
                    sum_as(T, S, RG_DTYPE_NONE, heads, grad, key, grad_cos, grad_sin, count);
                  } else {
                    sum_as(T, S, T, heads, grad, key, grad_cos, grad_sin, count);
                  }
                }));
}

#endif
