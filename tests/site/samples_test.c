/* From raw samples to the numbers of a record, and from two records to a verdict. */
#include "harness/evidence/samples.h"

#include <math.h>
#include <stdlib.h>

#include "harness/evidence/change.h"
#include "tests/testing.h"

static bool read(const char *json, int repetitions, rge_series *series) {
  json_t *list = json_loads(json, JSON_DECODE_ANY, NULL);
  rgh_message why;
  const bool good = rge_series_read(list, repetitions, series, &why);
  json_decref(list);
  return good;
}

static void test_series(void **state) {
  (void)state;
  rge_series series;
  assert_true(read("[1, 9, 2, 4, 4, 4, 3, 3, 30]", 3, &series));
  assert_float_equal(series.medians[0], 2, 0);
  assert_float_equal(series.medians[1], 4, 0);
  assert_float_equal(series.medians[2], 3, 0);
  assert_float_equal(series.us, 3, 1e-12);
  assert_float_equal(series.spread, 2.0 / 3, 1e-12);
  assert_float_equal(series.quantiles.low, 1, 0);
  assert_float_equal(series.quantiles.median, 4, 0);
  assert_float_equal(series.quantiles.high, 30, 0);
  assert_float_equal(series.quantiles.deviation, 1.4826, 1e-12);
  rge_series_free(&series);
  /* Distances from 5: 4 3 1 1 2 5, of which the middle two are 2 and 3. */
  assert_true(read("[1, 4, 10, 2, 6, 7]", 2, &series));
  assert_float_equal(series.quantiles.median, 5, 0);
  assert_float_equal(series.quantiles.deviation, 1.4826 * 2.5, 1e-12);
  rge_series_free(&series);
  assert_true(read("[4, 1]", 1, &series));
  assert_float_equal(series.us, 2.5, 0);
  rge_series_free(&series);
  assert_false(read("[]", 3, &series));
  assert_false(read("[1, 2, 3, 4]", 3, &series));
  assert_false(read("[1, 2]", 0, &series));
  assert_false(read("{}", 1, &series));
}

static void test_median_sorts(void **state) {
  (void)state;
  double values[1000];
  unsigned state_of_draw = 1;
  for (int i = 0; i < 1000; i++) {
    state_of_draw = state_of_draw * 1664525u + 1013904223u;
    values[i] = state_of_draw >> 8;
  }
  rge_median_of(values, 1000);
  for (int i = 1; i < 1000; i++) assert_true(values[i - 1] <= values[i]);
}

static rge_case timed(double latency_us, double floor_us, double deviation) {
  rge_case item = {.timed = true, .latency_us = latency_us, .floor_us = floor_us};
  item.ratio = floor_us > 0 ? latency_us / floor_us : 0;
  item.sample = (rge_quantiles){.median = latency_us, .deviation = deviation * latency_us, .count = 100};
  item.floor_sample = (rge_quantiles){.median = floor_us, .deviation = deviation * floor_us, .count = 100};
  return item;
}

static rge_verdict judge(rge_case before, rge_case after) { return rge_case_change(&before, &after).verdict; }

static void test_verdicts(void **state) {
  (void)state;
  assert_int_equal(judge(timed(10, 9, 0.01), timed(10.1, 9, 0.01)), RGE_SAME);
  assert_int_equal(judge(timed(10, 9, 0.01), timed(11, 9, 0.01)), RGE_SLOWER);
  assert_int_equal(judge(timed(11, 9, 0.01), timed(10, 9, 0.01)), RGE_FASTER);
  assert_int_equal(judge(timed(10, 9, 0.01), timed(15, 13.5, 0.01)), RGE_DRIFT);
  /* The machine became faster, and the kernel did not. */
  assert_int_equal(judge(timed(10, 9, 0.01), timed(9, 7, 0.01)), RGE_DRIFT);
  /* What 10 % means depends on how the samples are spread. */
  assert_int_equal(judge(timed(10, 9, 0.5), timed(11, 9, 0.5)), RGE_SAME);
  /* A wide spread hides a hundredfold change neither up nor down. */
  assert_int_equal(judge(timed(10, 9, 6), timed(1000, 9, 6)), RGE_SLOWER);
  assert_int_equal(judge(timed(1000, 9, 6), timed(10, 9, 6)), RGE_FASTER);
  /* Without a floor the time alone decides. */
  assert_int_equal(judge(timed(10, 0, 0.01), timed(15, 0, 0.01)), RGE_SLOWER);
  rge_case restless = timed(11, 9, 0.01);
  restless.spread = 0.2;
  assert_int_equal(judge(timed(10, 9, 0.01), restless), RGE_SAME);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_series),
      cmocka_unit_test(test_median_sorts),
      cmocka_unit_test(test_verdicts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
