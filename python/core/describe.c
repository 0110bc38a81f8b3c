#include "python/core/core.h"

static const char *const dim_kinds[] = {
    [RG_DIM_BOUND] = "bound", [RG_DIM_DERIVED] = "derived", [RG_DIM_DESCRIPTIVE] = "descriptive"};
static const char *const param_kinds[] = {
    [RG_PARAM_DOUBLE] = "double", [RG_PARAM_INT64] = "int64", [RG_PARAM_BOOL] = "bool", [RG_PARAM_ENUM] = "enum"};
static const char *const dtype_rules[] = {
    [RG_DTYPES_PAYLOAD] = "payload", [RG_DTYPES_TABLE] = "table", [RG_DTYPES_ANGLE] = "angle",
    [RG_DTYPES_INT64] = "int64",     [RG_DTYPES_INDEX] = "index", [RG_DTYPES_POSITION] = "position"};

/* A tuple of describe(op, 0), ..., describe(op, count - 1). */
static PyObject *describe_all(const rg_operator *op, int count, PyObject *(*describe)(const rg_operator *, int)) {
  PyObject *tuple = PyTuple_New(count);
  for (int i = 0; tuple != NULL && i < count; ++i) {
    PyObject *item = describe(op, i);
    if (item == NULL || PyTuple_SetItem(tuple, i, item) != 0) {
      Py_DECREF(tuple);
      return NULL;
    }
  }
  return tuple;
}

static PyObject *describe_dim(const rg_operator *op, int d) {
  const rg_dim_spec *dim = &op->dims[d];
  return Py_BuildValue("{s:s,s:s,s:i,s:s}", "name", dim->name, "symbol", dim->symbol, "multiple_of",
                       dim->multiple_of > 1 ? (int)dim->multiple_of : 1, "kind", dim_kinds[dim->kind]);
}

static PyObject *describe_axes(const rg_tensor_spec *tensor) {
  PyObject *axes = PyTuple_New(tensor->rank);
  for (int a = 0; axes != NULL && a < tensor->rank; ++a) {
    PyObject *axis = Py_BuildValue("(ii)", (int)tensor->axes[a].dim, (int)tensor->axes[a].divisor);
    if (axis == NULL || PyTuple_SetItem(axes, a, axis) != 0) {
      Py_DECREF(axes);
      return NULL;
    }
  }
  return axes;
}

static PyObject *describe_tensor(const rg_operator *op, int t) {
  const rg_tensor_spec *tensor = &op->tensors[t];
  return Py_BuildValue("{s:s,s:s,s:i,s:N,s:O,s:i,s:i,s:s,s:I}", "name", tensor->name, "role",
                       tensor->role == RG_INPUT ? "input" : "output", "rank", (int)tensor->rank, "axes",
                       describe_axes(tensor), "broadcast_first", tensor->broadcast_first ? Py_True : Py_False,
                       "in_place_of", tensor->in_place ? (int)tensor->in_place_of : -1, "dtype_group",
                       (int)tensor->dtype_group, "dtypes", dtype_rules[tensor->dtypes], "needed_for",
                       (unsigned)tensor->needed_for);
}

static PyObject *describe_param(const rg_operator *op, int p) {
  const rg_param_spec *param = &op->params[p];
  int count = 0;
  while (param->values != NULL && param->values[count] != NULL) ++count;
  PyObject *values = PyTuple_New(count);
  for (int v = 0; values != NULL && v < count; ++v) {
    PyObject *value = PyUnicode_FromString(param->values[v]);
    if (value == NULL || PyTuple_SetItem(values, v, value) != 0) {
      Py_DECREF(values);
      return NULL;
    }
  }
  return Py_BuildValue("{s:s,s:s,s:N,s:d}", "name", param->name, "kind", param_kinds[param->kind], "values", values,
                       "suggested", param->suggested);
}

static PyObject *describe_operator(int index) {
  const rg_operator *op = rg_dev_operator_at(index);
  return Py_BuildValue(
      "{s:i,s:s,s:s,s:s,s:s,s:s,s:i,s:N,s:N,s:N}", "index", index, "name", op->name, "function", op->function,
      "direction", op->direction == RG_FORWARD ? "forward" : "backward", "title", op->title, "formula", op->formula,
      "in_place_param", (int)op->in_place_param, "dims", describe_all(op, op->num_dims, describe_dim), "tensors",
      describe_all(op, op->num_tensors, describe_tensor), "params", describe_all(op, op->num_params, describe_param));
}

PyObject *core_describe_operators(void) {
  PyObject *list = PyList_New(0);
  for (int index = 0; list != NULL && index < RG_NUM_OPERATORS; ++index) {
    PyObject *described = describe_operator(index);
    if (described == NULL || PyList_Append(list, described) != 0) {
      Py_XDECREF(described);
      Py_DECREF(list);
      return NULL;
    }
    Py_DECREF(described);
  }
  return list;
}
