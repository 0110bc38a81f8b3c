/* The float64 reference of kv_cache_update, both directions. Formulas: kv_cache_update.h. */
#include <math.h>

#include "ops/kv_cache_update/kv_cache_update_spec.h"
#include "src/spec/reference.h"

/* The two columns of pair j. */
typedef struct columns {
  int64_t first, second;
} columns;

static columns pair_columns(rg_style style, int64_t rotary_dim, int64_t j) {
  return style == RG_STYLE_ROTATE_HALF ? (columns){j, j + rotary_dim / 2} : (columns){2 * j, 2 * j + 1};
}

typedef struct pair {
  double first, second;
} pair;

static pair read_pair(const rg_tensor *t, int64_t i, int64_t j, int64_t k, columns c) {
  return (pair){rg_ref_read(t, i, j, k, c.first), rg_ref_read(t, i, j, k, c.second)};
}

static pair read_table(const rg_tensor *t, int64_t b, int64_t n, columns c) {
  return (pair){rg_ref_read(t, b, n, c.first, 0), rg_ref_read(t, b, n, c.second, 0)};
}

static void put(rg_reference_output *out, int64_t at, double value, double magnitude) {
  out->value[at] = value;
  out->magnitude[at] = magnitude;
}

/* A product on its way into a sum: rounded first with `rounding = eager`. */
static double product(const rg_problem *p, rg_dtype dtype, double a, double b) {
  const rg_kv_cache_update_backward_args *args = p->args;
  return args->rounding == RG_ROUNDING_EAGER ? rg_dtype_round(dtype, a * b) : a * b;
}

/* Row `from` of a [B, Hk, rows, D] tensor, bit for bit, to row `to` of another; from < 0: zeros. */
static void copy_row(const rg_problem *p, int source, int target, int64_t b, int64_t h, int64_t from, int64_t to,
                     rg_reference_output *out) {
  for (int64_t d = 0; d < p->dim[DIM_D]; ++d) {
    const double value = from < 0 ? 0.0 : rg_ref_read(&p->tensor[source], b, h, from, d);
    put(&out[target], rg_ref_place(&p->tensor[target], b, h, to, d), value, RG_EXACT);
  }
}

/* ---- backward ---- */

static void grad_cache_input(const rg_problem *p, int cache, int cache_input, int64_t b, int64_t h,
                             rg_reference_output *out) {
  for (int64_t m = 0; m < p->dim[DIM_M]; ++m) copy_row(p, cache, cache_input, b, h, m, m, out);
  for (int64_t n = 0; n < p->dim[DIM_N]; ++n) {
    const int64_t m = rg_kv_cache_update_position(&p->tensor[CACHE_POSITION], n);
    if (m >= 0) copy_row(p, cache, cache_input, b, h, -1, m, out);
  }
}

/* Rotates back what copy_row has put into the leading columns of row n. */
static void grad_key_row(const rg_problem *p, int64_t b, int64_t h, int64_t n, int64_t m, rg_reference_output *out) {
  const rg_kv_cache_update_backward_args *args = p->args;
  const rg_tensor *target = &p->tensor[GRAD_KEY_STATES];
  const rg_dtype rounded = rg_kv_cache_update_promote(target->dtype, p->tensor[COS].dtype);
  for (int64_t j = 0; j < p->dim[DIM_R] / 2; ++j) {
    const columns at = pair_columns(args->style, p->dim[DIM_R], j);
    const pair g = read_pair(&p->tensor[GRAD_KEY_CACHE], b, h, m, at);
    const pair c = read_table(&p->tensor[COS], b, n, at), s = read_table(&p->tensor[SIN], b, n, at);
    const double g1c1 = product(p, rounded, g.first, c.first), g2s2 = product(p, rounded, g.second, s.second);
    const double g2c2 = product(p, rounded, g.second, c.second), g1s1 = product(p, rounded, g.first, s.first);
    put(&out[GRAD_KEY_STATES], rg_ref_place(target, b, h, n, at.first), g1c1 + g2s2, fabs(g1c1) + fabs(g2s2));
    put(&out[GRAD_KEY_STATES], rg_ref_place(target, b, h, n, at.second), g2c2 - g1s1, fabs(g2c2) + fabs(g1s1));
  }
}

/* Pair j of row n of grad_cos or grad_sin, summed over every head of the batches [begin, end); it goes to batch begin.
 * The sum is kept in long double, so that for float64 tensors too it is better than what it is compared with. */
static void sum_over_heads(const rg_problem *p, int gradient, int64_t begin, int64_t end, int64_t n, int64_t j,
                           rg_reference_output *out) {
  const rg_kv_cache_update_backward_args *args = p->args;
  const rg_dtype rounded = p->tensor[KEY_STATES].dtype;
  const columns at = pair_columns(args->style, p->dim[DIM_R], j);
  const int64_t m = rg_kv_cache_update_position(&p->tensor[CACHE_POSITION], n);
  long double first = 0, second = 0;
  pair magnitude = {0, 0};
  for (int64_t b = begin; b < end && m >= 0; ++b) {
    for (int64_t h = 0; h < p->dim[DIM_H]; ++h) {
      const pair g = read_pair(&p->tensor[GRAD_KEY_CACHE], b, h, m, at);
      const pair k = read_pair(&p->tensor[KEY_STATES], b, h, n, at);
      const pair term = gradient == GRAD_COS
                            ? (pair){product(p, rounded, g.first, k.first), product(p, rounded, g.second, k.second)}
                            : (pair){-product(p, rounded, g.first, k.second), product(p, rounded, g.second, k.first)};
      first += term.first;
      second += term.second;
      magnitude.first += fabs(term.first);
      magnitude.second += fabs(term.second);
    }
  }
  const rg_tensor *t = &p->tensor[gradient];
  put(&out[gradient], rg_ref_place(t, begin, n, at.first, 0), (double)first, magnitude.first);
  put(&out[gradient], rg_ref_place(t, begin, n, at.second, 0), (double)second, magnitude.second);
}

static void sum_table(const rg_problem *p, int gradient, rg_reference_output *out) {
  const int64_t tables = p->tensor[gradient].shape[0], batches = tables == 1 ? p->dim[DIM_B] : 1;
  out[gradient].terms = p->dim[DIM_H] * batches;
  for (int64_t b = 0; b < tables; ++b) {
    for (int64_t n = 0; n < p->dim[DIM_N]; ++n) {
      for (int64_t j = 0; j < p->dim[DIM_R] / 2; ++j) sum_over_heads(p, gradient, b, b + batches, n, j, out);
    }
  }
}

void rg_kv_cache_update_backward_reference(const rg_problem *p, rg_reference_output *out) {
  out[GRAD_KEY_STATES].terms = 2;
  out[GRAD_VALUE_STATES].terms = out[GRAD_KEY_CACHE_INPUT].terms = out[GRAD_VALUE_CACHE_INPUT].terms = 1;
  for (int64_t b = 0; b < p->dim[DIM_B]; ++b) {
    for (int64_t h = 0; h < p->dim[DIM_H]; ++h) {
      for (int64_t n = 0; n < p->dim[DIM_N]; ++n) {
        const int64_t m = rg_kv_cache_update_position(&p->tensor[CACHE_POSITION], n);
        if (out[GRAD_KEY_STATES].value) copy_row(p, GRAD_KEY_CACHE, GRAD_KEY_STATES, b, h, m, n, out);
        if (out[GRAD_VALUE_STATES].value) copy_row(p, GRAD_VALUE_CACHE, GRAD_VALUE_STATES, b, h, m, n, out);
        if (m >= 0 && out[GRAD_KEY_STATES].value) grad_key_row(p, b, h, n, m, out);
      }
      if (out[GRAD_KEY_CACHE_INPUT].value) grad_cache_input(p, GRAD_KEY_CACHE, GRAD_KEY_CACHE_INPUT, b, h, out);
      if (out[GRAD_VALUE_CACHE_INPUT].value) grad_cache_input(p, GRAD_VALUE_CACHE, GRAD_VALUE_CACHE_INPUT, b, h, out);
    }
  }
  if (out[GRAD_COS].value) sum_table(p, GRAD_COS, out);
  if (out[GRAD_SIN].value) sum_table(p, GRAD_SIN, out);
}

/* ---- forward ---- */

/* Rotates what copy_row has put into the leading columns of cache row m. */
static void key_row(const rg_problem *p, int64_t b, int64_t h, int64_t n, int64_t m, rg_reference_output *out) {
  const rg_kv_cache_update_forward_args *args = p->args;
  const rg_tensor *target = &p->tensor[FORWARD_KEY_CACHE];
  for (int64_t j = 0; j < p->dim[DIM_R] / 2; ++j) {
    const columns at = pair_columns(args->style, p->dim[DIM_R], j);
    const pair k = read_pair(&p->tensor[FORWARD_KEY_STATES], b, h, n, at);
    const pair c = read_table(&p->tensor[FORWARD_COS], b, n, at), s = read_table(&p->tensor[FORWARD_SIN], b, n, at);
    put(&out[FORWARD_KEY_CACHE], rg_ref_place(target, b, h, m, at.first), k.first * c.first - k.second * s.first,
        fabs(k.first * c.first) + fabs(k.second * s.first));
    put(&out[FORWARD_KEY_CACHE], rg_ref_place(target, b, h, m, at.second), k.second * c.second + k.first * s.second,
        fabs(k.second * c.second) + fabs(k.first * s.second));
  }
}

static void update_cache(const rg_problem *p, int cache_input, int states, int cache, int64_t b, int64_t h,
                         rg_reference_output *out) {
  for (int64_t m = 0; m < p->dim[DIM_M]; ++m) copy_row(p, cache_input, cache, b, h, m, m, out);
  for (int64_t n = 0; n < p->dim[DIM_N]; ++n) {
    const int64_t m = rg_kv_cache_update_position(&p->tensor[FORWARD_CACHE_POSITION], n);
    if (m < 0) continue;
    copy_row(p, states, cache, b, h, n, m, out);
    if (cache == FORWARD_KEY_CACHE) key_row(p, b, h, n, m, out);
  }
}

void rg_kv_cache_update_forward_reference(const rg_problem *p, rg_reference_output *out) {
  out[FORWARD_KEY_CACHE].terms = 2;
  out[FORWARD_VALUE_CACHE].terms = 1;
  for (int64_t b = 0; b < p->dim[DIM_B]; ++b) {
    for (int64_t h = 0; h < p->dim[DIM_H]; ++h) {
      if (out[FORWARD_KEY_CACHE].value) {
        update_cache(p, FORWARD_KEY_CACHE_INPUT, FORWARD_KEY_STATES, FORWARD_KEY_CACHE, b, h, out);
      }
      if (out[FORWARD_VALUE_CACHE].value) {
        update_cache(p, FORWARD_VALUE_CACHE_INPUT, FORWARD_VALUE_STATES, FORWARD_VALUE_CACHE, b, h, out);
      }
    }
  }
}
