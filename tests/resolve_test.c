/* src/spec/descriptor.c and resolve.c: every check of sizes, dtypes, devices, addresses and options, with its message.
 * Overlap has a test of its own, resolve_alias_test.c. */
#include <stdio.h>

#include "tests/toy_operator.h"

static toy_call call;

static int fresh(void **state) {
  (void)state;
  toy_valid(&call);
  return 0;
}

static DLTensor *tensor(int t) { return &call.view[t].tensor; }

static void a_right_call_is_resolved(void **state) {
  (void)state;
  tensor(TOY_X)->byte_offset = 8;
  tensor(TOY_X)->strides = NULL;
  rg_problem problem;
  rg_error error;
  assert_int_equal(toy_run(&call, &problem, &error), RG_OK);
  assert_ptr_equal(problem.op, &toy_operator);
  assert_ptr_equal(problem.args, &call.args);
  const int64_t dim[TOY_NUM_DIMS] = {TOY_B_SIZE, TOY_H_SIZE, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE};
  assert_memory_equal(problem.dim, dim, sizeof dim);
  assert_ptr_equal(problem.tensor[TOY_X].data, call.memory[TOY_X] + 8);
  const int64_t stride[] = {72, 24, 6, 1};
  assert_memory_equal(problem.tensor[TOY_X].stride, stride, sizeof stride);
  assert_int_equal(problem.tensor[TOY_ROWS].dtype, RG_I64);
}

static void every_variation_of_the_contract_is_taken(void **state) {
  (void)state;
  const rg_dtype payloads[] = {RG_BF16, RG_F16, RG_F32};
  for (int i = 0; i < 3; ++i) {
    toy_set_group(&call, 0, payloads[i]);
    toy_accepted(&call); /* float32 tables beside any payload */
    toy_set_group(&call, 1, payloads[i]);
    toy_accepted(&call);
    toy_set_group(&call, 1, RG_F32);
  }
  toy_set_group(&call, 2, RG_I32);
  toy_accepted(&call);
  for (int group = 0; group <= 4; ++group) {
    if (group == 0 || group == 1 || group == 4) toy_set_group(&call, group, RG_F64);
  }
  toy_accepted(&call);
  call.view[TOY_TABLE].shape[0] = call.view[TOY_GRAD_TABLE].shape[0] = 1;
  toy_accepted(&call);
  call.view[TOY_G].stride[0] = call.view[TOY_G].stride[3] = 0;
  call.view[TOY_X].stride[2] = -6;
  toy_accepted(&call);
  tensor(TOY_G)->device.device_type = kDLCUDAHost;
  toy_accepted(&call);
  call.args.rotary = 4;
  call.view[TOY_TABLE].shape[2] = call.view[TOY_GRAD_TABLE].shape[2] = 4;
  toy_accepted(&call);
}

static void what_no_wanted_output_needs_may_be_null(void **state) {
  (void)state;
  call.args.grad_table = NULL;
  call.args.x = NULL;
  toy_accepted(&call);
  toy_valid(&call);
  call.args.grad_x = NULL;
  call.args.table = call.args.rows = call.args.grid = call.args.angle = NULL;
  toy_accepted(&call);
  /* Given all the same, it must agree with the rest, but its data is not looked at. */
  toy_valid(&call);
  call.args.grad_table = NULL;
  tensor(TOY_X)->data = NULL;
  toy_accepted(&call);
  call.view[TOY_X].shape[1] = 4;
  toy_refused(&call, RG_ERR_SHAPE, "rg_toy_backward: x: dimension 1 (heads): expected 3 as in g, got 4");
}

static void null_is_named(void **state) {
  (void)state;
  rg_problem problem;
  rg_error error;
  assert_int_equal(rg_resolve(&toy_operator, NULL, TEST_CPU, &problem, &error), RG_ERR_NULL);
  assert_string_equal(error.text, "rg_toy_backward: args: it is NULL");
  call.args.x = NULL;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: x: it is NULL, but grad_table needs it");
  toy_valid(&call);
  call.args.g = NULL;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: g: it is NULL, but grad_x needs it");
  toy_valid(&call);
  call.args.grad_x = call.args.grad_table = NULL;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: every output is NULL, so there is nothing to compute");
  toy_valid(&call);
  tensor(TOY_ANGLE)->shape = NULL;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: angle: its shape is NULL");
  toy_valid(&call);
  tensor(TOY_ANGLE)->data = NULL;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: angle: its data is NULL");
  toy_valid(&call);
  tensor(TOY_GRAD_TABLE)->data = NULL;
  tensor(TOY_GRAD_TABLE)->byte_offset = 64;
  toy_refused(&call, RG_ERR_NULL, "rg_toy_backward: grad_table: its data is NULL");
}

static void a_wrong_rank_is_named(void **state) {
  (void)state;
  const int wrong[] = {0, 2, 4, -1, INT32_MAX};
  for (int i = 0; i < 5; ++i) {
    char text[128];
    snprintf(text, sizeof text, "rg_toy_backward: table: expected 3 dimensions, got %d", wrong[i]);
    tensor(TOY_TABLE)->ndim = wrong[i];
    toy_refused(&call, RG_ERR_RANK, text);
  }
}

static void a_wrong_size_is_named(void **state) {
  (void)state;
  const struct {
    int tensor, axis;
    int64_t size;
    const char *text;
  } rows[] = {
      {TOY_G, 3, 7, "g: dimension 3 (width) must be a positive multiple of 2, got 7"},
      {TOY_G, 3, 0, "g: dimension 3 (width) must be a positive multiple of 2, got 0"},
      {TOY_G, 3, 8, "x: dimension 3 (width): expected 8 as in g, got 6"},
      {TOY_G, 0, -1, "g: dimension 0 has the negative size -1"},
      {TOY_X, 0, 1, "x: dimension 0 (batch): expected 2 as in g, got 1"},
      {TOY_X, 2, INT64_MIN, "x: dimension 2 has the negative size -9223372036854775808"},
      {TOY_TABLE, 0, 3, "table: dimension 0 (batch): expected 2 as in g, got 3"},
      {TOY_TABLE, 0, 0, "table: dimension 0 (batch): expected 2 as in g, got 0"},
      {TOY_TABLE, 2, 4, "table: dimension 2 (rotated): expected 6, got 4"},
      {TOY_ROWS, 0, 5, "rows: dimension 0 (steps): expected 4 as in g, got 5"},
      {TOY_GRID, 1, 3, "grid: dimension 1: expected 2, got 3"},
      {TOY_ANGLE, 1, 6, "angle: dimension 1 (width/2): expected 3 as in g, got 6"},
      {TOY_GRAD_X, 1, 2, "grad_x: dimension 1 (heads): expected 3 as in g, got 2"},
      {TOY_GRAD_TABLE, 1, 3, "grad_table: dimension 1 (steps): expected 4 as in g, got 3"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char text[256];
    snprintf(text, sizeof text, "rg_toy_backward: %s", rows[i].text);
    toy_valid(&call);
    call.view[rows[i].tensor].shape[rows[i].axis] = rows[i].size;
    toy_refused(&call, RG_ERR_SHAPE, text);
  }
}

static void a_wrong_dtype_is_named(void **state) {
  (void)state;
  const struct {
    int group, tensor; /* a whole group, or a tensor where group is -1 */
    rg_dtype dtype;
    const char *text;
  } rows[] = {
      {0, -1, RG_I32, "g: expected float32, bfloat16, float16 or float64, got int32"},
      {-1, TOY_X, RG_BF16, "x: expected float32 as g, got bfloat16"},
      {-1, TOY_GRAD_X, RG_F16, "grad_x: expected float32 as g, got float16"},
      {-1, TOY_GRAD_TABLE, RG_F16, "grad_table: expected float32 as table, got float16"},
      {1, -1, RG_BF16, "table: expected float32 or the dtype of the tensor it rotates, got bfloat16"},
      {2, -1, RG_F32, "rows: expected int64 or int32, got float32"},
      {3, -1, RG_I32, "grid: expected int64, got int32"},
      {4, -1, RG_BF16, "angle: expected float32 or float64, got bfloat16"},
      {4, -1, RG_F64, "g: expected float64 as angle, got float32"},
      {0, -1, RG_F64, "table: expected float64 as g, got float32"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i) {
    char text[256];
    snprintf(text, sizeof text, "rg_toy_backward: %s", rows[i].text);
    toy_valid(&call);
    if (rows[i].group >= 0) toy_set_group(&call, rows[i].group, rows[i].dtype);
    if (rows[i].tensor >= 0) tensor(rows[i].tensor)->dtype = rg_dtype_to_dlpack(rows[i].dtype);
    toy_refused(&call, RG_ERR_DTYPE, text);
  }
  toy_valid(&call);
  tensor(TOY_G)->dtype = (DLDataType){kDLFloat, 32, 4};
  toy_refused(&call, RG_ERR_DTYPE,
              "rg_toy_backward: g: expected float32, bfloat16, float16 or float64, got the DLPack dtype {code 2 "
              "(float), bits 32, lanes 4}");
  tensor(TOY_G)->dtype = (DLDataType){10, 8, 1}; /* one of the 8-bit types that newer versions of DLPack have */
  toy_refused(&call, RG_ERR_DTYPE,
              "rg_toy_backward: g: expected float32, bfloat16, float16 or float64, got the DLPack dtype {code 10 "
              "(another), bits 8, lanes 1}");
}

static void another_device_is_named(void **state) {
  (void)state;
  tensor(TOY_ROWS)->device = (DLDevice){kDLCUDA, 3};
  toy_refused(&call, RG_ERR_DEVICE,
              "rg_toy_backward: rows: expected a tensor on DLPack device {1, 0} as the context, got {2, 3}");
}

static void a_misaligned_element_is_named(void **state) {
  (void)state;
  tensor(TOY_ROWS)->byte_offset = 4;
  toy_refused(&call, RG_ERR_STRIDE, "rg_toy_backward: rows: its first element is not aligned to the 8 bytes of int64");
  toy_valid(&call);
  tensor(TOY_GRAD_X)->data = call.memory[TOY_GRAD_X] + 2;
  toy_refused(&call, RG_ERR_STRIDE,
              "rg_toy_backward: grad_x: its first element is not aligned to the 4 bytes of float32");
  tensor(TOY_GRAD_X)->byte_offset = 2;
  toy_accepted(&call);
}

static void sizes_past_the_address_space_are_named(void **state) {
  (void)state;
  call.view[TOY_G].shape[2] = INT64_MAX / 8;
  toy_refused(&call, RG_ERR_OVERFLOW,
              "rg_toy_backward: g: dimension 2 of size 1152921504606846975 makes more elements than memory can hold");
  toy_valid(&call);
  call.view[TOY_X].stride[1] = INT64_MAX / 2;
  toy_refused(&call, RG_ERR_OVERFLOW,
              "rg_toy_backward: x: dimension 1 of size 3 and stride 4611686018427387903 reaches past the address "
              "space");
  toy_valid(&call);
  call.view[TOY_X].stride[0] = INT64_MIN;
  toy_refused(&call, RG_ERR_OVERFLOW,
              "rg_toy_backward: x: dimension 0 of size 2 and stride -9223372036854775808 reaches past the address "
              "space");
}

static void an_option_or_an_index_out_of_range_is_refused(void **state) {
  (void)state;
  call.args.rotary = 8;
  toy_refused(&call, RG_ERR_RANGE, "rotary: expected 0 to 6");
  toy_valid(&call);
  ((int64_t *)call.memory[TOY_ROWS])[2] = 100;
  toy_refused(&call, RG_ERR_RANGE, "rows[2] is past 99");
}

static void empty_tensors_need_no_memory(void **state) {
  (void)state;
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) {
    for (int a = 0; a < toy_tensors[t].rank; ++a) {
      if (toy_tensors[t].axes[a].dim == TOY_S) call.view[t].shape[a] = 0;
    }
    tensor(t)->data = NULL;
  }
  toy_accepted(&call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(a_right_call_is_resolved, fresh),
      cmocka_unit_test_setup(every_variation_of_the_contract_is_taken, fresh),
      cmocka_unit_test_setup(what_no_wanted_output_needs_may_be_null, fresh),
      cmocka_unit_test_setup(null_is_named, fresh),
      cmocka_unit_test_setup(a_wrong_rank_is_named, fresh),
      cmocka_unit_test_setup(a_wrong_size_is_named, fresh),
      cmocka_unit_test_setup(a_wrong_dtype_is_named, fresh),
      cmocka_unit_test_setup(another_device_is_named, fresh),
      cmocka_unit_test_setup(a_misaligned_element_is_named, fresh),
      cmocka_unit_test_setup(sizes_past_the_address_space_are_named, fresh),
      cmocka_unit_test_setup(an_option_or_an_index_out_of_range_is_refused, fresh),
      cmocka_unit_test_setup(empty_tensors_need_no_memory, fresh),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
