/* src/solution/call.c, built for each operator: what arrives at the launcher is what the harness passed, by place; and what
 * is refused. The launcher and the device are made up here: no GPU is touched. */
#include "src/solution/solution.h"

#include <stdio.h>
#include <string.h>

#include "tests/testing.h"

extern const rg_operator TEST_CONTRACT;

/* All sizes; every divisor of an axis divides it. */
enum { SIZE = 8, MOST_ARGUMENTS = RG_MAX_TENSORS + RG_MAX_PARAMS, TENSOR_BYTES = 8 * SIZE * SIZE * SIZE * SIZE };
static const double NUMBER = 0.125;

/* ---- made up ---- */

static rg_problem seen;
static char seen_args[1024];
static int calls;

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  assert_non_null(call->cuda);
  assert_non_null(call->error);
  seen = *problem;
  memcpy(seen_args, problem->args, problem->op->args_size);
  calls++;
  return RG_OK;
}
extern const rg_cuda_operator fake_cuda;
const rg_cuda_operator fake_cuda = {.run = run};

rg_status rgx_device(int device, void *queue, rg_cuda_context **cuda, rg_error *error) {
  (void)error;
  assert_int_equal(device, 3);
  assert_ptr_equal(queue, &calls);
  *cuda = (rg_cuda_context *)&seen;
  return RG_OK;
}

/* ---- a call as the harness makes it ---- */

typedef struct given {
  rgx_argument arguments[MOST_ARGUMENTS];
  int64_t shape[MOST_ARGUMENTS][RG_MAX_RANK];
  int num_arguments;
} given;

static void fill(given *g) {
  static char memory[MOST_ARGUMENTS][TENSOR_BYTES];
  const char *const *names = TEST_CONTRACT.benchmark->arguments;
  memset(g, 0, sizeof *g);
  for (; names[g->num_arguments] != NULL; ++g->num_arguments) {
    const int i = g->num_arguments, t = rg_dev_find_tensor(&TEST_CONTRACT, names[i]);
    rgx_argument *argument = &g->arguments[i];
    argument->number = NUMBER;
    if (t < 0) continue;
    const rg_tensor_spec *spec = &TEST_CONTRACT.tensors[t];
    for (int a = 0; a < spec->rank; ++a) {
      const rg_axis *axis = &spec->axes[a];
      g->shape[i][a] = axis->dim == RG_AXIS_FIXED ? axis->divisor : SIZE / axis->divisor;
    }
    argument->is_tensor = true;
    argument->tensor = (DLTensor){.data = memory[i],
                                  .device = {kDLCUDA, 3},
                                  .ndim = spec->rank,
                                  .dtype = rg_dtype_to_dlpack(spec->suite_dtype),
                                  .shape = g->shape[i]};
  }
}

static rg_status pass(const given *g, rg_error *error) {
  calls = 0;
  error->text[0] = '\0';
  return rgx_run(3, &calls, g->arguments, g->num_arguments, error);
}

static void arguments_arrive_by_place(void **state) {
  (void)state;
  given g;
  rg_error error;
  fill(&g);
  if (pass(&g, &error) != RG_OK) fail_msg("%s", error.text);
  assert_int_equal(calls, 1);
  int outputs_begin = -1;
  for (int i = 0; i < g.num_arguments; ++i) {
    const char *name = TEST_CONTRACT.benchmark->arguments[i];
    const int t = rg_dev_find_tensor(&TEST_CONTRACT, name);
    if (t >= 0) {
      assert_ptr_equal(seen.tensor[t].data, g.arguments[i].tensor.data);
      if (TEST_CONTRACT.tensors[t].role == RG_OUTPUT && outputs_begin < 0) outputs_begin = i;
      assert_true((TEST_CONTRACT.tensors[t].role == RG_OUTPUT) == (outputs_begin >= 0));
      continue;
    }
    const int p = rg_dev_find_param(&TEST_CONTRACT, name);
    assert_true(p >= 0);
    double number;
    memcpy(&number, seen_args + TEST_CONTRACT.params[p].offset, sizeof number);
    assert_true(number == NUMBER);
  }
  /* Every tensor of the operator is one of the arguments. */
  for (int t = 0; t < TEST_CONTRACT.num_tensors; ++t) assert_int_not_equal(seen.tensor[t].dtype, RG_DTYPE_NONE);
}

static void the_problems_options_are_set(void **state) {
  (void)state;
  given g;
  rg_error error;
  fill(&g);
  assert_int_equal(pass(&g, &error), RG_OK);
  for (int p = 0; p < TEST_CONTRACT.num_params; ++p) {
    const rg_param_spec *spec = &TEST_CONTRACT.params[p];
    if (spec->kind != RG_PARAM_ENUM) continue;
    const char *expected = spec->values[0];
    const char *const *option = TEST_CONTRACT.benchmark->options;
    for (; option != NULL && option[0] != NULL; option += 2) {
      if (strcmp(option[0], spec->name) == 0) expected = option[1];
    }
    int value;
    memcpy(&value, seen_args + spec->offset, sizeof value);
    assert_string_equal(spec->values[value], expected);
  }
}

static void refused(const given *g, rg_status status, const char *word) {
  rg_error error;
  const rg_status got = pass(g, &error);
  if (got != status || calls != 0 || strstr(error.text, word) == NULL) {
    fail_msg("status %d, %d calls, '%s' without '%s'", (int)got, calls, error.text, word);
  }
}

static void wrong_calls_are_refused(void **state) {
  (void)state;
  given g;
  fill(&g);
  g.num_arguments--;
  refused(&g, RG_ERR_NULL, "arguments, inputs and then outputs");
  for (int i = 0; TEST_CONTRACT.benchmark->arguments[i] != NULL; ++i) {
    const char *name = TEST_CONTRACT.benchmark->arguments[i];
    fill(&g);
    g.arguments[i].is_tensor = !g.arguments[i].is_tensor;
    refused(&g, RG_ERR_NULL, name);
    fill(&g);
    if (!g.arguments[i].is_tensor) continue;
    g.arguments[i].tensor.dtype = (DLDataType){kDLFloat, 8, 1};
    refused(&g, RG_ERR_DTYPE, name);
    fill(&g);
    g.arguments[i].tensor.device = (DLDevice){kDLCPU, 0};
    refused(&g, RG_ERR_DEVICE, name);
    fill(&g);
    g.arguments[i].tensor.ndim--;
    refused(&g, RG_ERR_RANK, name);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arguments_arrive_by_place),
      cmocka_unit_test(the_problems_options_are_set),
      cmocka_unit_test(wrong_calls_are_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
