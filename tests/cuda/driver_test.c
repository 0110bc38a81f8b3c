/* The host side of the CUDA backend, over a driver that runs nothing (fake_driver.h): contexts, errors, launches. */
#include <stdlib.h>

#include "ropegrad/operators.h"
#include "ropegrad/ropegrad_cuda_dev.h"
#include "tests/cuda/fake_driver.h"
#include "tests/testing.h"

#define CUDA_DEVICE(index) ((DLDevice){kDLCUDA, index})

static fake_driver *driver;

static int find_driver(void **state) {
  (void)state;
  driver = fake_driver_find();
  return driver != NULL ? 0 : -1;
}

static int begin(void **state) {
  (void)state;
  driver->fails = NULL;
  driver->compute_capability = 90;
  driver->launches = 0;
  return 0;
}

static void assert_nothing_is_left(void) {
  for (int d = 0; d < FAKE_DEVICES; ++d) assert_int_equal(driver->retained[d], 0);
  assert_int_equal(driver->pushed, 0);
  assert_int_equal(driver->allocations, 0);
}

static void a_context_gives_back_what_it_took(void **state) {
  (void)state;
  rg_context *first, *second;
  assert_int_equal(rg_context_create(&first, CUDA_DEVICE(0), NULL), RG_OK);
  assert_int_equal(driver->retained[0], 1);
  assert_int_equal(driver->pushed, 0);
  assert_string_equal(rg_dev_default_variant(first), "cuda.sm90.dense");
  const int loaded = driver->libraries_loaded;
  assert_int_equal(loaded, RG_NUM_OPERATORS);
  assert_int_equal(rg_context_create(&second, CUDA_DEVICE(1), NULL), RG_OK);
  assert_int_equal(driver->libraries_loaded, loaded);
  assert_int_equal(rg_context_check(first), RG_OK);
  rg_context_destroy(first);
  rg_context_destroy(second);
  assert_nothing_is_left();
}

/* What a context's creation calls, and what it answers where that fails. */
static const struct {
  const char *function;
  CUresult result;
  rg_status expected;
} failures[] = {
    {FAKE_NAME(cuDeviceGetCount), CUDA_ERROR_UNKNOWN, RG_ERR_HARDWARE},
    {FAKE_NAME(cuDeviceGet), CUDA_ERROR_UNKNOWN, RG_ERR_CUDA},
    {FAKE_NAME(cuDevicePrimaryCtxRetain), CUDA_ERROR_OUT_OF_MEMORY, RG_ERR_CUDA},
    {FAKE_NAME(cuCtxPushCurrent), CUDA_ERROR_UNKNOWN, RG_ERR_CUDA},
    {FAKE_NAME(cuLibraryGetKernel), CUDA_ERROR_NOT_FOUND, RG_ERR_CUDA},
    {FAKE_NAME(cuKernelGetFunction), CUDA_ERROR_NO_BINARY_FOR_GPU, RG_ERR_HARDWARE},
    {FAKE_NAME(cuFuncGetAttribute), CUDA_ERROR_UNKNOWN, RG_ERR_CUDA},
    {FAKE_NAME(cuFuncSetAttribute), CUDA_ERROR_UNKNOWN, RG_ERR_CUDA},
    {FAKE_NAME(cuMemAlloc), CUDA_ERROR_OUT_OF_MEMORY, RG_ERR_ALLOC},
    {FAKE_NAME(cuMemsetD8Async), CUDA_ERROR_UNKNOWN, RG_ERR_CUDA},
    {FAKE_NAME(cuStreamSynchronize), CUDA_ERROR_LAUNCH_FAILED, RG_ERR_CUDA},
};

static void a_failed_creation_leaves_nothing(void **state) {
  (void)state;
  for (size_t f = 0; f < sizeof failures / sizeof failures[0]; ++f) {
    /* The first call of the function fails, then the second alone, ..., until one more than there are. */
    int failed = 0;
    for (int after = 0; after < 1000; ++after) {
      driver->fails = failures[f].function;
      driver->fails_after = after;
      driver->fails_with = failures[f].result;
      rg_context *context;
      const rg_status status = rg_context_create(&context, CUDA_DEVICE(0), NULL);
      driver->fails = NULL;
      if (status == RG_OK) {
        rg_context_destroy(context);
        break;
      }
      ++failed;
      if (status != failures[f].expected) fail_msg("%s: got %d", failures[f].function, (int)status);
      assert_null(context);
      assert_nothing_is_left();
    }
    if (failed == 0) fail_msg("%s was never called", failures[f].function);
  }
}

static void a_device_that_cannot_serve_is_refused_with_the_reason(void **state) {
  (void)state;
  char why[RG_REASON_BYTES];
  assert_int_equal(rg_device_status(CUDA_DEVICE(0), why, sizeof why), RG_OK);
  assert_string_equal(why, "");
  assert_int_equal(rg_device_status(CUDA_DEVICE(FAKE_DEVICES), why, sizeof why), RG_ERR_HARDWARE);
  assert_text_has(why, "there is no CUDA device 2");
  assert_int_equal(rg_device_status(CUDA_DEVICE(-1), why, sizeof why), RG_ERR_HARDWARE);
  driver->compute_capability = 75;
  assert_int_equal(rg_device_status(CUDA_DEVICE(1), why, sizeof why), RG_ERR_HARDWARE);
  assert_text_has(why, "CUDA device 1 has compute capability 7.5; 8.0 or higher is needed");
  assert_nothing_is_left();
}

static int memory_left; /* requests that are still granted */
static int memory_out;

static void *allocate(void *user, size_t bytes) {
  (void)user;
  if (memory_left-- <= 0) return NULL;
  ++memory_out;
  return malloc(bytes);
}

static void release(void *user, void *memory) {
  (void)user;
  --memory_out;
  free(memory);
}

static void host_memory_may_run_out(void **state) {
  (void)state;
  const rg_context_options options = {.allocator = {allocate, release, NULL}};
  for (int granted = 0; granted < 2; ++granted) {
    rg_context *context;
    memory_left = granted;
    assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), &options), RG_ERR_ALLOC);
    assert_int_equal(memory_out, 0);
    assert_nothing_is_left();
  }
}

static void only_its_own_variants_can_be_forced(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), &(rg_context_options){.variant = "cpu.scalar"}),
                   RG_ERR_VARIANT);
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), &(rg_context_options){.variant = "cuda.generic"}),
                   RG_OK);
  assert_string_equal(rg_dev_default_variant(context), "cuda.generic");
  const rg_operator *op = rg_dev_operator((rg_op_id)0, RG_BACKWARD);
  assert_int_equal(rg_dev_run(context, op, "ref", NULL), RG_ERR_VARIANT);
  rg_context_destroy(context);
  assert_nothing_is_left();
}

/* ---- a call ---- */

enum { B = 2, S = 3, D = 4, ELEMENTS = B * S * D };

typedef struct call {
  float memory[4][ELEMENTS];
  test_view grad_cos, grad_sin, idx_theta, grad_idx_theta;
  rg_rope_2d_backward_args args;
} call;

static void prepare(call *c, int device) {
  static const int64_t shape[] = {B, S, D};
  test_view *views[] = {&c->grad_cos, &c->grad_sin, &c->idx_theta, &c->grad_idx_theta};
  for (int v = 0; v < 4; ++v) {
    test_dense(views[v], c->memory[v], RG_F32, 3, shape);
    views[v]->tensor.device = CUDA_DEVICE(device);
  }
  c->args = (rg_rope_2d_backward_args){.grad_cos = &c->grad_cos.tensor,
                                       .grad_sin = &c->grad_sin.tensor,
                                       .idx_theta = &c->idx_theta.tensor,
                                       .grad_idx_theta = &c->grad_idx_theta.tensor};
}

static void a_call_launches_on_its_device_and_stream(void **state) {
  (void)state;
  rg_context *context;
  call c;
  char stream, other;
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(1), NULL), RG_OK);
  assert_int_equal(rg_context_set_stream(context, &stream), RG_OK);
  prepare(&c, 1);
  /* The caller's own current context stays current. */
  CUcontext callers = (CUcontext)(void *)&other, current;
  const rg_cuda_driver *functions = rg_dev_cuda_driver(NULL);
  assert_int_equal(functions->cuCtxPushCurrent(callers), CUDA_SUCCESS);
  assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_OK);
  assert_int_equal(functions->cuCtxPopCurrent(&current), CUDA_SUCCESS);
  assert_ptr_equal(current, callers);
  assert_int_equal(driver->launches, 1);
  assert_ptr_equal(driver->launched_in, rg_dev_cuda_primary_context(context));
  assert_ptr_equal(driver->launch.hStream, &stream);
  assert_text_has(driver->kernel, "rope_2d_f32");
  assert_int_equal(rg_context_set_stream(context, NULL), RG_OK);
  assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_OK);
  assert_null(driver->launch.hStream);
  rg_context_destroy(context);
  assert_nothing_is_left();
}

static void an_empty_call_launches_nothing(void **state) {
  (void)state;
  rg_context *context;
  call c;
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), NULL), RG_OK);
  prepare(&c, 0);
  for (DLTensor **t =
           (DLTensor *[]){&c.grad_cos.tensor, &c.grad_sin.tensor, &c.idx_theta.tensor, &c.grad_idx_theta.tensor, NULL};
       *t != NULL; ++t) {
    (*t)->shape[0] = 0;
  }
  assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_OK);
  assert_int_equal(driver->launches, 0);
  rg_context_destroy(context);
}

static void a_failed_launch_is_told_in_the_drivers_words(void **state) {
  (void)state;
  static const char *const functions[] = {FAKE_NAME(cuLaunchKernelEx), FAKE_NAME(cuCtxPushCurrent)};
  for (int f = 0; f < 2; ++f) {
    rg_context *context;
    call c;
    assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), NULL), RG_OK);
    prepare(&c, 0);
    driver->fails = functions[f];
    driver->fails_after = 0;
    driver->fails_with = CUDA_ERROR_LAUNCH_FAILED;
    assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_ERR_CUDA);
    assert_text_has(rg_last_error(context), "unspecified launch failure (CUDA_ERROR_LAUNCH_FAILED)");
    assert_int_equal(rg_context_check(context), f == 0 ? RG_OK : RG_ERR_CUDA);
    driver->fails = NULL;
    assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_OK);
    assert_string_equal(rg_last_error(context), "");
    rg_context_destroy(context);
    assert_nothing_is_left();
  }
}

static void a_tensor_elsewhere_is_refused(void **state) {
  (void)state;
  rg_context *context;
  call c;
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), NULL), RG_OK);
  prepare(&c, 0);
  c.idx_theta.tensor.device = CUDA_DEVICE(1);
  assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_ERR_DEVICE);
  assert_text_has(rg_last_error(context), "idx_theta");
  c.idx_theta.tensor.device = TEST_CPU;
  assert_int_equal(rg_rope_2d_backward(context, &c.args), RG_ERR_DEVICE);
  assert_int_equal(driver->launches, 0);
  rg_context_destroy(context);
}

/* ---- what is told later ---- */

static void a_stream_that_failed_is_told_by_check(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, CUDA_DEVICE(0), NULL), RG_OK);
  driver->fails = FAKE_NAME(cuStreamSynchronize);
  driver->fails_after = 0;
  driver->fails_with = CUDA_ERROR_LAUNCH_FAILED;
  assert_int_equal(rg_context_check(context), RG_ERR_CUDA);
  assert_text_has(rg_last_error(context), "unspecified launch failure");
  driver->fails = NULL;
  assert_int_equal(rg_context_check(context), RG_OK);
  rg_context_destroy(context);
  assert_nothing_is_left();
}

static void a_context_of_the_cpu_has_no_stream(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_set_stream(NULL, NULL), RG_ERR_NULL);
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  assert_int_equal(rg_context_set_stream(context, NULL), RG_ERR_DEVICE);
  assert_text_has(rg_last_error(context), "CPU");
  assert_null(rg_dev_cuda_primary_context(context));
  rg_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_context_gives_back_what_it_took, begin),
      cmocka_unit_test_setup(a_failed_creation_leaves_nothing, begin),
      cmocka_unit_test_setup(a_device_that_cannot_serve_is_refused_with_the_reason, begin),
      cmocka_unit_test_setup(host_memory_may_run_out, begin),
      cmocka_unit_test_setup(only_its_own_variants_can_be_forced, begin),
      cmocka_unit_test_setup(a_call_launches_on_its_device_and_stream, begin),
      cmocka_unit_test_setup(an_empty_call_launches_nothing, begin),
      cmocka_unit_test_setup(a_failed_launch_is_told_in_the_drivers_words, begin),
      cmocka_unit_test_setup(a_tensor_elsewhere_is_refused, begin),
      cmocka_unit_test_setup(a_stream_that_failed_is_told_by_check, begin),
      cmocka_unit_test_setup(a_context_of_the_cpu_has_no_stream, begin),
  };
  return cmocka_run_group_tests(tests, find_driver, NULL);
}
