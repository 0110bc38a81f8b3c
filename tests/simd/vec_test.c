/* The vector vocabulary without its loads and stores (see load_store_test.c): arithmetic, order of lanes, sums. */
#include "tests/simd/level_test.h"

enum { W = RG_VF_WIDTH };

static void arithmetic_is_ieee_lane_by_lane(void **state) {
  (void)state;
  uint64_t seed = 1;
  for (int round = 0; round < 20000; round++) {
    rg_real a[W], b[W], c[W], got[W];
    for (int i = 0; i < W; i++) {
      a[i] = random_bits_float(&seed);
      b[i] = random_bits_float(&seed);
      c[i] = random_bits_float(&seed);
    }
    const rg_vf va = from_lanes(a), vb = from_lanes(b), vc = from_lanes(c);
    to_lanes(got, rg_vf_add(va, vb));
    for (int i = 0; i < W; i++) assert_same_value((double)got[i], (double)(rg_real)(a[i] + b[i]));
    to_lanes(got, rg_vf_sub(va, vb));
    for (int i = 0; i < W; i++) assert_same_value((double)got[i], (double)(rg_real)(a[i] - b[i]));
    to_lanes(got, rg_vf_mul(va, vb));
    for (int i = 0; i < W; i++) assert_same_value((double)got[i], (double)(rg_real)(a[i] * b[i]));
    to_lanes(got, rg_vf_neg(va));
    for (int i = 0; i < W; i++) assert_same_value((double)got[i], (double)-a[i]);
    rg_real fnma[W];
    to_lanes(got, rg_vf_fma(va, vb, vc));
    to_lanes(fnma, rg_vf_fnma(va, vb, vc));
    for (int i = 0; i < W; i++) {
#if RG_VF_WIDTH == 1
      const rg_real product = a[i] * b[i];
      assert_same_value((double)got[i], (double)(rg_real)(product + c[i]));
      assert_same_value((double)fnma[i], (double)(rg_real)(c[i] - product));
#else
      assert_same_value((double)got[i], (double)fmaf(a[i], b[i], c[i]));
      assert_same_value((double)fnma[i], (double)fmaf(-a[i], b[i], c[i]));
#endif
    }
  }
}

static void constants_fill_every_lane(void **state) {
  (void)state;
  rg_real got[W];
  to_lanes(got, rg_vf_zero());
  for (int i = 0; i < W; i++) assert_same_value((double)got[i], 0.0);
  to_lanes(got, rg_vf_set1((rg_real)-1.5));
  for (int i = 0; i < W; i++) assert_same_value((double)got[i], -1.5);
}

static void sum_counts_every_lane_once(void **state) {
  (void)state;
  rg_real a[W];
  for (int i = 0; i < W; i++) a[i] = (rg_real)(1 << i);
  assert_true(rg_vf_sum(from_lanes(a)) == (rg_real)((1 << W) - 1));
  for (int i = 0; i < W; i++) { /* infinity and NaN get through from any lane */
    rg_real b[W];
    memcpy(b, a, sizeof a);
    b[i] = (rg_real)INFINITY;
    assert_true(isinf(rg_vf_sum(from_lanes(b))));
    b[i] = (rg_real)NAN;
    assert_true(isnan(rg_vf_sum(from_lanes(b))));
  }
}

static void deinterleave_separates_even_and_odd_elements(void **state) {
  (void)state;
  rg_real memory[2 * W], lanes[W], back[2 * W];
  for (int i = 0; i < 2 * W; i++) memory[i] = (rg_real)(i + 1);
  rg_vf even, odd, first, second;
  rg_vf_deinterleave(from_lanes(memory), from_lanes(memory + W), &even, &odd);
  to_lanes(lanes, even);
  for (int i = 0; i < W; i++) assert_true(lanes[i] == memory[2 * i]);
  to_lanes(lanes, odd);
  for (int i = 0; i < W; i++) assert_true(lanes[i] == memory[2 * i + 1]);
  rg_vf_interleave(even, odd, &first, &second);
  to_lanes(back, first);
  to_lanes(back + W, second);
  assert_memory_equal(back, memory, sizeof memory);
}

static void lookup_permutes_the_table(void **state) {
  (void)state;
  rg_real table[RG_VF_WIDTH], got[RG_VF_WIDTH];
  int32_t index[RG_VF_WIDTH];
  for (int i = 0; i < RG_VF_WIDTH; ++i) table[i] = (rg_real)(100 + i);
  for (int turn = 0; turn < RG_VF_WIDTH; ++turn) {
    for (int i = 0; i < RG_VF_WIDTH; ++i) index[i] = (3 * i + turn) % RG_VF_WIDTH;
    rg_vf_store(RG_REAL_DTYPE, got, rg_vf_lookup(table, index));
    for (int i = 0; i < RG_VF_WIDTH; ++i) assert_true(got[i] == table[index[i]]);
  }
}

static void max_abs_takes_the_larger_magnitude(void **state) {
  (void)state;
  static const rg_real b[] = {0, -1, 1, -2, 3, -(rg_real)INFINITY, (rg_real)INFINITY};
  for (size_t k = 0; k < sizeof b / sizeof *b; k++) {
    rg_real a[W], got[W];
    for (int i = 0; i < W; i++) a[i] = (rg_real)(i % 3);
    to_lanes(got, rg_vf_max_abs(from_lanes(a), rg_vf_set1(b[k])));
    for (int i = 0; i < W; i++) assert_same_value((double)got[i], fmax((double)a[i], fabs((double)b[k])));
  }
}

static void any_beyond_sees_each_lane(void **state) {
  (void)state;
  const rg_real limit = 1024;
  rg_real a[W];
  for (int i = 0; i < W; i++) a[i] = i % 2 ? limit : -limit;
  assert_false(rg_vf_any_beyond(from_lanes(a), limit));
  const rg_real beyond[] = {(rg_real)1024.001, (rg_real)-1024.001, (rg_real)INFINITY, -(rg_real)INFINITY, (rg_real)NAN};
  for (int i = 0; i < W; i++) {
    for (size_t k = 0; k < sizeof beyond / sizeof *beyond; k++) {
      rg_real b[W];
      memcpy(b, a, sizeof a);
      b[i] = beyond[k];
      assert_true(rg_vf_any_beyond(from_lanes(b), limit));
    }
  }
}

#if RG_LEVEL != RG_LEVEL_FLOAT64
static void negate_odd_looks_at_the_lowest_bit(void **state) {
  (void)state;
  for (int first = -20; first < 20; first++) {
    float k[W], got[W];
    for (int i = 0; i < W; i++) k[i] = 0x1.8p23f + (float)(first + i);
    to_lanes(got, rg_vf_negate_odd(from_lanes(k), rg_vf_set1(3)));
    for (int i = 0; i < W; i++) assert_true(got[i] == ((first + i) % 2 == 0 ? 3 : -3));
  }
}
#endif

static void addresses_count_elements(void **state) {
  (void)state;
  static const rg_dtype dtypes[] = {RG_F32, RG_BF16, RG_F16, RG_F64, RG_I32, RG_I64};
  char memory[64];
  for (size_t k = 0; k < sizeof dtypes / sizeof *dtypes; k++) {
    const rg_dtype t = dtypes[k];
    assert_int_equal(RG_SIZE(t), rg_dtype_size(t));
    assert_ptr_equal(rg_at_const(t, memory + 32, -3), memory + 32 - 3 * rg_dtype_size(t));
    assert_ptr_equal(rg_at(t, memory, 3), memory + 3 * rg_dtype_size(t));
  }
}

int main(void) {
  if (!level_runs_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
    cmocka_unit_test(arithmetic_is_ieee_lane_by_lane),
    cmocka_unit_test(constants_fill_every_lane),
    cmocka_unit_test(sum_counts_every_lane_once),
    cmocka_unit_test(deinterleave_separates_even_and_odd_elements),
    cmocka_unit_test(lookup_permutes_the_table),
    cmocka_unit_test(max_abs_takes_the_larger_magnitude),
    cmocka_unit_test(any_beyond_sees_each_lane),
#if RG_LEVEL != RG_LEVEL_FLOAT64
    cmocka_unit_test(negate_odd_looks_at_the_lowest_bit),
#endif
    cmocka_unit_test(addresses_count_elements),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
