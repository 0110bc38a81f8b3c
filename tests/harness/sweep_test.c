/* The sweep finds the fastest of many copies although single times are noisy, and keeps to its budget. */
#include <stdlib.h>
#include <time.h>

#include "harness/timing/floor.h"
#include "harness/timing/sweep.h"
#include "tests/testing.h"

typedef struct bench {
  double us[RGH_MAX_FLOOR_COPIES]; /* what each copy takes, noise apart */
  int calls[RGH_MAX_FLOOR_COPIES];
  double noise;
  long sleep_ns;
  int fails_at; /* this call of all; 0: none */
  int all_calls;
  uint32_t random;
} bench;

static bool time_copy(void *argument, int copy, double *us, rgh_message *why) {
  bench *b = argument;
  b->random = b->random * 1664525 + 1013904223;
  *us = b->us[copy] * (1 + b->noise * (b->random >> 8) / (1 << 24));
  b->calls[copy]++;
  if (b->sleep_ns > 0) nanosleep(&(struct timespec){.tv_nsec = b->sleep_ns}, NULL);
  return ++b->all_calls != b->fails_at || rgh_fail(why, "the copy broke");
}

static int sweep(bench *b, int num_copies, double budget_s, int most, int *finalist) {
  rgh_message why;
  int count = most;
  if (!rgh_sweep(num_copies, budget_s, time_copy, b, finalist, &count, &why)) fail_msg("%s", why.text);
  return count;
}

static void the_fastest_are_found(void **state) {
  (void)state;
  bench b = {.noise = 0.03, .random = 5};
  for (int c = 0; c < RGH_MAX_FLOOR_COPIES; ++c) b.us[c] = 10 + (c * 37 % 101);
  b.us[93] = 9;
  b.us[17] = 9.5;
  int finalist[RGH_MAX_FINALISTS];
  assert_int_equal(sweep(&b, RGH_MAX_FLOOR_COPIES, 0, RGH_MAX_FINALISTS, finalist), RGH_MAX_FINALISTS);
  assert_int_equal(finalist[0], 93);
  assert_int_equal(finalist[1], 17);
  /* Whoever is far behind is not timed again. */
  for (int c = 0; c < RGH_MAX_FLOOR_COPIES; ++c) {
    assert_true(b.calls[c] >= 1);
    if (b.us[c] > 20) assert_int_equal(b.calls[c], 1);
  }
  assert_true(b.calls[93] >= 9);
}

static void fewer_copies_than_finalists(void **state) {
  (void)state;
  bench b = {.us = {3, 2}};
  int finalist[RGH_MAX_FINALISTS];
  assert_int_equal(sweep(&b, 2, 0, RGH_MAX_FINALISTS, finalist), 1); /* the other is too far behind */
  assert_int_equal(finalist[0], 1);
  b = (bench){.us = {2.1, 2}};
  assert_int_equal(sweep(&b, 2, 0, RGH_MAX_FINALISTS, finalist), 2);
  assert_int_equal(finalist[0], 1);
}

static void the_budget_ends_it(void **state) {
  (void)state;
  bench b = {.sleep_ns = 1000000};
  for (int c = 0; c < 10; ++c) b.us[c] = 5;
  int finalist[2];
  assert_int_equal(sweep(&b, 10, 0.001, 2, finalist), 2);
  assert_int_equal(b.all_calls, 10); /* one round, which took ten times the budget */
}

static void a_failure_is_told(void **state) {
  (void)state;
  bench b = {.us = {1, 1, 1}, .fails_at = 5};
  int finalist[2], count = 2;
  rgh_message why;
  assert_false(rgh_sweep(3, 0, time_copy, &b, finalist, &count, &why));
  assert_text_has(why.text, "the copy broke");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_fastest_are_found),
      cmocka_unit_test(fewer_copies_than_finalists),
      cmocka_unit_test(the_budget_ends_it),
      cmocka_unit_test(a_failure_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
