/* The same inputs give the same bits: in every one of 100 runs, and whatever the number of threads. */
#include "harness/buffers/buffers.h"
#include "harness/cases/suite.h"
#include "tests/testing.h"

/* Digests of a case's outputs after one more run of it. */
static void run(rg_context *context, rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]) {
  const rgh_case *item = buffers->item;
  rgh_buffers_prepare(buffers);
  if (rg_dev_run(context, item->op, NULL, buffers->args) != RG_OK) {
    fail_msg("%s %s: %s", item->op->name, item->name, rg_last_error(context));
  }
  rgh_buffers_hash_outputs(buffers, hash);
}

static void compare(const rgh_case *item, const char *what, int count, const uint64_t *want, const uint64_t *got) {
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if (want[t] == got[t]) continue;
    fail_msg("%s %s: %s differs with %s %d", item->op->name, item->name, item->op->tensors[t].name, what, count);
  }
}

static void load(const char *file, rgh_suite *suite) {
  rgh_message why;
  if (!rgh_suite_load(file, suite, &why)) fail_msg("%s", why.text);
}

static void create(rgh_buffers *buffers, const rgh_case *item) {
  rgh_message why;
  if (!rgh_buffers_create(buffers, item, 7, 0, 1, &why)) fail_msg("%s", why.text);
}

static void threads_change_no_bit(const char *file) {
  static const int32_t threads[] = {1, 2, 3, 8};
  enum { COUNTS = sizeof threads / sizeof *threads };
  rg_context *context[COUNTS];
  for (int c = 0; c < COUNTS; ++c) {
    const rg_context_options options = {.threads = threads[c]};
    assert_int_equal(rg_context_create(&context[c], (DLDevice){kDLCPU, 0}, &options), RG_OK);
  }
  rgh_suite suite;
  load(file, &suite);
  assert_true(suite.num_cases > 0);
  for (int i = 0; i < suite.num_cases; ++i) {
    rgh_buffers buffers;
    create(&buffers, &suite.cases[i]);
    uint64_t want[RG_MAX_TENSORS], got[RG_MAX_TENSORS];
    run(context[0], &buffers, want);
    for (int c = 1; c < COUNTS; ++c) {
      run(context[c], &buffers, got);
      compare(&suite.cases[i], "threads:", threads[c], want, got);
    }
    rgh_buffers_destroy(&buffers);
  }
  rgh_suite_free(&suite);
  for (int c = 0; c < COUNTS; ++c) rg_context_destroy(context[c]);
}

static void threads_change_no_bit_of_edge(void **state) {
  (void)state;
  threads_change_no_bit(ROPEGRAD_SUITES "/edge.json");
}

/* Larger than those of `edge`, so that the threads really have a share each. */
static void threads_change_no_bit_of_models(void **state) {
  (void)state;
  threads_change_no_bit(ROPEGRAD_SUITES "/models.json");
}

static void a_hundred_runs_are_equal(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, (DLDevice){kDLCPU, 0}, NULL), RG_OK);
  rgh_suite suite;
  load(ROPEGRAD_SUITES "/smoke.json", &suite);
  for (int i = 0; i < suite.num_cases; ++i) {
    rgh_buffers buffers;
    create(&buffers, &suite.cases[i]);
    uint64_t want[RG_MAX_TENSORS], got[RG_MAX_TENSORS];
    run(context, &buffers, want);
    for (int again = 2; again <= 100; ++again) {
      run(context, &buffers, got);
      compare(&suite.cases[i], "run", again, want, got);
    }
    rgh_buffers_destroy(&buffers);
  }
  rgh_suite_free(&suite);
  rg_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(threads_change_no_bit_of_edge),
      cmocka_unit_test(threads_change_no_bit_of_models),
      cmocka_unit_test(a_hundred_runs_are_equal),
  };
  return cmocka_run_group_tests_name("determinism", tests, NULL, NULL);
}
