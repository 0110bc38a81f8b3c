/* src/spec/dtype.c against the formats' own properties: every 16-bit pattern, ties, subnormals, overflow. */
#include <float.h>
#include <math.h>

#include "tests/testing.h"

/* A 16-bit float format by its three numbers, independent of the code under test. */
typedef struct format {
  rg_dtype dtype;
  uint16_t one, infinity;
  double smallest, largest; /* positive and finite */
} format;

static const format formats[] = {
    {RG_F16, 0x3c00, 0x7c00, 0x1p-24, 65504.0},
    {RG_BF16, 0x3f80, 0x7f80, 0x1p-133, 0x1.fep127},
};
enum { NUM_FORMATS = sizeof formats / sizeof formats[0] };

static double value_of(rg_dtype dtype, uint16_t bits) { return rg_dtype_read(dtype, &bits, 0); }

static uint16_t bits_of(rg_dtype dtype, double value) {
  uint16_t bits;
  rg_dtype_write(dtype, &bits, 0, value);
  return bits;
}

static void every_pattern_survives_a_round_trip(void **state) {
  (void)state;
  for (int f = 0; f < NUM_FORMATS; ++f) {
    for (uint32_t p = 0; p <= UINT16_MAX; ++p) {
      const uint16_t bits = (uint16_t)p;
      const double value = value_of(formats[f].dtype, bits);
      const bool is_nan = (bits & 0x7fff) > formats[f].infinity;
      assert_int_equal(isnan(value) != 0, is_nan);
      const uint16_t back = bits_of(formats[f].dtype, value);
      if (is_nan) {
        assert_true((back & 0x7fff) > formats[f].infinity);
      } else {
        assert_int_equal(back, bits);
        assert_true(rg_dtype_round(formats[f].dtype, value) == value);
      }
    }
  }
}

/* With its ends pinned and each step a power of two that never shrinks, the order of the patterns is the format. */
static void values_rise_with_the_patterns(void **state) {
  (void)state;
  for (int f = 0; f < NUM_FORMATS; ++f) {
    const rg_dtype dtype = formats[f].dtype;
    assert_true(value_of(dtype, 0) == 0.0);
    assert_true(value_of(dtype, 1) == formats[f].smallest);
    assert_true(value_of(dtype, formats[f].one) == 1.0);
    assert_true(value_of(dtype, (uint16_t)(formats[f].infinity - 1)) == formats[f].largest);
    assert_true(value_of(dtype, formats[f].infinity) == (double)INFINITY);
    double previous_step = 0.0;
    for (uint16_t bits = 0; bits < formats[f].infinity - 1; ++bits) {
      const double step = value_of(dtype, (uint16_t)(bits + 1)) - value_of(dtype, bits);
      int exponent;
      assert_true(frexp(step, &exponent) == 0.5);
      assert_true(step >= previous_step);
      assert_true(rg_dtype_half_ulp(dtype, value_of(dtype, bits)) == step / 2);
      assert_true(value_of(dtype, bits | 0x8000) == -value_of(dtype, bits));
      previous_step = step;
    }
  }
}

static void ties_go_to_even_and_the_rest_to_the_nearest(void **state) {
  (void)state;
  for (int f = 0; f < NUM_FORMATS; ++f) {
    const rg_dtype dtype = formats[f].dtype;
    for (uint16_t low = 0; low < formats[f].infinity - 1; ++low) {
      const uint16_t high = (uint16_t)(low + 1), even = low & 1 ? high : low;
      /* Exact: the middle needs one bit more than the format has. */
      const double middle = (value_of(dtype, low) + value_of(dtype, high)) / 2;
      assert_int_equal(bits_of(dtype, middle), even);
      assert_int_equal(bits_of(dtype, nextafter(middle, 0.0)), low);
      assert_int_equal(bits_of(dtype, nextafter(middle, (double)INFINITY)), high);
      assert_int_equal(bits_of(dtype, -middle), even | 0x8000);
    }
  }
}

static void values_past_the_largest_become_infinite(void **state) {
  (void)state;
  for (int f = 0; f < NUM_FORMATS; ++f) {
    const rg_dtype dtype = formats[f].dtype;
    const double limit = formats[f].largest + rg_dtype_half_ulp(dtype, formats[f].largest);
    assert_int_equal(bits_of(dtype, nextafter(limit, 0.0)), formats[f].infinity - 1);
    assert_int_equal(bits_of(dtype, limit), formats[f].infinity);
    assert_int_equal(bits_of(dtype, -limit), formats[f].infinity | 0x8000);
    assert_int_equal(bits_of(dtype, DBL_MAX), formats[f].infinity);
    assert_int_equal(bits_of(dtype, (double)INFINITY), formats[f].infinity);
    assert_int_equal(bits_of(dtype, DBL_TRUE_MIN), 0);
    assert_int_equal(bits_of(dtype, -0.0), 0x8000);
  }
}

/* One rounding, not two: this value lies just above a bfloat16 tie by less than float32 can hold. */
static void rounding_does_not_pass_through_float32(void **state) {
  (void)state;
  const double above_tie = 1.0 + 0x1p-8 + 0x1p-40;
  assert_int_equal(bits_of(RG_BF16, above_tie), 0x3f81);
  assert_int_equal(bits_of(RG_F16, 1.0 + 0x1p-11 + 0x1p-40), 0x3c01);
}

/* Random patterns of a double, against the compiler's own conversion to float. */
static void float32_rounds_as_the_hardware_does(void **state) {
  (void)state;
  uint64_t pattern = UINT64_C(0x9e3779b97f4a7c15);
  for (int i = 0; i < 1000000; ++i) {
    pattern = pattern * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    /* Half of them near float32's range, where rounding has something to do. */
    uint64_t bits = pattern;
    if (i & 1) bits = (bits & ~(UINT64_C(0x7ff) << 52)) | (UINT64_C(1023) - 160 + pattern % 320) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    if (isnan(value)) continue;
    float written;
    rg_dtype_write(RG_F32, &written, 0, value);
    const float expected = (float)value;
    assert_memory_equal(&written, &expected, sizeof written);
    assert_true(rg_dtype_read(RG_F32, &written, 0) == (double)expected);
  }
}

static void half_an_ulp_is_half_the_spacing(void **state) {
  (void)state;
  const double values[] = {0.0, 1.0, 1.5, 0x1p-126, 0x1p-149, 3e38};
  for (size_t i = 0; i < sizeof values / sizeof values[0]; ++i) {
    const float value = (float)values[i];
    const double spacing = (double)nextafterf(value, INFINITY) - (double)value;
    assert_true(rg_dtype_half_ulp(RG_F32, value) == spacing / 2);
  }
  assert_true(rg_dtype_half_ulp(RG_F64, 1.5) == 0x1p-53);
  assert_true(rg_dtype_half_ulp(RG_F32, (double)INFINITY) == 0.0);
  assert_true(rg_dtype_half_ulp(RG_I64, 1.0) == 0.0);
  assert_true(rg_dtype_unit_roundoff(RG_F32) == 0x1p-24);
  assert_true(rg_dtype_unit_roundoff(RG_F64) == 0x1p-53);
  assert_true(rg_dtype_unit_roundoff(RG_BF16) == 0x1p-8);
  assert_true(rg_dtype_unit_roundoff(RG_F16) == 0x1p-11);
  assert_true(rg_dtype_unit_roundoff(RG_I32) == 0.0);
}

static void integers_are_read_and_written_whole(void **state) {
  (void)state;
  int64_t wide[3] = {INT64_MIN, -1, INT64_MAX};
  int32_t narrow[3] = {INT32_MIN, -1, INT32_MAX};
  for (int i = 0; i < 3; ++i) {
    assert_true(rg_dtype_read_index(RG_I64, wide, i) == wide[i]);
    assert_true(rg_dtype_read_index(RG_I32, narrow, i) == narrow[i]);
  }
  rg_dtype_write(RG_I64, wide, 1, -0x1p53);
  rg_dtype_write(RG_I32, narrow, 1, 7.0);
  assert_true(rg_dtype_read(RG_I64, wide, 1) == -0x1p53);
  assert_true(rg_dtype_read(RG_I32, narrow, 1) == 7.0);
  /* Elements count from the base in both directions. */
  assert_true(rg_dtype_read_index(RG_I64, wide + 2, -2) == INT64_MIN);
}

static void names_and_dlpack_codes_lead_back(void **state) {
  (void)state;
  for (int d = 1; d < RG_NUM_DTYPES; ++d) {
    const rg_dtype dtype = (rg_dtype)d;
    assert_int_equal(rg_dtype_from_name(rg_dtype_name(dtype)), dtype);
    assert_int_equal(rg_dtype_from_dlpack(rg_dtype_to_dlpack(dtype)), dtype);
    assert_int_equal(rg_dtype_size(dtype) * 8, rg_dtype_to_dlpack(dtype).bits);
  }
  assert_string_equal(rg_dtype_name(RG_DTYPE_NONE), "none");
  assert_int_equal(rg_dtype_from_name("none"), RG_DTYPE_NONE);
  assert_int_equal(rg_dtype_from_name("float8"), RG_DTYPE_NONE);
  assert_int_equal(rg_dtype_from_dlpack((DLDataType){kDLFloat, 32, 2}), RG_DTYPE_NONE);
  assert_int_equal(rg_dtype_from_dlpack((DLDataType){kDLUInt, 64, 1}), RG_DTYPE_NONE);
  assert_int_equal(rg_dtype_from_dlpack((DLDataType){0, 0, 0}), RG_DTYPE_NONE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_pattern_survives_a_round_trip),
      cmocka_unit_test(values_rise_with_the_patterns),
      cmocka_unit_test(ties_go_to_even_and_the_rest_to_the_nearest),
      cmocka_unit_test(values_past_the_largest_become_infinite),
      cmocka_unit_test(rounding_does_not_pass_through_float32),
      cmocka_unit_test(float32_rounds_as_the_hardware_does),
      cmocka_unit_test(half_an_ulp_is_half_the_spacing),
      cmocka_unit_test(integers_are_read_and_written_whole),
      cmocka_unit_test(names_and_dlpack_codes_lead_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
