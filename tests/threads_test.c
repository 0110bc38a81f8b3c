/* Several host threads, each with contexts of its own, at the same time: every result has the bits that it has alone,
 * and every error stays with its context. The `tsan` preset runs this under ThreadSanitizer. */
#include <pthread.h>
#include <stdlib.h>

#include "harness/buffers/buffers.h"
#include "harness/cases/suite.h"
#include "tests/testing.h"

/* A call on three threads takes them all from three times 64 KiB on; larger ones only take longer. */
enum { HOST_THREADS = 4, ROUNDS = 3, CALL_THREADS = 3, LEAST_BYTES = 1 << 18 };

/* Of one operator: a case that its threads share, and the digests of its outputs. */
typedef struct work {
  const rgh_case *item;
  uint64_t hash[RG_MAX_TENSORS];
} work;

static rgh_suite suite;
static work works[RG_NUM_OPERATORS];

/* "" or what went wrong: cmocka's own checks belong to the main thread. */
static void run(rg_context *context, const rgh_case *item, uint64_t hash[RG_MAX_TENSORS], rgh_message *why) {
  rgh_buffers buffers;
  if (!rgh_buffers_create(&buffers, item, 7, 0, 1, why)) return;
  if (rg_dev_run(context, item->op, NULL, buffers.args) != RG_OK) rgh_fail(why, "%s", rg_last_error(context));
  rgh_buffers_hash_outputs(&buffers, hash);
  rgh_buffers_destroy(&buffers);
}

static void check_round(int first, rgh_message *why) {
  rg_context *context;
  const rg_context_options options = {.threads = CALL_THREADS};
  if (rg_context_create(&context, TEST_CPU, &options) != RG_OK) {
    rgh_fail(why, "no context");
    return;
  }
  for (int i = 0; i < RG_NUM_OPERATORS && why->text[0] == '\0'; ++i) {
    const work *expected = &works[(first + i) % RG_NUM_OPERATORS];
    const rg_operator *op = expected->item->op;
    uint64_t hash[RG_MAX_TENSORS];
    run(context, expected->item, hash, why);
    if (memcmp(hash, expected->hash, sizeof hash) != 0) rgh_fail(why, "%s: other bits than alone", op->name);
    if (rg_dev_run(context, op, NULL, NULL) != RG_ERR_NULL || strstr(rg_last_error(context), op->function) == NULL) {
      rgh_fail(why, "%s: the error is '%s'", op->name, rg_last_error(context));
    }
  }
  rg_context_destroy(context);
}

typedef struct host_thread {
  pthread_t thread;
  int number;
  rgh_message why;
} host_thread;

static void *check_rounds(void *argument) {
  host_thread *own = argument;
  char reason[RG_REASON_BYTES];
  for (int round = 0; round < ROUNDS && own->why.text[0] == '\0'; ++round) {
    rg_device_status((DLDevice){kDLCUDA, 0}, reason, sizeof reason); /* whatever it is, it is asked for by all */
    check_round(own->number + round, &own->why);
  }
  return NULL;
}

static void contexts_do_not_disturb_each_other(void **state) {
  (void)state;
  host_thread threads[HOST_THREADS] = {0};
  for (int t = 0; t < HOST_THREADS; ++t) {
    threads[t].number = t;
    assert_int_equal(pthread_create(&threads[t].thread, NULL, check_rounds, &threads[t]), 0);
  }
  for (int t = 0; t < HOST_THREADS; ++t) assert_int_equal(pthread_join(threads[t].thread, NULL), 0);
  for (int t = 0; t < HOST_THREADS; ++t) assert_string_equal(threads[t].why.text, "");
}

static int choose_cases(void **state) {
  (void)state;
  rgh_message why = {.text = ""};
  rg_context *context;
  if (!rgh_suite_load(ROPEGRAD_SUITES "/models.json", &suite, &why)) fail_msg("%s", why.text);
  assert_int_equal(rg_context_create(&context, TEST_CPU, &(rg_context_options){.threads = 1}), RG_OK);
  for (int index = 0; index < RG_NUM_OPERATORS; ++index) {
    work *chosen = &works[index];
    for (int c = 0; c < suite.num_cases; ++c) {
      const rgh_case *item = &suite.cases[c];
      if (item->op != rg_dev_operator_at(index) || rgh_case_bytes(item) < LEAST_BYTES) continue;
      if (chosen->item == NULL || rgh_case_bytes(item) < rgh_case_bytes(chosen->item)) chosen->item = item;
    }
    if (chosen->item == NULL) fail_msg("the suite has no case of %s", rg_dev_operator_at(index)->name);
    run(context, chosen->item, chosen->hash, &why);
    assert_string_equal(why.text, "");
  }
  rg_context_destroy(context);
  return 0;
}

static int free_cases(void **state) {
  (void)state;
  rgh_suite_free(&suite);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(contexts_do_not_disturb_each_other)};
  return cmocka_run_group_tests(tests, choose_cases, free_cases);
}
