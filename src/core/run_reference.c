#include "src/core/run_reference.h"

static void write_output(const rg_tensor *output, const double *value) {
  int64_t index[RG_MAX_RANK] = {0};
  const int64_t elements = rg_tensor_elements(output);
  int64_t offset = 0;
  for (int64_t i = 0; i < elements; ++i) {
    rg_dtype_write(output->dtype, output->data, offset, value[i]);
    for (int a = output->rank - 1; a >= 0; --a) {
      offset += output->stride[a];
      if (++index[a] < output->shape[a]) break;
      offset -= index[a] * output->stride[a];
      index[a] = 0;
    }
  }
}

rg_status rg_run_reference(const rg_problem *problem, const rg_allocator *allocator, rg_error *error) {
  const rg_operator *op = problem->op;
  rg_reference_output out[RG_MAX_TENSORS] = {{0}};
  rg_status status = RG_OK;
  for (int t = 0; t < op->num_tensors; ++t) {
    if (op->tensors[t].role != RG_OUTPUT || !rg_given(problem, t)) continue;
    const size_t elements = (size_t)rg_tensor_elements(&problem->tensor[t]);
    /* One element at least: an allocator may answer NULL to a request for 0 bytes. */
    double *both = allocator->allocate(allocator->user, (2 * elements + 1) * sizeof *both);
    if (both == NULL) {
      status = rg_fail(error, RG_ERR_ALLOC, "%s: no memory for the float64 reference of %s (%zu elements)", op->name,
                       op->tensors[t].name, elements);
      break;
    }
    out[t].value = both;
    out[t].magnitude = both + elements;
  }
  if (status == RG_OK) {
    op->reference(problem, out);
    for (int t = 0; t < op->num_tensors; ++t) {
      if (out[t].value) write_output(&problem->tensor[t], out[t].value);
    }
  }
  for (int t = 0; t < op->num_tensors; ++t) {
    if (out[t].value) allocator->release(allocator->user, out[t].value);
  }
  return status;
}
