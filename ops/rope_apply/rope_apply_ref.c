/* The float64 reference of rope_apply, both directions. Formulas: rope_apply.h. */
#include <math.h>

#include "ops/rope_apply/rope_apply_spec.h"
#include "src/spec/reference.h"

/* The two columns of pair j. */
typedef struct pair_columns {
  int64_t first, second;
} pair_columns;

static pair_columns columns_of(rg_style style, int64_t R, int64_t j) {
  if (style == RG_STYLE_INTERLEAVED) return (pair_columns){2 * j, 2 * j + 1};
  return (pair_columns){j, j + R / 2};
}

static void put(rg_reference_output *out, int64_t at, double term, double other) {
  out->value[at] = term + other;
  out->magnitude[at] = fabs(term) + fabs(other);
}

/* Row (b, h, s) of grad_x, where x is q or k. */
static void rotate_back(const rg_problem *p, const rg_rope_apply_backward_args *args, int grad_y, int grad_x, int64_t b,
                        int64_t h, int64_t s, rg_reference_output *out) {
  const rg_tensor *t = p->tensor;
  const int64_t D = p->dim[DIM_D], R = p->dim[DIM_R];
  const int64_t row = rg_ref_place(&t[grad_x], b, h, s, 0);
  for (int64_t j = 0; j < R / 2; ++j) {
    const pair_columns at = columns_of(args->style, R, j);
    const bool same_half = args->sin_pairing == RG_SIN_SAME_HALF;
    const double g1 = rg_ref_read(&t[grad_y], b, h, s, at.first), g2 = rg_ref_read(&t[grad_y], b, h, s, at.second);
    const double c1 = rg_ref_read(&t[COS], b, s, at.first, 0), c2 = rg_ref_read(&t[COS], b, s, at.second, 0);
    const double s1 = rg_ref_read(&t[SIN], b, s, at.first, 0), s2 = rg_ref_read(&t[SIN], b, s, at.second, 0);
    put(&out[grad_x], row + at.first, g1 * c1, g2 * (same_half ? s1 : s2));
    put(&out[grad_x], row + at.second, g2 * c2, -g1 * (same_half ? s2 : s1));
  }
  for (int64_t d = R; d < D; ++d) {
    out[grad_x].value[row + d] = rg_ref_read(&t[grad_y], b, h, s, d);
    out[grad_x].magnitude[row + d] = RG_EXACT;
  }
}

typedef struct side {
  int grad_y, x, grad_x;
  int64_t heads;
} side;

/* Pair j of row s of grad_cos or grad_sin, summed over every head of the batches [begin, end); it goes to batch begin.
 * The sum is kept in long double, so that for float64 tensors too it is better than what it is compared with. */
static void sum_over_heads(const rg_problem *p, rg_style style, const side sides[2], int grad_table, int64_t begin,
                           int64_t end, int64_t s, int64_t j, rg_reference_output *out) {
  const rg_tensor *t = p->tensor;
  const pair_columns at = columns_of(style, p->dim[DIM_R], j);
  long double first = 0, second = 0;
  double first_magnitude = 0, second_magnitude = 0;
  for (int64_t b = begin; b < end; ++b) {
    for (const side *of = sides; of < sides + 2; ++of) {
      for (int64_t h = 0; h < of->heads; ++h) {
        const double g1 = rg_ref_read(&t[of->grad_y], b, h, s, at.first);
        const double g2 = rg_ref_read(&t[of->grad_y], b, h, s, at.second);
        const double x1 = rg_ref_read(&t[of->x], b, h, s, at.first);
        const double x2 = rg_ref_read(&t[of->x], b, h, s, at.second);
        const double to_first = grad_table == GRAD_COS ? g1 * x1 : -g1 * x2;
        const double to_second = grad_table == GRAD_COS ? g2 * x2 : g2 * x1;
        first += to_first;
        second += to_second;
        first_magnitude += fabs(to_first);
        second_magnitude += fabs(to_second);
      }
    }
  }
  const int64_t row = rg_ref_place(&t[grad_table], begin, s, 0, 0);
  out[grad_table].value[row + at.first] = (double)first;
  out[grad_table].value[row + at.second] = (double)second;
  out[grad_table].magnitude[row + at.first] = first_magnitude;
  out[grad_table].magnitude[row + at.second] = second_magnitude;
}

static void sum_table(const rg_problem *p, rg_style style, const side sides[2], int grad_table,
                      rg_reference_output *out) {
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S], pairs = p->dim[DIM_R] / 2;
  const int64_t batches = rope_apply_sums_batch(p, grad_table) ? B : 1;
  const int64_t tables = p->tensor[grad_table].shape[0];
  out[grad_table].terms = (sides[0].heads + sides[1].heads) * batches;
  for (int64_t table = 0; table < tables; ++table) {
    for (int64_t s = 0; s < S; ++s) {
      for (int64_t j = 0; j < pairs; ++j) {
        sum_over_heads(p, style, sides, grad_table, table, table + batches, s, j, out);
      }
    }
  }
}

void rg_rope_apply_backward_reference(const rg_problem *p, rg_reference_output *out) {
  const rg_rope_apply_backward_args *args = p->args;
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S];
  const side sides[2] = {{GRAD_Q_EMBED, Q, GRAD_Q, p->dim[DIM_HQ]}, {GRAD_K_EMBED, K, GRAD_K, p->dim[DIM_HK]}};
  for (const side *of = sides; of < sides + 2; ++of) {
    if (out[of->grad_x].value == NULL) continue;
    out[of->grad_x].terms = 2;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t h = 0; h < of->heads; ++h) {
        for (int64_t s = 0; s < S; ++s) rotate_back(p, args, of->grad_y, of->grad_x, b, h, s, out);
      }
    }
  }
  if (out[GRAD_COS].value) sum_table(p, args->style, sides, GRAD_COS, out);
  if (out[GRAD_SIN].value) sum_table(p, args->style, sides, GRAD_SIN, out);
}

/* Row (b, h, s) of q_embed or k_embed. */
static void rotate(const rg_problem *p, rg_style style, int x, int y, int64_t b, int64_t h, int64_t s,
                   rg_reference_output *out) {
  const rg_tensor *t = p->tensor;
  const int64_t D = p->dim[DIM_D], R = p->dim[DIM_R];
  const int64_t row = rg_ref_place(&t[y], b, h, s, 0);
  for (int64_t j = 0; j < R / 2; ++j) {
    const pair_columns at = columns_of(style, R, j);
    const double x1 = rg_ref_read(&t[x], b, h, s, at.first), x2 = rg_ref_read(&t[x], b, h, s, at.second);
    const double c1 = rg_ref_read(&t[FORWARD_COS], b, s, at.first, 0);
    const double c2 = rg_ref_read(&t[FORWARD_COS], b, s, at.second, 0);
    const double s1 = rg_ref_read(&t[FORWARD_SIN], b, s, at.first, 0);
    const double s2 = rg_ref_read(&t[FORWARD_SIN], b, s, at.second, 0);
    put(&out[y], row + at.first, x1 * c1, -x2 * s1);
    put(&out[y], row + at.second, x2 * c2, x1 * s2);
  }
  for (int64_t d = R; d < D; ++d) {
    out[y].value[row + d] = rg_ref_read(&t[x], b, h, s, d);
    out[y].magnitude[row + d] = RG_EXACT;
  }
}

void rg_rope_apply_forward_reference(const rg_problem *p, rg_reference_output *out) {
  const rg_rope_apply_forward_args *args = p->args;
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S];
  const struct {
    int x, y;
    int64_t heads;
  } sides[2] = {{FORWARD_Q, FORWARD_Q_EMBED, p->dim[DIM_HQ]}, {FORWARD_K, FORWARD_K_EMBED, p->dim[DIM_HK]}};
  for (int k = 0; k < 2; ++k) {
    if (out[sides[k].y].value == NULL) continue;
    out[sides[k].y].terms = 2;
    for (int64_t b = 0; b < B; ++b) {
      for (int64_t h = 0; h < sides[k].heads; ++h) {
        for (int64_t s = 0; s < S; ++s) rotate(p, args->style, sides[k].x, sides[k].y, b, h, s, out);
      }
    }
  }
}
