/* A wrong kernel is not timed. Every call of the library is wrapped (the linker's --wrap), so that an output can be
 * spoilt in the first call, which verification makes, or only in later ones, as a kernel would that cheats or that
 * breaks under timing. */
#include <stdlib.h>

#include "harness/timing/bench.h"
#include "tests/testing.h"

typedef enum spoil { SPOIL_NOTHING, SPOIL_ALL, SPOIL_TIMED, STRAY_TIMED } spoil;

static spoil how;
static int calls;

rg_status __real_rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args);
rg_status __wrap_rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args);

rg_status __wrap_rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args) {
  const rg_status status = __real_rg_dev_run(context, op, variant, args);
  const bool timed = calls++ > 0;
  const DLTensor *output = rg_dev_get_tensor(op, args, op->num_tensors - 1);
  float *values = (float *)((char *)output->data + output->byte_offset);
  if (how == SPOIL_ALL || (how == SPOIL_TIMED && timed)) values[1] += 1.0f;
  if (how == STRAY_TIMED && timed) values[-1] = 1.0f;
  return status;
}

/* A small case whose last tensor is a float32 output. */
static void make_case(rgh_case *item) {
  const rg_operator *op = rg_dev_operator(RG_OP_rope_2d, RG_BACKWARD);
  rgh_message why;
  rgh_case_init(item, op);
  item->name = strdup("small");
  for (int d = 0; d < op->num_dims; ++d) item->dim[d] = 8;
  if (!rgh_case_finish(item, &why)) fail_msg("%s", why.text);
}

static void bench(spoil spoiling, bool strict, rgh_measurement *measurement) {
  rg_context *context;
  rgh_case item;
  rgh_timer timer;
  rgh_message why;
  const rgh_bench_options options = {.threads = 2, .strict = strict, .budget_s = 0.05, .seed = 1};
  assert_int_equal(rg_context_create(&context, TEST_CPU, &(rg_context_options){.threads = 2}), RG_OK);
  make_case(&item);
  if (!rgh_cpu_timer_create(&timer, 1 << 20, 2, &why)) fail_msg("%s", why.text);
  how = spoiling;
  calls = 0;
  rgh_bench_case(context, &item, &timer, &options, measurement);
  timer.destroy(&timer);
  rgh_case_free(&item);
  rg_context_destroy(context);
}

static void right_kernel_is_timed(void **state) {
  (void)state;
  rgh_measurement m;
  for (int strict = 0; strict < 2; ++strict) {
    bench(SPOIL_NOTHING, strict, &m);
    if (m.verdict.status != RGH_PASS) fail_msg("%s", m.verdict.reason.text);
    assert_true(m.timed);
    assert_true(m.latency.us > 0 && m.floor.us > 0);
    assert_true(m.ratio == m.latency.us / m.floor.us);
    assert_true(m.timed_calls >= RGH_MIN_TIMED_CALLS && m.timed_calls <= RGH_TIMED_CALLS);
    assert_true(m.warmup_calls >= RGH_MIN_WARMUP_CALLS && m.warmup_calls <= RGH_WARMUP_CALLS);
    assert_int_equal(m.cost.write_bytes, 8 * 8 * 8 * 4);
  }
}

static void wrong_kernel_is_not_timed(void **state) {
  (void)state;
  rgh_measurement m;
  bench(SPOIL_ALL, false, &m);
  assert_int_equal(m.verdict.status, RGH_FAIL);
  assert_false(m.timed);
  assert_int_equal(calls, 1);
}

static void strict_sees_what_only_timed_calls_do(void **state) {
  (void)state;
  rgh_measurement m;
  bench(SPOIL_TIMED, true, &m);
  assert_int_equal(m.verdict.status, RGH_FAIL);
  assert_false(m.timed);
  assert_text_has(m.verdict.reason.text, "timed call");
  bench(STRAY_TIMED, true, &m);
  assert_int_equal(m.verdict.status, RGH_FAIL);
  assert_false(m.timed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(right_kernel_is_timed),
      cmocka_unit_test(wrong_kernel_is_not_timed),
      cmocka_unit_test(strict_sees_what_only_timed_calls_do),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
