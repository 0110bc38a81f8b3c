/* The accuracy contract as rg_dev_allowance_used states it, against numbers worked out by hand. */
#include <math.h>

#include "tests/testing.h"

static const double u = 0x1p-24; /* unit roundoff of float32 */

/* n = 256 terms: 8 + sqrt(256)/16 = 9. */
enum { TERMS = 256 };

static void float32_may_use_the_arithmetic_share_alone(void **state) {
  (void)state;
  const double reference = 2.0, magnitude = 5.0;
  const double allowed = 9 * u * magnitude + u * reference;
  assert_true(rg_dev_allowance_used(RG_F32, reference, reference, magnitude, TERMS) == 0.0);
  assert_true(rg_dev_allowance_used(RG_F32, reference + allowed, reference, magnitude, TERMS) == 1.0);
  assert_true(rg_dev_allowance_used(RG_F32, reference - allowed, reference, magnitude, TERMS) == 1.0);
  assert_true(rg_dev_allowance_used(RG_F32, reference + allowed / 2, reference, magnitude, TERMS) == 0.5);
  assert_true(rg_dev_allowance_used(RG_F32, reference + 4 * allowed, reference, magnitude, TERMS) == 4.0);
}

static void sixteen_bit_outputs_get_half_an_ulp_more(void **state) {
  (void)state;
  const double reference = 1.25, magnitude = 1.25, arithmetic = 9 * u * magnitude + u * reference;
  const struct {
    rg_dtype dtype;
    double half_ulp; /* around 1.25 */
  } formats[] = {{RG_BF16, 0x1p-8}, {RG_F16, 0x1p-11}};
  for (int f = 0; f < 2; ++f) {
    const double allowed = arithmetic + formats[f].half_ulp;
    assert_true(rg_dev_allowance_used(formats[f].dtype, reference + allowed, reference, magnitude, TERMS) == 1.0);
    assert_true(rg_dev_allowance_used(formats[f].dtype, reference + 2 * allowed, reference, magnitude, TERMS) == 2.0);
    /* The output that rounds to the nearest value is always inside. */
    const double rounded = rg_dtype_round(formats[f].dtype, 1.23456);
    assert_true(rg_dev_allowance_used(formats[f].dtype, rounded, 1.23456, magnitude, TERMS) <= 1.0);
  }
}

static void float64_is_held_to_its_own_roundoff(void **state) {
  (void)state;
  const double eps = 0x1p-53;
  assert_true(rg_dev_allowance_used(RG_F64, 1.0 + 4 * eps, 1.0, 1.0, TERMS) < 1.0);
  assert_true(rg_dev_allowance_used(RG_F64, 1.0 + 64 * eps, 1.0, 1.0, TERMS) > 1.0);
  assert_true(rg_dev_allowance_used(RG_F64, 1.0 + u, 1.0, 1.0, TERMS) > 1e6);
}

static void a_term_of_zero_allows_no_error(void **state) {
  (void)state;
  assert_true(rg_dev_allowance_used(RG_F32, 0.0, 0.0, 0.0, 0) == 0.0);
  assert_true(isinf(rg_dev_allowance_used(RG_F32, 0x1p-149, 0.0, 0.0, 0)));
}

static void exact_elements_must_be_equal(void **state) {
  (void)state;
  assert_true(rg_dev_allowance_used(RG_F32, 1.5, 1.5, RG_EXACT, 1) == 0.0);
  assert_true(isinf(rg_dev_allowance_used(RG_F32, 1.5 + 0x1p-23, 1.5, RG_EXACT, 1)));
  assert_true(isinf(rg_dev_allowance_used(RG_BF16, (double)NAN, 1.5, RG_EXACT, 1)));
  assert_true(rg_dev_allowance_used(RG_F32, (double)INFINITY, (double)INFINITY, RG_EXACT, 1) == 0.0);
}

static void non_finite_values_must_match(void **state) {
  (void)state;
  const double inf = (double)INFINITY, nan = (double)NAN;
  assert_true(rg_dev_allowance_used(RG_F32, nan, nan, nan, TERMS) == 0.0);
  assert_true(rg_dev_allowance_used(RG_F32, inf, inf, inf, TERMS) == 0.0);
  assert_true(isinf(rg_dev_allowance_used(RG_F32, -inf, inf, inf, TERMS)));
  assert_true(isinf(rg_dev_allowance_used(RG_F32, 1.0, nan, nan, TERMS)));
  assert_true(isinf(rg_dev_allowance_used(RG_F32, nan, 1.0, 1.0, TERMS)));
  assert_true(isinf(rg_dev_allowance_used(RG_F32, inf, 1.0, 1.0, TERMS)));
  assert_true(isinf(rg_dev_allowance_used(RG_F32, 1.0, inf, inf, TERMS)));
}

/* A finite reference past the output's largest value rounds to infinity, and so may the output. */
static void an_output_may_overflow_where_rounding_does(void **state) {
  (void)state;
  const double inf = (double)INFINITY;
  assert_true(rg_dev_allowance_used(RG_F16, inf, 65520.0, 65520.0, TERMS) <= 1.0);
  assert_true(rg_dev_allowance_used(RG_F16, inf, 1e6, 1e6, TERMS) <= 1.0);
  assert_true(rg_dev_allowance_used(RG_F16, -inf, -1e6, 1e6, TERMS) <= 1.0);
  assert_true(isinf(rg_dev_allowance_used(RG_F16, -inf, 1e6, 1e6, TERMS)));
  assert_true(isinf(rg_dev_allowance_used(RG_F16, inf, 60000.0, 60000.0, TERMS)));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(float32_may_use_the_arithmetic_share_alone),
      cmocka_unit_test(sixteen_bit_outputs_get_half_an_ulp_more),
      cmocka_unit_test(float64_is_held_to_its_own_roundoff),
      cmocka_unit_test(a_term_of_zero_allows_no_error),
      cmocka_unit_test(exact_elements_must_be_equal),
      cmocka_unit_test(non_finite_values_must_match),
      cmocka_unit_test(an_output_may_overflow_where_rounding_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
