#include "src/spec/rotation.h"

#include <inttypes.h>

const char *const rg_style_names[] = {
    [RG_STYLE_ROTATE_HALF] = "rotate_half", [RG_STYLE_INTERLEAVED] = "interleaved", [RG_STYLE_INTERLEAVED + 1] = NULL};

rg_status rg_resolve_rotary_dim(rg_problem *problem, int head_dim, int rotated, int64_t rotary_dim, rg_error *error) {
  const int64_t D = problem->dim[head_dim];
  if (rotary_dim < 0 || rotary_dim > D || rotary_dim % 2 != 0) {
    return rg_fail(error, RG_ERR_RANGE,
                   "%s: rotary_dim: expected an even number from 2 to head_dim = %" PRId64
                   ", or 0 for head_dim itself, got %" PRId64,
                   problem->op->function, D, rotary_dim);
  }
  problem->dim[rotated] = rotary_dim == 0 ? D : rotary_dim;
  return RG_OK;
}

rg_status rg_check_table_gradient(const rg_problem *problem, int batch, int table, int gradient, rg_error *error) {
  const int64_t B = problem->dim[batch];
  if (!rg_given(problem, table) || !rg_given(problem, gradient) || B == 1) return RG_OK;
  const int64_t table_size = problem->tensor[table].shape[0], got = problem->tensor[gradient].shape[0];
  const bool either = table_size == B && problem->tensor[table].stride[0] == 0;
  const bool known = (table_size == 1 || table_size == B) && (got == 1 || got == B);
  if (either || !known || got == table_size) return RG_OK;
  return rg_fail(error, RG_ERR_SHAPE, "%s: %s: dimension 0 (%s): expected %" PRId64 " as in %s, got %" PRId64,
                 problem->op->function, problem->op->tensors[gradient].name, problem->op->dims[batch].name, table_size,
                 problem->op->tensors[table].name, got);
}
