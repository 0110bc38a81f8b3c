/* The CUPTI timer over a CUPTI that hands out made-up records (fake_cupti.h) and a driver that runs nothing. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cuda/gpu_state.h"
#include "tests/cuda/fake_cupti.h"
#include "tests/testing.h"

static fake_cupti *cupti;
static rg_context *context;
static rgh_cuda *cuda;
static rgh_timer timer;
static uint64_t flush_bytes;
static uint32_t flush_value;

/* What the flush writes and how much of it: read off the memory of the fake driver, which is the host's. */
static int open_all(void **state) {
  (void)state;
  rgh_message why;
  void *library = dlopen(getenv("ROPEGRAD_CUPTI"), RTLD_NOW);
  if (library != NULL) cupti = dlsym(library, "fake_cupti_state");
  if (cupti == NULL || rg_context_create(&context, (DLDevice){kDLCUDA, 0}, NULL) != RG_OK ||
      !rgh_cuda_open(&cuda, context, 0, 0, 1, &why)) {
    fprintf(stderr, "the fake CUPTI and the fake driver must be in ROPEGRAD_CUPTI and LD_LIBRARY_PATH\n");
    return -1;
  }
  rgh_cuda_flush flush;
  if (!rgh_cuda_flush_create(&flush, cuda, false, &why)) return -1;
  flush_bytes = flush.mark.bytes;
  flush_value = flush.mark.value;
  rgh_cuda_flush_destroy(&flush);
  return 0;
}

static int close_all(void **state) {
  (void)state;
  rgh_cuda_close(cuda);
  rg_context_destroy(context);
  return 0;
}

static int begin(void **state) {
  (void)state;
  rgh_message why;
  *cupti = (fake_cupti){.at_once = FAKE_MAX_ACTIVITIES};
  if (rgh_cuda_cupti_timer_create(&timer, cuda, false, &why)) return 0;
  fprintf(stderr, "%s\n", why.text);
  return -1;
}

static int end(void **state) {
  (void)state;
  timer.destroy(&timer);
  return cupti->enabled;
}

static bool launch_nothing(void *argument, rgh_message *why) {
  (void)argument, (void)why;
  return true;
}

static void hand_out(const rgh_activity *list, int count, int at_once) {
  memcpy(cupti->activity, list, (size_t)count * sizeof *list);
  cupti->count = count;
  cupti->at_once = at_once;
  cupti->handed_out = cupti->flushes = 0;
}

#define FLUSH(begin, end) ((rgh_activity){RGH_ACTIVITY_SET, begin, end, flush_bytes, flush_value})
#define KERNEL(begin, end) ((rgh_activity){RGH_ACTIVITY_KERNEL, begin, end, 0, 0})

static double timed(void) {
  double us = -1;
  rgh_message why;
  if (!timer.time(&timer, launch_nothing, NULL, &us, &why)) fail_msg("%s", why.text);
  return us;
}

static void refused(const char *part) {
  double us;
  rgh_message why;
  assert_false(timer.time(&timer, launch_nothing, NULL, &us, &why));
  assert_text_has(why.text, part);
}

static void the_flush_is_not_counted(void **state) {
  (void)state;
  assert_string_equal(timer.method, "cupti");
  assert_int_equal(timer.library_version, 130001);
  assert_int_equal(timer.flush_bytes, flush_bytes);
  assert_int_equal(flush_bytes, 2 * 60 << 20);
  const rgh_activity one[] = {FLUSH(1000, 60000), KERNEL(70000, 71500)};
  hand_out(one, 2, 2);
  assert_true(timed() == 1.5);
  /* The timer before left something to do: a check of the context, a restored cache. */
  const rgh_activity more[] = {{RGH_ACTIVITY_COPY, 100, 200, 8, 0},
                               FLUSH(1000, 60000),
                               KERNEL(70000, 71500),
                               {RGH_ACTIVITY_COPY, 72000, 72250, 64, 0},
                               {RGH_ACTIVITY_SET, 73000, 73500, 16, 0}};
  hand_out(more, 5, 5);
  assert_true(timed() == 3.5);
}

static void late_records_are_waited_for(void **state) {
  (void)state;
  const rgh_activity list[] = {FLUSH(1000, 60000), KERNEL(70000, 71000), KERNEL(72000, 74000)};
  for (int at_once = 0; at_once <= 3; ++at_once) {
    hand_out(list, 3, at_once);
    assert_true(timed() == 4);
  }
}

static void what_is_missing_is_an_error(void **state) {
  (void)state;
  const rgh_activity lost[] = {KERNEL(70000, 71000)};
  hand_out(lost, 1, 1);
  refused("lack the memset");
  const rgh_activity idle[] = {FLUSH(1000, 60000)};
  hand_out(idle, 1, 1);
  refused("ran nothing");
  const rgh_activity good[] = {FLUSH(1000, 60000), KERNEL(70000, 71000)};
  cupti->cannot_flush = true;
  refused("CUPTI, fetching the records: made to fail");
  cupti->cannot_flush = false;
  cupti->dropped = 1;
  hand_out(good, 2, 2);
  refused("lost records");
}

static void one_timer_at_a_time(void **state) {
  (void)state;
  rgh_timer second;
  rgh_message why;
  assert_false(rgh_cuda_cupti_timer_create(&second, cuda, false, &why));
  assert_text_has(why.text, "one timer at a time");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(the_flush_is_not_counted, begin, end),
      cmocka_unit_test_setup_teardown(late_records_are_waited_for, begin, end),
      cmocka_unit_test_setup_teardown(what_is_missing_is_an_error, begin, end),
      cmocka_unit_test_setup_teardown(one_timer_at_a_time, begin, end),
  };
  return cmocka_run_group_tests(tests, open_all, close_all);
}
