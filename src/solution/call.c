/* From the arguments of the harness to a call of the operator, checked as the library checks it. */
#include <stddef.h>
#include <string.h>

#include "solution_operator.h"
#include "src/solution/solution.h"
#include "src/spec/resolve.h"

extern const rg_operator SOLUTION_CONTRACT;
extern const rg_cuda_operator SOLUTION_CUDA;

/* Room for the arguments struct of any operator, aligned for all that it holds. */
typedef union arguments_struct {
  max_align_t alignment;
  char bytes[1024];
} arguments_struct;

/* The options that the benchmark's problem fixes; of these all are choices among names. */
static rg_status set_options(char *args, rg_error *error) {
  const char *const *option = SOLUTION_CONTRACT.benchmark->options;
  for (; option != NULL && option[0] != NULL; option += 2) {
    const int p = rg_dev_find_param(&SOLUTION_CONTRACT, option[0]);
    const char *const *values = p < 0 ? NULL : SOLUTION_CONTRACT.params[p].values;
    rg_param_value value = {.choice = 0};
    while (values != NULL && values[value.choice] != NULL && strcmp(values[value.choice], option[1]) != 0) {
      ++value.choice;
    }
    if (values == NULL || values[value.choice] == NULL) {
      return rg_fail(error, RG_ERR_INTERNAL, "there is no option %s = %s", option[0], option[1]);
    }
    rg_dev_set_param(&SOLUTION_CONTRACT, args, p, value);
  }
  return RG_OK;
}

static rg_status set_number(char *args, const char *name, double number, rg_error *error) {
  const int p = rg_dev_find_param(&SOLUTION_CONTRACT, name);
  if (p < 0) return rg_fail(error, RG_ERR_INTERNAL, "there is no option %s", name);
  if (SOLUTION_CONTRACT.params[p].kind != RG_PARAM_DOUBLE) {
    return rg_fail(error, RG_ERR_INTERNAL, "option %s is no number", name);
  }
  rg_dev_set_param(&SOLUTION_CONTRACT, args, p, (rg_param_value){.number = number});
  return RG_OK;
}

rg_status rgx_run(int device, void *queue, const rgx_argument *arguments, int num_arguments, rg_error *error) {
  const rg_operator *op = &SOLUTION_CONTRACT;
  const char *const *names = op->benchmark->arguments;
  arguments_struct args;
  memset(&args, 0, sizeof args);
  int expected = 0;
  while (names[expected] != NULL) ++expected;
  if (num_arguments != expected) {
    return rg_fail(error, RG_ERR_NULL, "%s: expected %d arguments, inputs and then outputs, got %d", op->name, expected,
                   num_arguments);
  }
  if (op->args_size > sizeof args) return rg_fail(error, RG_ERR_INTERNAL, "%s has too many arguments", op->name);
  rg_status status = set_options(args.bytes, error);
  for (int i = 0; i < num_arguments && status == RG_OK; ++i) {
    const int t = rg_dev_find_tensor(op, names[i]);
    if (arguments[i].is_tensor != (t >= 0)) {
      status = rg_fail(error, RG_ERR_NULL, "%s: %s: expected a %s", op->name, names[i], t >= 0 ? "tensor" : "number");
    } else if (t >= 0) {
      rg_dev_set_tensor(op, args.bytes, t, &arguments[i].tensor);
    } else {
      status = set_number(args.bytes, names[i], arguments[i].number, error);
    }
  }
  rg_problem problem;
  if (status == RG_OK) status = rg_resolve(op, args.bytes, (DLDevice){kDLCUDA, device}, &problem, error);
  rg_cuda_context *cuda;
  if (status == RG_OK) status = rgx_device(device, queue, &cuda, error);
  if (status != RG_OK) return status;
  const rg_cuda_call call = {.cuda = cuda, .error = error};
  return SOLUTION_CUDA.run(&problem, &call);
}
