/* The comparison with the reference, on arrays made by hand: what counts as an error, and what is reported of it. */
#include <math.h>

#include "harness/buffers/poison.h"
#include "harness/verify/compare.h"
#include "tests/testing.h"

enum { ROWS = 3, COLUMNS = 300, ELEMENTS = ROWS * COLUMNS }; /* a row is longer than what is converted at a time */

typedef struct fixture {
  double value[ELEMENTS], magnitude[ELEMENTS];
  float single[ELEMENTS];
  rg_reference_output reference;
  rg_tensor actual;
} fixture;

static const int64_t nowhere[RG_MAX_RANK] = {0};

/* Values 1, 2, 3, ... that are right. */
static void make(fixture *f) {
  for (int e = 0; e < ELEMENTS; ++e) {
    f->value[e] = f->single[e] = (float)(e + 1);
    f->magnitude[e] = e + 1;
  }
  f->reference = (rg_reference_output){f->value, f->magnitude, 2};
  f->actual =
      (rg_tensor){.data = f->single, .dtype = RG_F32, .rank = 2, .shape = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}};
}

static rgh_comparison compare(const fixture *f) {
  rgh_comparison c;
  rgh_comparison_init(&c);
  rgh_compare(&f->actual, &f->reference, 5, nowhere, &c);
  assert_int_equal(c.compared, ELEMENTS);
  return c;
}

/* The contract of rg_reference_output, for float32, written out. */
static double allowance(double value, double magnitude, double terms) {
  return ((8 + sqrt(terms) / 16) * magnitude + fabs(value)) * 0x1p-24;
}

static void right_values_use_no_allowance(void **state) {
  (void)state;
  fixture f;
  make(&f);
  const rgh_comparison c = compare(&f);
  assert_int_equal(c.out_of_contract, 0);
  assert_true(c.allowance_used == 0);
}

static void the_share_of_the_allowance_is_reported_with_its_place(void **state) {
  (void)state;
  static const double shares[] = {0.5, 0.9, 1.1, 4, 100};
  for (size_t i = 0; i < sizeof shares / sizeof shares[0]; ++i) {
    for (int e = 0; e < ELEMENTS; e += 13) {
      fixture f;
      make(&f);
      /* The reference moves and not the value, which would be rounded. */
      f.magnitude[e] = 1000;
      const double value = f.value[e];
      f.value[e] = value - shares[i] * allowance(value, 1000, 2);
      const rgh_comparison c = compare(&f);
      assert_int_equal(c.tensor, 5);
      assert_int_equal(c.index[0], e / COLUMNS);
      assert_int_equal(c.index[1], e % COLUMNS);
      assert_int_equal(c.out_of_contract, shares[i] > 1);
      assert_true(fabs(c.allowance_used / shares[i] - 1) < 1e-3);
      assert_true(c.got == value && c.expected == f.value[e]);
      assert_false(c.unwritten);
    }
  }
}

static void non_finite_values_must_agree(void **state) {
  (void)state;
  const double inf = (double)INFINITY, nan = (double)NAN;
  const struct {
    double value, reference;
    bool right;
  } pairs[] = {{nan, nan, true},  {inf, inf, true},  {-inf, -inf, true}, {nan, 1, false}, {1, nan, false},
               {inf, nan, false}, {nan, inf, false}, {inf, -inf, false}, {inf, 1, false}, {1, inf, false}};
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; ++i) {
    fixture f;
    make(&f);
    f.single[700] = (float)pairs[i].value;
    f.value[700] = pairs[i].reference;
    const rgh_comparison c = compare(&f);
    assert_int_equal(c.out_of_contract, pairs[i].right ? 0 : 1);
    if (pairs[i].right) continue;
    assert_true(c.allowance_used == inf);
    assert_int_equal(c.index[0], 2);
    assert_int_equal(c.index[1], 100);
  }
}

static void exact_elements_must_be_equal(void **state) {
  (void)state;
  fixture f;
  make(&f);
  f.magnitude[400] = RG_EXACT;
  assert_int_equal(compare(&f).out_of_contract, 0);
  f.single[400] = nextafterf(f.single[400], 0);
  const rgh_comparison c = compare(&f);
  assert_int_equal(c.out_of_contract, 1);
  assert_true(isinf(c.allowance_used));
  assert_int_equal(c.index[1], 100);
}

static void poison_is_unwritten_even_where_a_nan_is_expected(void **state) {
  (void)state;
  fixture f;
  make(&f);
  rgh_poison_fill(&f.single[301], sizeof f.single[301]);
  f.value[301] = (double)NAN;
  const rgh_comparison c = compare(&f);
  assert_true(c.unwritten);
  assert_int_equal(c.out_of_contract, 1);
  assert_int_equal(c.index[0], 1);
  assert_int_equal(c.index[1], 1);
}

/* Every dtype, with strides: the elements between must not be looked at. */
static void dtypes_and_strides(void **state) {
  (void)state;
  static const rg_dtype dtypes[] = {RG_F32, RG_BF16, RG_F16, RG_F64};
  static double memory[3 * ELEMENTS];
  for (size_t d = 0; d < sizeof dtypes / sizeof dtypes[0]; ++d) {
    fixture f;
    make(&f);
    rgh_poison_fill(memory, sizeof memory);
    f.actual =
        (rg_tensor){.data = memory, .dtype = dtypes[d], .rank = 2, .shape = {ROWS, COLUMNS}, .stride = {2, 3 * ROWS}};
    for (int e = 0; e < ELEMENTS; ++e) {
      rg_dtype_write(dtypes[d], memory, e / COLUMNS * 2 + e % COLUMNS * 3 * ROWS, f.value[e]);
    }
    rgh_comparison c = compare(&f);
    assert_int_equal(c.out_of_contract, 0);
    rg_dtype_write(dtypes[d], memory, 1 * 2 + 7 * 3 * ROWS, 2 * f.value[COLUMNS + 7]);
    c = compare(&f);
    assert_int_equal(c.out_of_contract, 1);
    assert_int_equal(c.index[0], 1);
    assert_int_equal(c.index[1], 7);
  }
}

static void slices_add_up_in_any_order(void **state) {
  (void)state;
  fixture f;
  make(&f);
  f.single[350] = f.single[650] = 0;
  f.value[350] = f.value[650] = 1;
  f.magnitude[350] = f.magnitude[650] = 1; /* equally bad: the first is reported */
  rgh_comparison slice[ROWS], sum;
  for (int r = 0; r < ROWS; ++r) {
    const int64_t first[RG_MAX_RANK] = {r};
    rg_tensor row = f.actual;
    row.data = &f.single[r * COLUMNS];
    row.shape[0] = 1;
    const rg_reference_output reference = {f.value + r * COLUMNS, f.magnitude + r * COLUMNS, 2};
    rgh_comparison_init(&slice[r]);
    rgh_compare(&row, &reference, 5, first, &slice[r]);
  }
  static const int orders[][ROWS] = {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}};
  for (size_t o = 0; o < sizeof orders / sizeof orders[0]; ++o) {
    rgh_comparison_init(&sum);
    for (int r = 0; r < ROWS; ++r) rgh_comparison_merge(&sum, &slice[orders[o][r]]);
    assert_int_equal(sum.compared, ELEMENTS);
    assert_int_equal(sum.out_of_contract, 2);
    assert_int_equal(sum.index[0], 1);
    assert_int_equal(sum.index[1], 50);
  }
  const rgh_comparison whole = compare(&f);
  assert_int_equal(whole.index[0], 1);
  assert_int_equal(whole.index[1], 50);
}

static void nothing_to_compare(void **state) {
  (void)state;
  fixture f;
  make(&f);
  f.actual.shape[1] = 0;
  rgh_comparison c;
  rgh_comparison_init(&c);
  rgh_compare(&f.actual, &f.reference, 5, nowhere, &c);
  assert_int_equal(c.compared, 0);
  assert_int_equal(c.tensor, -1);
}

static void index_texts(void **state) {
  (void)state;
  char text[RGH_INDEX_TEXT];
  rgh_index_text((const int64_t[]){0, 3, 17}, 3, text);
  assert_string_equal(text, "[0,3,17]");
  rgh_index_text(nowhere, 0, text);
  assert_string_equal(text, "[]");
  const int64_t most[RG_MAX_RANK] = {INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN};
  rgh_index_text(most, RG_MAX_RANK, text);
  assert_true(strlen(text) < RGH_INDEX_TEXT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_values_use_no_allowance),
      cmocka_unit_test(the_share_of_the_allowance_is_reported_with_its_place),
      cmocka_unit_test(non_finite_values_must_agree),
      cmocka_unit_test(exact_elements_must_be_equal),
      cmocka_unit_test(poison_is_unwritten_even_where_a_nan_is_expected),
      cmocka_unit_test(dtypes_and_strides),
      cmocka_unit_test(slices_add_up_in_any_order),
      cmocka_unit_test(nothing_to_compare),
      cmocka_unit_test(index_texts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
