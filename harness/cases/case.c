#include "harness/cases/case.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/fill.h"

void rgh_case_init(rgh_case *item, const rg_operator *op) {
  memset(item, 0, sizeof *item);
  item->op = op;
  for (int d = 0; d < op->num_dims; ++d) item->dim[d] = -1;
  for (int p = 0; p < op->num_params; ++p) {
    if (op->params[p].kind == RG_PARAM_DOUBLE) item->param[p].number = op->params[p].suggested;
  }
  for (int t = 0; t < op->num_tensors; ++t) item->dtype[t] = op->tensors[t].suite_dtype;
}

void rgh_case_free(rgh_case *item) {
  free(item->name);
  memset(item, 0, sizeof *item);
}

/* ---- options ---- */

void rgh_case_set_params(const rgh_case *item, void *args) {
  for (int p = 0; p < item->op->num_params; ++p) rg_dev_set_param(item->op, args, p, item->param[p]);
}

bool rgh_case_in_place(const rgh_case *item) {
  return item->op->in_place_param >= 0 && item->param[item->op->in_place_param].flag;
}

uint32_t rgh_case_given(const rgh_case *item) {
  uint32_t wanted = 0, given = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if (item->op->tensors[t].role == RG_OUTPUT) wanted |= RG_BIT(t) & ~item->unwanted;
  }
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if (item->op->tensors[t].role == RG_INPUT && (item->op->tensors[t].needed_for & wanted) != 0) given |= RG_BIT(t);
  }
  return wanted | given;
}

int rgh_case_alias(const rgh_case *item, int tensor) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  const bool replaces = spec->role == RG_OUTPUT && spec->in_place && rgh_case_in_place(item);
  if (!replaces || (rgh_case_given(item) & RG_BIT(spec->in_place_of)) == 0) return -1;
  return spec->in_place_of;
}

/* ---- sizes and strides ---- */

int64_t rgh_case_shape(const rgh_case *item, int tensor, int64_t shape[RG_MAX_RANK]) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  int64_t elements = 1;
  for (int a = 0; a < spec->rank; ++a) {
    const rg_axis axis = spec->axes[a];
    shape[a] = axis.dim == RG_AXIS_FIXED ? axis.divisor : item->dim[axis.dim] / axis.divisor;
    if (a == 0 && (item->shared & RG_BIT(tensor)) != 0) shape[a] = 1;
    elements *= shape[a];
  }
  return elements;
}

/* As rgh_case_strides, for a shape that has yet to be checked: false when the memory passes RGH_MAX_ELEMENTS. */
static bool lay_out(const rgh_layout *layout, int rank, const int64_t *shape, int64_t *stride, int64_t *origin,
                    int64_t *span) {
  bool fits = true, empty = false;
  int64_t run = layout->stride_last > 0 ? layout->stride_last : 1;
  int64_t last = 0; /* the farthest element from the nearest one */
  *origin = layout->offset;
  for (int k = rank - 1; k >= 0 && fits; --k) {
    const int a = layout->reordered ? layout->order[k] : k;
    const int64_t size = shape[a] > 0 ? shape[a] : 1;
    if (shape[a] == 0) empty = true;
    stride[a] = 0;
    if ((layout->expanded & RG_BIT(a)) != 0) continue;
    int64_t next;
    fits = !__builtin_mul_overflow(run, size, &next) && !__builtin_add_overflow(next, layout->pad[a], &next) &&
           next <= RGH_MAX_ELEMENTS;
    if (!fits) break;
    last += (size - 1) * run;
    stride[a] = run;
    if ((layout->reversed & RG_BIT(a)) != 0) {
      *origin += (size - 1) * run;
      stride[a] = -run;
    }
    run = next;
  }
  *span = layout->offset + (empty ? 0 : last + 1);
  return fits && *span <= RGH_MAX_ELEMENTS;
}

int64_t rgh_case_strides(const rgh_case *item, int tensor, int64_t stride[RG_MAX_RANK], int64_t *origin) {
  int64_t shape[RG_MAX_RANK], span;
  rgh_case_shape(item, tensor, shape);
  const int laid = rgh_case_alias(item, tensor) >= 0 ? rgh_case_alias(item, tensor) : tensor;
  lay_out(&item->layout[laid], item->op->tensors[tensor].rank, shape, stride, origin, &span);
  return span;
}

int64_t rgh_case_bytes(const rgh_case *item) {
  const uint32_t given = rgh_case_given(item);
  int64_t bytes = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if ((given & RG_BIT(t)) == 0 || rgh_case_alias(item, t) >= 0) continue;
    int64_t stride[RG_MAX_RANK], origin;
    bytes += rgh_case_strides(item, t, stride, &origin) * (int64_t)rg_dtype_size(item->dtype[t]);
  }
  return bytes;
}

/* ---- checks ---- */

static bool check_dims(rgh_case *item, rgh_message *why) {
  const rg_operator *op = item->op;
  for (int d = 0; d < op->num_dims; ++d) {
    const rg_dim_spec *dim = &op->dims[d];
    if (dim->kind != RG_DIM_BOUND) continue;
    if (item->dim[d] < 0) return rgh_fail(why, "dims.%s: missing", dim->name);
    if (dim->multiple_of > 1 && (item->dim[d] == 0 || item->dim[d] % dim->multiple_of != 0)) {
      return rgh_fail(why, "dims.%s: must be a positive multiple of %d, got %" PRId64, dim->name, dim->multiple_of,
                      item->dim[d]);
    }
  }
  if (op->resolve == NULL) return true;
  void *args = calloc(1, op->args_size);
  if (args == NULL) return rgh_fail(why, "no memory");
  rgh_case_set_params(item, args);
  rg_problem problem = {.op = op, .args = args};
  for (int d = 0; d < op->num_dims; ++d) problem.dim[d] = item->dim[d] > 0 ? item->dim[d] : 0;
  const rg_status status = op->resolve(&problem, NULL);
  free(args);
  if (status != RG_OK) return rgh_fail(why, "params: the operator refuses them: %s", rg_status_string(status));
  for (int d = 0; d < op->num_dims; ++d) {
    if (op->dims[d].kind == RG_DIM_DERIVED) item->dim[d] = problem.dim[d];
  }
  return true;
}

static bool check_size(const rgh_case *item, int tensor, rgh_message *why) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  int64_t elements = 1;
  for (int a = 0; a < spec->rank; ++a) {
    const rg_axis axis = spec->axes[a];
    const int64_t size = axis.dim == RG_AXIS_FIXED ? axis.divisor : item->dim[axis.dim] / axis.divisor;
    if (__builtin_mul_overflow(elements, size, &elements) || elements > RGH_MAX_ELEMENTS) {
      return rgh_fail(why, "dims: %s would have more than 2^40 elements", spec->name);
    }
  }
  return true;
}

static bool check_layout(const rgh_case *item, int tensor, rgh_message *why) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  const rgh_layout *layout = &item->layout[tensor];
  if (layout->reordered) {
    uint32_t seen = 0;
    for (int a = 0; a < spec->rank; ++a) {
      if (layout->order[a] >= 0 && layout->order[a] < spec->rank) seen |= RG_BIT(layout->order[a]);
    }
    if (seen != RG_BIT(spec->rank) - 1) {
      return rgh_fail(why, "layouts.%s.order: must name each of the axes 0 to %d once", spec->name, spec->rank - 1);
    }
  }
  const bool written = spec->role == RG_OUTPUT;
  if (written && (layout->expanded | layout->reversed) != 0) {
    return rgh_fail(why, "layouts.%s: an output can be neither expanded nor reversed", spec->name);
  }
  int64_t shape[RG_MAX_RANK], stride[RG_MAX_RANK], origin, span;
  rgh_case_shape(item, tensor, shape);
  if (layout->offset < 0 || !lay_out(layout, spec->rank, shape, stride, &origin, &span)) {
    return rgh_fail(why, "layouts.%s: reaches over more than 2^40 elements", spec->name);
  }
  return true;
}

static bool check_in_place(const rgh_case *item, rgh_message *why) {
  for (int t = 0; t < item->op->num_tensors; ++t) {
    const int input = rgh_case_alias(item, t);
    if (input >= 0 && (item->layout[input].expanded | item->layout[input].reversed) != 0) {
      return rgh_fail(why, "layouts.%s: %s is written in place of it, so it can be neither expanded nor reversed",
                      item->op->tensors[input].name, item->op->tensors[t].name);
    }
  }
  return true;
}

bool rgh_case_finish(rgh_case *item, rgh_message *why) {
  const rg_operator *op = item->op;
  if (!check_dims(item, why)) return false;
  bool any_output = false;
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    if (spec->role == RG_OUTPUT && (item->unwanted & RG_BIT(t)) == 0) any_output = true;
    if (!rg_dtype_allowed(spec->dtypes, item->dtype[t])) {
      return rgh_fail(why, "dtypes.%s: it cannot be %s", spec->name, rg_dtype_name(item->dtype[t]));
    }
    if (!check_size(item, t, why) || !check_layout(item, t, why)) return false;
    if (spec->role == RG_INPUT && !rgh_fill_settle(item, t, why)) return false;
  }
  if (!any_output) return rgh_fail(why, "unwanted: it names every output, so there is nothing to compute");
  return check_in_place(item, why);
}

bool rgh_case_set_in_place(rgh_case *item, rgh_message *why) {
  if (item->op->in_place_param < 0) return rgh_fail(why, "%s cannot work in place", item->op->name);
  item->param[item->op->in_place_param].flag = true;
  return check_in_place(item, why);
}
