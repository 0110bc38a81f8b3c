#include "src/spec/resolve.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/spec/descriptor.h"
#include "src/spec/overlap.h"

/* Some output is wanted, and what the wanted ones need is there. */
static rg_status check_given(const rg_operator *op, const rg_problem *problem, uint32_t wanted, rg_error *error) {
  if (wanted == 0) {
    return rg_fail(error, RG_ERR_NULL, "%s: every output is NULL, so there is nothing to compute", op->function);
  }
  for (int t = 0; t < op->num_tensors; ++t) {
    const uint32_t users = op->tensors[t].needed_for & wanted;
    if (op->tensors[t].role == RG_OUTPUT || rg_given(problem, t) || users == 0) continue;
    return RG_FAIL_ARGUMENT(RG_ERR_NULL, op->tensors[t].name, "it is NULL, but %s needs it",
                            op->tensors[__builtin_ctz(users)].name);
  }
  return RG_OK;
}

/* May a table of this dtype stand beside the tensors that it rotates? */
static bool suits_payload(const rg_problem *problem, rg_dtype dtype) {
  if (dtype == RG_F32) return true;
  for (int t = 0; t < problem->op->num_tensors; ++t) {
    if (problem->op->tensors[t].dtypes == RG_DTYPES_PAYLOAD && problem->tensor[t].dtype == dtype) return true;
  }
  return false;
}

static rg_status check_dtypes(const rg_operator *op, const rg_problem *problem, rg_error *error) {
  int first_double = -1, first_single = -1;
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    const rg_dtype dtype = problem->tensor[t].dtype;
    if (dtype == RG_DTYPE_NONE) continue;
    for (int other = 0; other < t; ++other) {
      if (op->tensors[other].dtype_group != spec->dtype_group || !rg_given(problem, other)) continue;
      if (problem->tensor[other].dtype == dtype) break;
      return RG_FAIL_ARGUMENT(RG_ERR_DTYPE, spec->name, "expected %s as %s, got %s",
                              rg_dtype_name(problem->tensor[other].dtype), op->tensors[other].name,
                              rg_dtype_name(dtype));
    }
    if (!rg_dtype_allowed(spec->dtypes, dtype) || (spec->dtypes == RG_DTYPES_TABLE && !suits_payload(problem, dtype))) {
      return RG_FAIL_ARGUMENT(RG_ERR_DTYPE, spec->name, "expected %s, got %s", rg_dtype_rule_text(spec->dtypes),
                              rg_dtype_name(dtype));
    }
    if (dtype == RG_F64) {
      if (first_double < 0) first_double = t;
    } else if (dtype != RG_I32 && dtype != RG_I64 && first_single < 0) {
      first_single = t;
    }
  }
  if (first_double >= 0 && first_single >= 0) {
    return RG_FAIL_ARGUMENT(RG_ERR_DTYPE, op->tensors[first_single].name, "expected float64 as %s, got %s",
                            op->tensors[first_double].name, rg_dtype_name(problem->tensor[first_single].dtype));
  }
  return RG_OK;
}

/* An enum's value must be one that has a name. */
static rg_status check_enums(const rg_operator *op, const void *args, rg_error *error) {
  for (int p = 0; p < op->num_params; ++p) {
    if (op->params[p].kind != RG_PARAM_ENUM) continue;
    const int value = *(const int *)((const char *)args + op->params[p].offset);
    int count = 0;
    while (op->params[p].values[count] != NULL) ++count;
    if (value >= 0 && value < count) continue;
    return RG_FAIL_ARGUMENT(RG_ERR_RANGE, op->params[p].name, "expected a value from 0 (%s) to %d (%s), got %d",
                            op->params[p].values[0], count - 1, op->params[p].values[count - 1], value);
  }
  return RG_OK;
}

/* Reads the sizes off the tensors: the first tensor that has a dim whole decides it. Returns which one in source[dim].
 */
static rg_status bind_dims(const rg_operator *op, rg_problem *problem, int source[RG_MAX_DIMS], rg_error *error) {
  for (int d = 0; d < op->num_dims; ++d) {
    source[d] = -1;
    problem->dim[d] = 0;
  }
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    if (!rg_given(problem, t)) continue;
    for (int a = spec->broadcast_first ? 1 : 0; a < spec->rank; ++a) {
      const rg_axis axis = spec->axes[a];
      if (axis.dim == RG_AXIS_FIXED || axis.divisor != 1 || source[axis.dim] >= 0) continue;
      const rg_dim_spec *dim = &op->dims[axis.dim];
      if (dim->kind != RG_DIM_BOUND) continue;
      const int64_t size = problem->tensor[t].shape[a];
      if (dim->multiple_of > 1 && (size % dim->multiple_of != 0 || size == 0)) {
        return RG_FAIL_ARGUMENT(RG_ERR_SHAPE, spec->name,
                                "dimension %d (%s) must be a positive multiple of %d, got %" PRId64, a, dim->name,
                                dim->multiple_of, size);
      }
      problem->dim[axis.dim] = size;
      source[axis.dim] = t;
    }
  }
  return RG_OK;
}

/* in_part: tensors are still to come, and of dims that only they decide nothing is said yet. */
static rg_status check_shapes(const rg_operator *op, const rg_problem *problem, const int source[RG_MAX_DIMS],
                              bool in_part, rg_error *error) {
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    if (!rg_given(problem, t)) continue;
    for (int a = 0; a < spec->rank; ++a) {
      const rg_axis axis = spec->axes[a];
      const int64_t got = problem->tensor[t].shape[a];
      if (axis.dim == RG_AXIS_FIXED) {
        if (got == axis.divisor) continue;
        return RG_FAIL_ARGUMENT(RG_ERR_SHAPE, spec->name, "dimension %d: expected %d, got %" PRId64, a, axis.divisor,
                                got);
      }
      if (in_part && source[axis.dim] < 0 && problem->dim[axis.dim] == 0) continue;
      const int64_t expected = problem->dim[axis.dim] / axis.divisor;
      if (got == expected || (a == 0 && spec->broadcast_first && got == 1)) continue;
      char part[16] = "";
      if (axis.divisor > 1) snprintf(part, sizeof part, "/%d", axis.divisor);
      return RG_FAIL_ARGUMENT(RG_ERR_SHAPE, spec->name, "dimension %d (%s%s): expected %" PRId64 "%s%s, got %" PRId64,
                              a, op->dims[axis.dim].name, part, expected, source[axis.dim] >= 0 ? " as in " : "",
                              source[axis.dim] >= 0 ? op->tensors[source[axis.dim]].name : "", got);
    }
  }
  return RG_OK;
}

static rg_status check_addresses(const rg_operator *op, const rg_problem *problem, uint32_t wanted, rg_error *error) {
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    const rg_tensor *tensor = &problem->tensor[t];
    if (!rg_given(problem, t) || rg_tensor_elements(tensor) == 0) continue;
    if (spec->role == RG_INPUT && (spec->needed_for & wanted) == 0) continue;
    if (tensor->data == NULL) return RG_FAIL_ARGUMENT(RG_ERR_NULL, spec->name, "%s", "its data is NULL");
    const size_t size = rg_dtype_size(tensor->dtype);
    if ((uintptr_t)tensor->data % size != 0) {
      return RG_FAIL_ARGUMENT(RG_ERR_STRIDE, spec->name, "its first element is not aligned to the %zu bytes of %s",
                              size, rg_dtype_name(tensor->dtype));
    }
  }
  return RG_OK;
}

static bool same_memory(const rg_tensor *a, const rg_tensor *b) {
  if (a->data != b->data || a->dtype != b->dtype || a->rank != b->rank) return false;
  for (int axis = 0; axis < a->rank; ++axis) {
    if (a->shape[axis] != b->shape[axis]) return false;
    if (a->shape[axis] > 1 && a->stride[axis] != b->stride[axis]) return false;
  }
  return true;
}

static rg_status check_overlap(const rg_operator *op, const rg_problem *problem, uint32_t wanted, rg_error *error) {
  const bool in_place = rg_dev_in_place(op, problem->args);
  rg_extent extent[RG_MAX_TENSORS]; /* once for each tensor: pairs there are many */
  for (int t = 0; t < op->num_tensors; ++t) {
    if (rg_given(problem, t)) extent[t] = rg_extent_of(&problem->tensor[t]);
  }
  for (int t = 0; t < op->num_tensors; ++t) {
    if ((wanted & RG_BIT(t)) == 0) continue;
    const rg_tensor_spec *spec = &op->tensors[t];
    const rg_tensor *output = &problem->tensor[t];
    if (rg_overlaps_itself(output)) {
      return RG_FAIL_ARGUMENT(RG_ERR_ALIAS, spec->name, "%s",
                              "two of its indices name the same element; an output must own each");
    }
    const bool replaces = in_place && spec->in_place;
    if (replaces && rg_given(problem, spec->in_place_of) && !same_memory(output, &problem->tensor[spec->in_place_of])) {
      return RG_FAIL_ARGUMENT(RG_ERR_ALIAS, spec->name, "with in_place it must be the very tensor %s, or NULL",
                              op->tensors[spec->in_place_of].name);
    }
    for (int other = 0; other < op->num_tensors; ++other) {
      const rg_tensor_spec *other_spec = &op->tensors[other];
      if (other == t || !rg_given(problem, other) || (replaces && other == spec->in_place_of)) continue;
      const bool unread = other_spec->role == RG_INPUT && (other_spec->needed_for & wanted) == 0;
      const bool seen = other_spec->role == RG_OUTPUT && other < t;
      if (unread || seen || !rg_extents_meet(extent[t], extent[other])) continue;
      if (!rg_overlap(output, &problem->tensor[other])) continue;
      return RG_FAIL_ARGUMENT(RG_ERR_ALIAS, spec->name, "it shares memory with %s", other_spec->name);
    }
  }
  return RG_OK;
}

/* A dim that no given tensor has whole is read off a part of it. */
static void bind_parts(const rg_operator *op, rg_problem *problem, int source[RG_MAX_DIMS]) {
  for (int t = 0; t < op->num_tensors; ++t) {
    if (!rg_given(problem, t)) continue;
    for (int a = 0; a < op->tensors[t].rank; ++a) {
      const rg_axis axis = op->tensors[t].axes[a];
      if (axis.dim == RG_AXIS_FIXED || axis.divisor == 1 || source[axis.dim] >= 0) continue;
      problem->dim[axis.dim] = problem->tensor[t].shape[a] * axis.divisor;
      source[axis.dim] = t;
    }
  }
}

static rg_status begin(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem, uint32_t *wanted,
                       rg_error *error) {
  problem->op = op;
  problem->args = args;
  if (args == NULL) return RG_FAIL_ARGUMENT(RG_ERR_NULL, "args", "%s", "it is NULL");
  return rg_read_descriptors(op, args, device, problem, wanted, error);
}

rg_status rg_resolve(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem, rg_error *error) {
  uint32_t wanted;
  int source[RG_MAX_DIMS];
  rg_status status = begin(op, args, device, problem, &wanted, error);
  if (status == RG_OK) status = check_given(op, problem, wanted, error);
  if (status == RG_OK) status = check_dtypes(op, problem, error);
  if (status == RG_OK) status = bind_dims(op, problem, source, error);
  if (status == RG_OK) status = check_enums(op, args, error);
  if (status == RG_OK && op->resolve) status = op->resolve(problem, error);
  if (status == RG_OK) status = check_shapes(op, problem, source, false, error);
  if (status == RG_OK) status = check_addresses(op, problem, wanted, error);
  if (status == RG_OK) status = check_overlap(op, problem, wanted, error);
  if (status == RG_OK && op->check_values && device.device_type == kDLCPU) status = op->check_values(problem, error);
  return status;
}

rg_status rg_bind(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem, rg_error *error) {
  uint32_t wanted;
  int source[RG_MAX_DIMS];
  rg_status status = begin(op, args, device, problem, &wanted, error);
  if (status == RG_OK) status = check_dtypes(op, problem, error);
  if (status == RG_OK) status = bind_dims(op, problem, source, error);
  if (status == RG_OK) bind_parts(op, problem, source);
  if (status == RG_OK) status = check_enums(op, args, error);
  if (status == RG_OK && op->resolve) status = op->resolve(problem, error);
  if (status == RG_OK) status = check_shapes(op, problem, source, true, error);
  return status;
}
