/* src/spec/resolve.c: rg_bind, the sizes of a call whose outputs are still to be made. */
#include "tests/toy_operator.h"

static toy_call call;

static int without_outputs(void **state) {
  (void)state;
  toy_valid(&call);
  call.args.grad_x = call.args.grad_table = NULL;
  return 0;
}

static void assert_dims(int64_t b, int64_t h, int64_t s, int64_t d, int64_t r) {
  rg_problem problem;
  rg_error error = {.text = ""};
  const rg_status status = rg_bind(&toy_operator, &call.args, TEST_CPU, &problem, &error);
  if (status != RG_OK) fail_msg("refused with %d: %s", status, error.text);
  const int64_t dim[TOY_NUM_DIMS] = {b, h, s, d, r};
  assert_memory_equal(problem.dim, dim, sizeof dim);
}

static void assert_refused(rg_status status, const char *text) {
  rg_problem problem;
  rg_error error = {.text = ""};
  assert_int_equal(rg_bind(&toy_operator, &call.args, TEST_CPU, &problem, &error), status);
  assert_string_equal(error.text, text);
}

static void inputs_and_options_decide(void **state) {
  (void)state;
  assert_dims(TOY_B_SIZE, TOY_H_SIZE, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE);
  call.args.rotary = 4;
  call.view[TOY_TABLE].shape[2] = 4;
  assert_dims(TOY_B_SIZE, TOY_H_SIZE, TOY_S_SIZE, TOY_D_SIZE, 4);
}

static void a_part_decides_where_no_whole_is_given(void **state) {
  (void)state;
  call.args.g = call.args.x = call.args.table = NULL;
  assert_dims(0, 0, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE);
  /* A whole, wherever it stands, comes before a part. */
  call.view[TOY_ANGLE].shape[1] = 1;
  assert_dims(0, 0, TOY_S_SIZE, 2, 2);
  call.args.x = &call.view[TOY_X].tensor;
  assert_refused(RG_ERR_SHAPE, "rg_toy_backward: angle: dimension 1 (width/2): expected 3 as in x, got 1");
}

static void a_table_for_every_batch_decides_no_batch(void **state) {
  (void)state;
  call.args.g = call.args.x = NULL;
  assert_dims(0, 0, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE);
  call.view[TOY_TABLE].shape[0] = 1;
  assert_dims(0, 0, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE);
}

static void what_is_wrong_by_itself_is_refused(void **state) {
  (void)state;
  call.args.rotary = 8;
  assert_refused(RG_ERR_RANGE, "rotary: expected 0 to 6");
  call.args.rotary = 0;
  call.view[TOY_X].tensor.ndim = 3;
  assert_refused(RG_ERR_RANK, "rg_toy_backward: x: expected 4 dimensions, got 3");
  call.view[TOY_X].tensor.ndim = 4;
  call.view[TOY_X].tensor.dtype = rg_dtype_to_dlpack(RG_F16);
  assert_refused(RG_ERR_DTYPE, "rg_toy_backward: x: expected float32 as g, got float16");
  call.view[TOY_X].tensor.dtype = rg_dtype_to_dlpack(RG_F32);
  call.view[TOY_X].shape[2] += 1;
  assert_refused(RG_ERR_SHAPE, "rg_toy_backward: x: dimension 2 (steps): expected 4 as in g, got 5");
  assert_int_equal(rg_dev_bind(NULL, &toy_operator, &call.args, NULL), RG_ERR_NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(inputs_and_options_decide, without_outputs),
      cmocka_unit_test_setup(a_part_decides_where_no_whole_is_given, without_outputs),
      cmocka_unit_test_setup(a_table_for_every_batch_decides_no_batch, without_outputs),
      cmocka_unit_test_setup(what_is_wrong_by_itself_is_refused, without_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
