/* The fills: their values, their independence of threads and layout, and what they refuse. On the made-up operator,
 * whose tensors have every kind of dtype and axis. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cases/fill.h"
#include "tests/toy_operator.h"

/* The toy operator with B = 2, H = 3, S = 4, D = 6 and a dtype for every tensor. */
static void toy_case(rgh_case *item) {
  static const rg_dtype dtypes[TOY_NUM_TENSORS] = {RG_F32, RG_F32, RG_F32, RG_I64, RG_I64, RG_F32, RG_F32, RG_F32};
  static char name[] = "fill";
  rgh_case_init(item, &toy_operator);
  item->name = name;
  item->dim[TOY_B] = TOY_B_SIZE;
  item->dim[TOY_H] = TOY_H_SIZE;
  item->dim[TOY_S] = TOY_S_SIZE;
  item->dim[TOY_D] = TOY_D_SIZE;
  memcpy(item->dtype, dtypes, sizeof dtypes);
  /* Rows and grid have no fill of their own in the table, and the default, normal, is for floats. */
  item->fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_ARANGE);
  item->fill[TOY_GRID] = rgh_fill_default(RGH_FILL_GRID);
}

static void finish(rgh_case *item) {
  rgh_message why;
  if (!rgh_case_finish(item, &why)) fail_msg("%s", why.text);
}

/* Fills `elements` of a one-dimensional tensor, or the tensor's own shape when `elements` is 0, densely. */
static void fill_dense(const rgh_case *item, int tensor, int64_t elements, void *memory, int threads) {
  rg_tensor target = {.data = memory, .dtype = item->dtype[tensor], .rank = 1, .shape = {elements}, .stride = {1}};
  if (elements == 0) {
    target.rank = item->op->tensors[tensor].rank;
    rgh_case_shape(item, tensor, target.shape);
    int64_t run = 1;
    for (int a = target.rank - 1; a >= 0; --a) {
      target.stride[a] = run;
      run *= target.shape[a];
    }
  }
  rgh_fill_tensor(item, tensor, 11, &target, threads);
}

static void threads_do_not_matter(void **state) {
  (void)state;
  enum { ELEMENTS = 100 * 1000 + 7 };
  static const rgh_fill_kind kinds[] = {RGH_FILL_NORMAL, RGH_FILL_UNIFORM, RGH_FILL_SPECIAL};
  float *one = malloc(ELEMENTS * sizeof *one), *many = malloc(ELEMENTS * sizeof *many);
  assert_true(one != NULL && many != NULL);
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
    rgh_case item;
    toy_case(&item);
    item.fill[TOY_G] = rgh_fill_default(kinds[k]);
    finish(&item);
    fill_dense(&item, TOY_G, ELEMENTS, one, 1);
    for (int threads = 2; threads <= 5; ++threads) {
      memset(many, 0, ELEMENTS * sizeof *many);
      fill_dense(&item, TOY_G, ELEMENTS, many, threads);
      assert_memory_equal(one, many, ELEMENTS * sizeof *one);
    }
  }
  free(one);
  free(many);
}

static void strides_do_not_matter(void **state) {
  (void)state;
  enum { ELEMENTS = TOY_B_SIZE * TOY_H_SIZE * TOY_S_SIZE * TOY_D_SIZE };
  rgh_case item;
  toy_case(&item);
  finish(&item);
  float dense[ELEMENTS], strided[2 * ELEMENTS];
  fill_dense(&item, TOY_G, 0, dense, 1);
  /* In memory [B][S][H][D], every other element. */
  rg_tensor target = {.data = strided, .dtype = RG_F32, .rank = 4};
  rgh_case_shape(&item, TOY_G, target.shape);
  target.stride[3] = 2;
  target.stride[1] = 2 * TOY_D_SIZE;
  target.stride[2] = target.stride[1] * TOY_H_SIZE;
  target.stride[0] = target.stride[2] * TOY_S_SIZE;
  rgh_fill_tensor(&item, TOY_G, 11, &target, 2);
  int64_t e = 0;
  for (int64_t b = 0; b < TOY_B_SIZE; ++b) {
    for (int64_t h = 0; h < TOY_H_SIZE; ++h) {
      for (int64_t s = 0; s < TOY_S_SIZE; ++s) {
        for (int64_t d = 0; d < TOY_D_SIZE; ++d, ++e) {
          const int64_t place = b * target.stride[0] + h * target.stride[1] + s * target.stride[2] + d * 2;
          assert_true(strided[place] == dense[e]);
        }
      }
    }
  }
}

/* The same draws in every dtype, rounded once. */
static void dtypes_round_the_same_values(void **state) {
  (void)state;
  enum { ELEMENTS = 5000 };
  static const rg_dtype dtypes[] = {RG_BF16, RG_F16, RG_F64};
  static float single[ELEMENTS];
  static double other[ELEMENTS];
  rgh_case item;
  toy_case(&item);
  finish(&item);
  fill_dense(&item, TOY_G, ELEMENTS, single, 1);
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
    item.dtype[TOY_G] = dtypes[d];
    fill_dense(&item, TOY_G, ELEMENTS, other, 1);
    for (int64_t i = 0; i < ELEMENTS; ++i) {
      assert_true(rg_dtype_read(dtypes[d], other, i) == rg_dtype_round(dtypes[d], single[i]));
    }
  }
}

static void uniform_stays_inside_and_special_has_every_value(void **state) {
  (void)state;
  enum { ELEMENTS = 20000 };
  static float value[ELEMENTS];
  static int64_t whole[ELEMENTS];
  rgh_case item;
  toy_case(&item);
  item.fill[TOY_G] = rgh_fill_default(RGH_FILL_UNIFORM);
  item.fill[TOY_G].low = -3;
  item.fill[TOY_G].high = 5;
  item.fill[TOY_ROWS] = item.fill[TOY_G];
  item.fill[TOY_X] = rgh_fill_default(RGH_FILL_SPECIAL);
  finish(&item);
  fill_dense(&item, TOY_G, ELEMENTS, value, 1);
  double sum = 0;
  for (int i = 0; i < ELEMENTS; ++i) {
    assert_true(value[i] >= -3 && value[i] <= 5);
    sum += value[i];
  }
  assert_true(fabs(sum / ELEMENTS - 1) < 5 * 8 / sqrt(12.0 * ELEMENTS));

  int seen[8] = {0};
  fill_dense(&item, TOY_ROWS, ELEMENTS, whole, 1);
  for (int i = 0; i < ELEMENTS; ++i) {
    assert_in_range(whole[i] + 3, 0, 7);
    ++seen[whole[i] + 3];
  }
  for (int i = 0; i < 8; ++i) assert_in_range(seen[i], ELEMENTS / 8 - 300, ELEMENTS / 8 + 300);

  int nan = 0, positive = 0, negative = 0, zero = 0, minus_zero = 0;
  fill_dense(&item, TOY_X, ELEMENTS, value, 1);
  for (int i = 0; i < ELEMENTS; ++i) {
    nan += isnan(value[i]) != 0;
    positive += value[i] > 0 && isinf(value[i]);
    negative += value[i] < 0 && isinf(value[i]);
    zero += value[i] == 0 && !signbit(value[i]);
    minus_zero += value[i] == 0 && signbit(value[i]);
  }
  /* One element in 4, evenly among the five. */
  const int counts[] = {nan, positive, negative, zero, minus_zero};
  for (int i = 0; i < 5; ++i) assert_in_range(counts[i], ELEMENTS / 20 - 200, ELEMENTS / 20 + 200);
}

static void sequences(void **state) {
  (void)state;
  enum { N = 12 };
  rgh_case item;
  int64_t value[N], seen[N];

  static const struct {
    rgh_fill_kind kind;
    int64_t expected[N];
  } exact[] = {
      {RGH_FILL_ARANGE, {100, 102, 104, 106, 108, 110, 112, 114, 116, 118, 120, 122}},
      {RGH_FILL_REVERSED, {122, 120, 118, 116, 114, 112, 110, 108, 106, 104, 102, 100}},
      {RGH_FILL_DUPLICATES, {100, 100, 102, 102, 104, 104, 106, 106, 108, 108, 110, 110}},
  };
  for (size_t i = 0; i < sizeof exact / sizeof exact[0]; ++i) {
    toy_case(&item);
    item.dim[TOY_S] = N;
    item.fill[TOY_ROWS] = rgh_fill_default(exact[i].kind);
    item.fill[TOY_ROWS].start = 100;
    item.fill[TOY_ROWS].step = 2;
    finish(&item);
    fill_dense(&item, TOY_ROWS, 0, value, 1);
    assert_memory_equal(value, exact[i].expected, sizeof value);
  }

  /* Shuffled: a permutation, and not the identity. Negatives: so too but for every fourth. */
  static const rgh_fill_kind kinds[] = {RGH_FILL_SHUFFLED, RGH_FILL_NEGATIVES};
  for (int k = 0; k < 2; ++k) {
    toy_case(&item);
    item.dim[TOY_S] = N;
    item.dtype[TOY_ROWS] = RG_I64;
    item.fill[TOY_ROWS] = rgh_fill_default(kinds[k]);
    finish(&item);
    fill_dense(&item, TOY_ROWS, 0, value, 1);
    memset(seen, 0, sizeof seen);
    bool sorted = true;
    for (int i = 0; i < N; ++i) {
      sorted = sorted && (i == 0 || value[i] > value[i - 1]);
      if (kinds[k] == RGH_FILL_NEGATIVES && i % 4 == 0) {
        assert_true(value[i] < 0);
      } else {
        assert_in_range(value[i], 0, N - 1);
        assert_int_equal(seen[value[i]]++, 0);
      }
    }
    assert_false(sorted);
  }
}

/* Angles, cosines, frequencies and grids against the formulas. */
static void positional_fills_follow_their_formulas(void **state) {
  (void)state;
  rgh_case item;
  toy_case(&item);
  item.fill[TOY_ANGLE] = rgh_fill_default(RGH_FILL_INV_FREQ);
  item.fill[TOY_TABLE] = rgh_fill_default(RGH_FILL_ROPE_COS);
  item.fill[TOY_G] = rgh_fill_default(RGH_FILL_ROPE_ANGLES);
  item.fill[TOY_G].interleaved = 1;
  item.fill[TOY_G].start = 1000;
  item.fill[TOY_GRID].width = 3;
  finish(&item);
  float angle[TOY_S_SIZE * TOY_D_SIZE / 2], table[TOY_B_SIZE * TOY_S_SIZE * TOY_D_SIZE];
  float g[TOY_B_SIZE * TOY_H_SIZE * TOY_S_SIZE * TOY_D_SIZE];
  int64_t grid[TOY_S_SIZE * 2];
  fill_dense(&item, TOY_ANGLE, 0, angle, 1);
  fill_dense(&item, TOY_TABLE, 0, table, 1);
  fill_dense(&item, TOY_G, 0, g, 1);
  fill_dense(&item, TOY_GRID, 0, grid, 1);
  for (int s = 0; s < TOY_S_SIZE; ++s) {
    for (int j = 0; j < TOY_D_SIZE / 2; ++j) {
      const double frequency = pow(10000, -2.0 * j / TOY_D_SIZE);
      assert_true(angle[s * TOY_D_SIZE / 2 + j] == (float)frequency);
      for (int half = 0; half < 2; ++half) {
        assert_true(fabs(table[s * TOY_D_SIZE + j + half * TOY_D_SIZE / 2] - cos(s * frequency)) < 1e-7);
        assert_true(fabs(g[s * TOY_D_SIZE + 2 * j + half] / ((1000 + s) * frequency) - 1) < 1e-7);
      }
    }
    assert_int_equal(grid[2 * s], s / 3);
    assert_int_equal(grid[2 * s + 1], s % 3);
  }
}

static void refused(rgh_case *item, const char *part) {
  rgh_message why;
  assert_false(rgh_case_finish(item, &why));
  assert_text_has(why.text, part);
}

static void unfit_fills_are_refused(void **state) {
  (void)state;
  rgh_case item;
  toy_case(&item);
  item.fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_NORMAL);
  refused(&item, "inputs.rows: \"normal\" cannot fill a tensor of dtype int64");
  toy_case(&item);
  item.fill[TOY_G] = rgh_fill_default(RGH_FILL_GRID);
  refused(&item, "inputs.g: \"grid\" cannot fill a tensor of dtype float32");
  toy_case(&item);
  item.fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_GRID);
  refused(&item, "inputs.rows: \"grid\" cannot fill a tensor of this shape");
  toy_case(&item);
  item.fill[TOY_ROWS].start = 0.5;
  refused(&item, "inputs.rows.start: an integer tensor needs a whole number, got 0.5");
  toy_case(&item);
  item.dtype[TOY_ROWS] = RG_I32;
  item.fill[TOY_ROWS].start = 2147483647.0 - (TOY_S_SIZE - 1);
  finish(&item);
  item.fill[TOY_ROWS].start += 1;
  refused(&item, "inputs.rows: its numbers pass what the dtype holds");
  toy_case(&item);
  item.fill[TOY_G] = rgh_fill_default(RGH_FILL_SPECIAL);
  item.fill[TOY_G].every = 0;
  refused(&item, "inputs.g.every: expected a whole number");
  toy_case(&item);
  item.fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_UNIFORM);
  item.fill[TOY_ROWS].low = 2;
  refused(&item, "low must not pass high");
  toy_case(&item);
  item.fill[TOY_G] = rgh_fill_default(RGH_FILL_ROPE_SIN);
  item.fill[TOY_G].base = 0;
  refused(&item, "inputs.g.base: must be positive");
}

static void names_lead_back_to_fills(void **state) {
  (void)state;
  for (int kind = 1; kind < RGH_NUM_FILLS; ++kind) {
    assert_int_equal(rgh_fill_from_name(rgh_fill_name((rgh_fill_kind)kind)), kind);
  }
  assert_int_equal(rgh_fill_from_name("default"), RGH_NUM_FILLS);
  assert_int_equal(rgh_fill_from_name(""), RGH_NUM_FILLS);
  rgh_fill fill = rgh_fill_default(RGH_FILL_UNIFORM);
  assert_true(rgh_fill_set(&fill, "high", 7));
  assert_true(fill.high == 7);
  assert_false(rgh_fill_set(&fill, "base", 7));
  assert_false(rgh_fill_set(&fill, "", 7));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_do_not_matter),
      cmocka_unit_test(strides_do_not_matter),
      cmocka_unit_test(dtypes_round_the_same_values),
      cmocka_unit_test(uniform_stays_inside_and_special_has_every_value),
      cmocka_unit_test(sequences),
      cmocka_unit_test(positional_fills_follow_their_formulas),
      cmocka_unit_test(unfit_fills_are_refused),
      cmocka_unit_test(names_lead_back_to_fills),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
