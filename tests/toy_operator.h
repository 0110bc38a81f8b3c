/* A made-up operator that uses every feature of a contract: groups of dtypes, divided, fixed and derived sizes, tables
 * that may serve every batch, an in-place output, inputs that only some outputs need. It computes nothing. */
#ifndef ROPEGRAD_TESTS_TOY_OPERATOR_H
#define ROPEGRAD_TESTS_TOY_OPERATOR_H

#include "src/spec/resolve.h"
#include "tests/testing.h"

enum { TOY_B, TOY_H, TOY_S, TOY_D, TOY_R, TOY_NUM_DIMS };
enum { TOY_G, TOY_X, TOY_TABLE, TOY_ROWS, TOY_GRID, TOY_ANGLE, TOY_GRAD_X, TOY_GRAD_TABLE, TOY_NUM_TENSORS };
enum { TOY_B_SIZE = 2, TOY_H_SIZE = 3, TOY_S_SIZE = 4, TOY_D_SIZE = 6 };

typedef struct toy_args {
  const DLTensor *g, *x, *table, *rows, *grid, *angle, *grad_x, *grad_table;
  bool in_place;
  int64_t rotary; /* 0: all of D */
} toy_args;

static const rg_dim_spec toy_dims[TOY_NUM_DIMS] = {
    [TOY_B] = {.name = "batch", .symbol = "B"},
    [TOY_H] = {.name = "heads", .symbol = "H"},
    [TOY_S] = {.name = "steps", .symbol = "S"},
    [TOY_D] = {.name = "width", .symbol = "D", .multiple_of = 2},
    [TOY_R] = {.name = "rotated", .symbol = "R", .kind = RG_DIM_DERIVED},
};

#define TOY_TENSOR(field) .name = #field, .offset = offsetof(toy_args, field)
static const rg_tensor_spec toy_tensors[TOY_NUM_TENSORS] = {
    [TOY_G] = {TOY_TENSOR(g), .rank = 4, .axes = {{TOY_B, 1}, {TOY_H, 1}, {TOY_S, 1}, {TOY_D, 1}},
               .dtypes = RG_DTYPES_PAYLOAD, .needed_for = RG_BIT(TOY_GRAD_X) | RG_BIT(TOY_GRAD_TABLE)},
    [TOY_X] = {TOY_TENSOR(x), .rank = 4, .axes = {{TOY_B, 1}, {TOY_H, 1}, {TOY_S, 1}, {TOY_D, 1}},
               .dtypes = RG_DTYPES_PAYLOAD, .needed_for = RG_BIT(TOY_GRAD_TABLE)},
    [TOY_TABLE] = {TOY_TENSOR(table), .rank = 3, .axes = {{TOY_B, 1}, {TOY_S, 1}, {TOY_R, 1}}, .dtype_group = 1,
                   .dtypes = RG_DTYPES_TABLE, .broadcast_first = true, .needed_for = RG_BIT(TOY_GRAD_X)},
    [TOY_ROWS] = {TOY_TENSOR(rows), .rank = 1, .axes = {{TOY_S, 1}}, .dtype_group = 2, .dtypes = RG_DTYPES_INDEX,
                  .needed_for = RG_BIT(TOY_GRAD_X)},
    [TOY_GRID] = {TOY_TENSOR(grid), .rank = 2, .axes = {{TOY_S, 1}, {RG_AXIS_FIXED, 2}}, .dtype_group = 3,
                  .dtypes = RG_DTYPES_INT64, .needed_for = RG_BIT(TOY_GRAD_X)},
    [TOY_ANGLE] = {TOY_TENSOR(angle), .rank = 2, .axes = {{TOY_S, 1}, {TOY_D, 2}}, .dtype_group = 4,
                   .dtypes = RG_DTYPES_ANGLE, .needed_for = RG_BIT(TOY_GRAD_X)},
    [TOY_GRAD_X] = {TOY_TENSOR(grad_x), .role = RG_OUTPUT, .rank = 4,
                    .axes = {{TOY_B, 1}, {TOY_H, 1}, {TOY_S, 1}, {TOY_D, 1}}, .dtypes = RG_DTYPES_PAYLOAD,
                    .in_place = true, .in_place_of = TOY_G},
    [TOY_GRAD_TABLE] = {TOY_TENSOR(grad_table), .role = RG_OUTPUT, .rank = 3,
                        .axes = {{TOY_B, 1}, {TOY_S, 1}, {TOY_R, 1}}, .dtype_group = 1, .dtypes = RG_DTYPES_TABLE,
                        .broadcast_first = true},
};
#undef TOY_TENSOR

static const rg_param_spec toy_params[] = {
    {.name = "in_place", .kind = RG_PARAM_BOOL, .offset = offsetof(toy_args, in_place)},
    {.name = "rotary", .kind = RG_PARAM_INT64, .offset = offsetof(toy_args, rotary)},
};

static rg_status toy_resolve(rg_problem *problem, rg_error *error) {
  const toy_args *args = problem->args;
  if (args->rotary < 0 || args->rotary > problem->dim[TOY_D]) {
    return rg_fail(error, RG_ERR_RANGE, "rotary: expected 0 to %d", (int)problem->dim[TOY_D]);
  }
  problem->dim[TOY_R] = args->rotary > 0 ? args->rotary : problem->dim[TOY_D];
  return RG_OK;
}

static rg_status toy_check_values(const rg_problem *problem, rg_error *error) {
  for (int64_t s = 0; s < problem->dim[TOY_S]; ++s) {
    const rg_tensor *rows = &problem->tensor[TOY_ROWS];
    if (rg_given(problem, TOY_ROWS) && rg_dtype_read_index(rows->dtype, rows->data, s * rows->stride[0]) > 99) {
      return rg_fail(error, RG_ERR_RANGE, "rows[%d] is past 99", (int)s);
    }
  }
  return RG_OK;
}

static const rg_operator toy_operator = {
    .name = "toy",
    .function = "rg_toy_backward",
    .direction = RG_BACKWARD,
    .args_size = sizeof(toy_args),
    .dims = toy_dims,
    .num_dims = TOY_NUM_DIMS,
    .tensors = toy_tensors,
    .num_tensors = TOY_NUM_TENSORS,
    .params = toy_params,
    .num_params = 2,
    .in_place_param = 0,
    .resolve = toy_resolve,
    .check_values = toy_check_values,
};

/* A call that is right in every way: each test breaks one thing. */
typedef struct toy_call {
  test_view view[TOY_NUM_TENSORS];
  toy_args args;
  /* Bytes of each tensor: the largest, g, has 2*3*4*6 elements of 8 bytes. */
  _Alignas(64) char memory[TOY_NUM_TENSORS][2048];
} toy_call;

static inline void toy_valid(toy_call *call) {
  static const rg_dtype dtypes[TOY_NUM_TENSORS] = {RG_F32, RG_F32, RG_F32, RG_I64, RG_I64, RG_F32, RG_F32, RG_F32};
  static const int64_t dim[TOY_NUM_DIMS] = {TOY_B_SIZE, TOY_H_SIZE, TOY_S_SIZE, TOY_D_SIZE, TOY_D_SIZE};
  memset(call, 0, sizeof *call);
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) {
    const rg_tensor_spec *spec = &toy_tensors[t];
    int64_t shape[RG_MAX_RANK];
    for (int a = 0; a < spec->rank; ++a) {
      const rg_axis axis = spec->axes[a];
      shape[a] = axis.dim == RG_AXIS_FIXED ? axis.divisor : dim[axis.dim] / axis.divisor;
    }
    test_dense(&call->view[t], call->memory[t], dtypes[t], spec->rank, shape);
    rg_dev_set_tensor(&toy_operator, &call->args, t, &call->view[t].tensor);
  }
}

/* Gives a whole dtype group another dtype. */
static inline void toy_set_group(toy_call *call, int group, rg_dtype dtype) {
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) {
    if (toy_tensors[t].dtype_group == group) call->view[t].tensor.dtype = rg_dtype_to_dlpack(dtype);
  }
}

static inline rg_status toy_run(const toy_call *call, rg_problem *problem, rg_error *error) {
  error->text[0] = '\0';
  return rg_resolve(&toy_operator, &call->args, TEST_CPU, problem, error);
}

static inline void toy_accepted(const toy_call *call) {
  rg_problem problem;
  rg_error error;
  const rg_status status = toy_run(call, &problem, &error);
  if (status != RG_OK) fail_msg("refused with %d: %s", status, error.text);
  assert_string_equal(error.text, "");
}

/* The call is refused with `status`, the whole message is `text`, and no byte of any tensor has changed. */
static inline void toy_refused(const toy_call *call, rg_status status, const char *text) {
  static toy_call before;
  memcpy(&before, call, sizeof before);
  rg_problem problem;
  rg_error error;
  const rg_status got = toy_run(call, &problem, &error);
  assert_string_equal(error.text, text);
  assert_int_equal(got, status);
  assert_memory_equal(call, &before, sizeof before);
}

#endif
