/* Contexts: creating, the options, the allocator, the last error. */
#include <stdio.h>
#include <stdlib.h>

#include "ropegrad/operators.h"
#include "tests/testing.h"

static void the_version_is_the_headers(void **state) {
  (void)state;
  char expected[32];
  snprintf(expected, sizeof expected, "%d.%d.%d", RG_VERSION_MAJOR, RG_VERSION_MINOR, RG_VERSION_PATCH);
  assert_string_equal(rg_version(), expected);
}

static void a_fresh_context_is_clean(void **state) {
  (void)state;
  rg_context *context = NULL;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  assert_non_null(context);
  assert_string_equal(rg_last_error(context), "");
  assert_int_equal(rg_context_check(context), RG_OK);
  rg_context_destroy(context);
}

static void null_is_answered_and_never_followed(void **state) {
  (void)state;
  rg_context_destroy(NULL);
  assert_int_equal(rg_context_create(NULL, TEST_CPU, NULL), RG_ERR_NULL);
  assert_int_equal(rg_context_check(NULL), RG_ERR_NULL);
  assert_true(strlen(rg_last_error(NULL)) > 0);
  rg_problem problem;
  const rg_operator *op = rg_dev_operator((rg_op_id)0, RG_BACKWARD);
  assert_int_equal(rg_dev_run(NULL, op, NULL, NULL), RG_ERR_NULL);
  assert_int_equal(rg_dev_resolve(NULL, op, NULL, &problem), RG_ERR_NULL);
#define RG_OP(name)                                                \
  assert_int_equal(rg_##name##_backward(NULL, NULL), RG_ERR_NULL); \
  assert_int_equal(rg_##name##_forward(NULL, NULL), RG_ERR_NULL);
#include "ropegrad/ops.def"
#undef RG_OP
}

/* On failure the handle is NULL, whatever it was before. */
static void refuse(DLDevice device, const rg_context_options *options, rg_status expected) {
  int marker;
  rg_context *context = (rg_context *)&marker;
  assert_int_equal(rg_context_create(&context, device, options), expected);
  assert_null(context);
}

/* Whatever this build and machine have: the answer is the one that making a context gives, and a refusal has a reason. */
static void a_device_that_is_refused_has_a_reason(void **state) {
  (void)state;
  static const DLDevice devices[] = {{kDLCPU, 0}, {kDLCPU, 1}, {kDLCUDA, 0}, {kDLCUDA, 1000}, {kDLMetal, 0}};
  for (size_t d = 0; d < sizeof devices / sizeof devices[0]; ++d) {
    char why[RG_REASON_BYTES] = "not touched";
    const rg_status status = rg_device_status(devices[d], why, sizeof why);
    rg_context *context;
    assert_int_equal(rg_context_create(&context, devices[d], NULL), status);
    rg_context_destroy(context);
    assert_int_equal(why[0] == '\0', status == RG_OK);
    assert_int_equal(rg_device_status(devices[d], NULL, 0), status);
    assert_int_equal(rg_device_status(devices[d], why, 1), status);
    assert_string_equal(why, "");
  }
}

static void *no_memory(void *user, size_t bytes) {
  (void)user;
  (void)bytes;
  return NULL;
}

static void release_nothing(void *user, void *memory) {
  (void)user;
  assert_null(memory);
}

static void bad_options_are_refused(void **state) {
  (void)state;
  refuse((DLDevice){kDLCPU, 1}, NULL, RG_ERR_DEVICE);
  refuse((DLDevice){kDLROCM, 0}, NULL, RG_ERR_DEVICE);
  refuse((DLDevice){(DLDeviceType)0, 0}, NULL, RG_ERR_DEVICE);
  refuse(TEST_CPU, &(rg_context_options){.threads = -1}, RG_ERR_RANGE);
  refuse(TEST_CPU, &(rg_context_options){.allocator = {.allocate = no_memory}}, RG_ERR_RANGE);
  refuse(TEST_CPU, &(rg_context_options){.allocator = {.release = release_nothing}}, RG_ERR_RANGE);
  refuse(TEST_CPU, &(rg_context_options){.allocator = {no_memory, release_nothing, NULL}}, RG_ERR_ALLOC);
  refuse(TEST_CPU, &(rg_context_options){.variant = "cpu.fast"}, RG_ERR_VARIANT);
  refuse(TEST_CPU, &(rg_context_options){.variant = ""}, RG_ERR_VARIANT);
}

/* Every variant can be forced where it runs, and is refused with its own status where it does not. */
static void every_variant_can_be_forced(void **state) {
  (void)state;
  const char *fastest = NULL;
  bool has_reference = false, has_scalar = false;
  for (int v = 0; v < rg_dev_num_variants(); ++v) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (strcmp(info.name, "ref") == 0) has_reference = info.status == RG_OK;
    if (strcmp(info.name, "cpu.scalar") == 0) has_scalar = info.status == RG_OK;
    assert_int_equal(strlen(info.reason) == 0, info.status == RG_OK);
    const rg_context_options options = {.variant = info.name};
    if (info.status != RG_OK) {
      assert_true(info.status == RG_ERR_NOT_BUILT || info.status == RG_ERR_HARDWARE);
      refuse((DLDevice){info.device, 0}, &options, info.status);
      continue;
    }
    if (info.device == kDLCPU) fastest = info.name;
    rg_context *context;
    assert_int_equal(rg_context_create(&context, (DLDevice){info.device, 0}, &options), RG_OK);
    assert_string_equal(rg_dev_default_variant(context), info.name);
    rg_context_destroy(context);
  }
  assert_true(has_reference && has_scalar);
  rg_context *context;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  assert_string_equal(rg_dev_default_variant(context), fastest);
  rg_context_destroy(context);
}

typedef struct ledger {
  int live, total;
} ledger;

static void *counted_allocate(void *user, size_t bytes) {
  ledger *book = user;
  ++book->live;
  ++book->total;
  return malloc(bytes);
}

static void counted_release(void *user, void *memory) {
  ledger *book = user;
  --book->live;
  free(memory);
}

static void all_memory_comes_from_the_allocator_and_goes_back(void **state) {
  (void)state;
  ledger books[2] = {{0, 0}, {0, 0}};
  rg_context *contexts[2];
  for (int i = 0; i < 2; ++i) {
    const rg_context_options options = {.threads = 3, .allocator = {counted_allocate, counted_release, &books[i]}};
    assert_int_equal(rg_context_create(&contexts[i], TEST_CPU, &options), RG_OK);
    assert_true(books[i].live > 0);
  }
  rg_context_destroy(contexts[0]);
  assert_int_equal(books[0].live, 0);
  assert_true(books[1].live > 0);
  rg_context_destroy(contexts[1]);
  assert_int_equal(books[1].live, 0);
}

/* Each context keeps its own error, and a call that succeeds clears it. */
static void errors_belong_to_their_context(void **state) {
  (void)state;
  rg_context *failed, *other;
  assert_int_equal(rg_context_create(&failed, TEST_CPU, NULL), RG_OK);
  assert_int_equal(rg_context_create(&other, TEST_CPU, NULL), RG_OK);
  const rg_operator *op = rg_dev_operator((rg_op_id)0, RG_BACKWARD);
  assert_int_equal(rg_dev_run(failed, op, NULL, NULL), RG_ERR_NULL);
  assert_text_has(rg_last_error(failed), op->name);
  assert_string_equal(rg_last_error(other), "");
  assert_int_equal(rg_context_check(failed), RG_OK);
  assert_string_equal(rg_last_error(failed), "");
  rg_context_destroy(failed);
  rg_context_destroy(other);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_version_is_the_headers),
      cmocka_unit_test(a_fresh_context_is_clean),
      cmocka_unit_test(null_is_answered_and_never_followed),
      cmocka_unit_test(a_device_that_is_refused_has_a_reason),
      cmocka_unit_test(bad_options_are_refused),
      cmocka_unit_test(every_variant_can_be_forced),
      cmocka_unit_test(all_memory_comes_from_the_allocator_and_goes_back),
      cmocka_unit_test(errors_belong_to_their_context),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
