/* How long a call took by what the GPU did: activities made up here. */
#include "harness/timing/activity.h"
#include "tests/testing.h"

static const rgh_activity_mark mark = {.bytes = 1 << 20, .value = 7};

#define MARK(begin, end) ((rgh_activity){RGH_ACTIVITY_SET, begin, end, 1 << 20, 7})
#define KERNEL(begin, end) ((rgh_activity){RGH_ACTIVITY_KERNEL, begin, end, 0, 0})

static double span(const rgh_activity *list, int count) {
  double us = -1;
  rgh_message why;
  if (!rgh_activity_span(list, count, mark, &us, &why)) fail_msg("%s", why.text);
  return us;
}

static void refused(const rgh_activity *list, int count, const char *part) {
  double us;
  rgh_message why;
  assert_false(rgh_activity_span(list, count, mark, &us, &why));
  assert_text_has(why.text, part);
}

static void one_kernel_counts_alone(void **state) {
  (void)state;
  const rgh_activity list[] = {MARK(1000, 51000), KERNEL(60000, 62500)};
  assert_true(span(list, 2) == 2.5);
}

static void several_count_from_the_first_to_the_last(void **state) {
  (void)state;
  /* In no order; a copy and a memset of the call's own are work like any other. */
  const rgh_activity list[] = {KERNEL(70000, 71000),
                               {RGH_ACTIVITY_COPY, 60000, 61000, 64, 0},
                               MARK(1000, 51000),
                               {RGH_ACTIVITY_SET, 72000, 75000, 1 << 20, 8},
                               KERNEL(62000, 80000)};
  assert_true(span(list, 5) == 20);
}

static void what_came_before_the_mark_does_not_count(void **state) {
  (void)state;
  const rgh_activity list[] = {KERNEL(100, 900),
                               {RGH_ACTIVITY_COPY, 200, 950, 1 << 20, 7},
                               {RGH_ACTIVITY_SET, 300, 980, 1 << 19, 7},
                               MARK(1000, 51000),
                               KERNEL(51000, 52000)};
  assert_true(span(list, 5) == 1);
}

static void bad_records_are_refused(void **state) {
  (void)state;
  const rgh_activity none[] = {KERNEL(1, 2)};
  refused(none, 0, "lack the memset");
  refused(none, 1, "lack the memset");
  const rgh_activity only[] = {MARK(1000, 51000)};
  refused(only, 1, "ran nothing");
  const rgh_activity early[] = {KERNEL(100, 200), MARK(1000, 51000)};
  refused(early, 2, "ran nothing");
  const rgh_activity twice[] = {MARK(1000, 51000), KERNEL(60000, 61000), MARK(70000, 80000)};
  refused(twice, 3, "twice");
  const rgh_activity across[] = {MARK(1000, 51000), KERNEL(50000, 61000)};
  refused(across, 2, "both during");
  const rgh_activity no_begin[] = {MARK(1000, 51000), KERNEL(0, 61000)};
  refused(no_begin, 2, "without its times");
  const rgh_activity no_end[] = {MARK(1000, 51000), KERNEL(60000, 0)};
  refused(no_end, 2, "without its times");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_kernel_counts_alone),
      cmocka_unit_test(several_count_from_the_first_to_the_last),
      cmocka_unit_test(what_came_before_the_mark_does_not_count),
      cmocka_unit_test(bad_records_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
