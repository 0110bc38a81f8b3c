#include "python/core/core.h"

#include <string.h>

/* How tensors may stand, see Context.call. */
typedef enum core_form { CORE_AS_CONTRACT, CORE_TABLES_SHARED, CORE_HEADS_THIRD } core_form;

/* (data_ptr, dtype, shape, strides or None). A rank that no operator has is handed on as it is, with the first sizes
 * alone: the library looks at nothing else of such a tensor, and says what is wrong. */
static bool read_sizes(PyObject *sizes, const char *tensor, const char *what, Py_ssize_t expected, int64_t *out,
                       int *rank) {
  const Py_ssize_t count = PyTuple_Check(sizes) ? PyTuple_Size(sizes) : -1;
  if (count < 0 || count > INT_MAX || (expected >= 0 && count != expected)) {
    PyErr_Format(PyExc_TypeError, "%s: its %s must be a tuple with one int for each dimension", tensor, what);
    return false;
  }
  for (Py_ssize_t i = 0; i < count && i < RG_MAX_RANK; ++i) {
    out[i] = PyLong_AsLongLong(PyTuple_GetItem(sizes, i));
    if (out[i] == -1 && PyErr_Occurred()) return false;
  }
  *rank = (int)count;
  return true;
}

static bool read_described(PyObject *given, const char *name, int t, core_call *call) {
  if (!PyTuple_Check(given) || PyTuple_Size(given) != 4) {
    PyErr_Format(PyExc_TypeError, "%s: expected None or (data_ptr, dtype, shape, strides)", name);
    return false;
  }
  DLTensor *tensor = &call->tensor[t];
  tensor->shape = call->shape[t];
  tensor->data = PyLong_AsVoidPtr(PyTuple_GetItem(given, 0));
  if (tensor->data == NULL && PyErr_Occurred()) return false;
  const long dtype = PyLong_AsLong(PyTuple_GetItem(given, 1));
  if (dtype == -1 && PyErr_Occurred()) return false;
  if (dtype <= RG_DTYPE_NONE || dtype >= RG_NUM_DTYPES) {
    PyErr_Format(PyExc_ValueError, "%s: %ld is no dtype of ropegrad._core.DTYPES", name, dtype);
    return false;
  }
  tensor->dtype = rg_dtype_to_dlpack((rg_dtype)dtype);
  if (!read_sizes(PyTuple_GetItem(given, 2), name, "shape", -1, tensor->shape, &tensor->ndim)) return false;
  PyObject *strides = PyTuple_GetItem(given, 3);
  if (strides == Py_None) return true;
  tensor->strides = call->stride[t];
  return read_sizes(strides, name, "strides", tensor->ndim, tensor->strides, &tensor->ndim);
}

/* What stands in one of the other forms, see Context.call, as the contract has it. Only the description is made anew. */
static void arrange(const rg_tensor_spec *spec, core_form form, DLTensor *tensor, int64_t *shape, int64_t *stride) {
  if (tensor->strides == NULL) return; /* row-major: no framework's */
  if (spec->broadcast_first && tensor->ndim == spec->rank - 1) {
    for (int a = tensor->ndim; a > 0; --a) {
      shape[a] = tensor->shape[a - 1];
      stride[a] = tensor->strides[a - 1];
    }
    shape[0] = 1;
    stride[0] = 0;
    tensor->ndim += 1;
  } else if (form == CORE_HEADS_THIRD && spec->rank == 4 && tensor->ndim == 4) {
    static const int from[] = {0, 2, 1, 3};
    int64_t sizes[4], steps[4];
    for (int a = 0; a < 4; ++a) {
      sizes[a] = tensor->shape[from[a]];
      steps[a] = tensor->strides[from[a]];
    }
    memcpy(shape, sizes, sizeof sizes);
    memcpy(stride, steps, sizeof steps);
  } else {
    return;
  }
  tensor->shape = shape;
  tensor->strides = stride;
}

/* Raises BufferError, whose cause is what the framework raised, if it did. */
static void fail_to_describe(const char *name) {
  PyObject *type, *cause, *traceback, *error;
  PyErr_Fetch(&type, &cause, &traceback);
  if (type != NULL) PyErr_NormalizeException(&type, &cause, &traceback);
  Py_XDECREF(type);
  Py_XDECREF(traceback);
  PyErr_Format(PyExc_BufferError, "%s: no tensor that DLPack can describe", name);
  if (cause == NULL) return;
  PyErr_Fetch(&type, &error, &traceback);
  PyErr_NormalizeException(&type, &error, &traceback);
  PyException_SetCause(error, cause); /* takes the reference */
  PyErr_Restore(type, error, traceback);
}

static bool read_tensor(PyObject *given, int t, DLDevice device, core_reader reader, core_form form, core_call *call) {
  const char *name = call->op->tensors[t].name;
  DLTensor *tensor = &call->tensor[t];
  *tensor = (DLTensor){.device = device};
  if (reader == NULL || PyTuple_Check(given)) {
    if (!read_described(given, name, t, call)) return false;
  } else if (reader(given, tensor) != 0) {
    fail_to_describe(name);
    return false;
  }
  if (form != CORE_AS_CONTRACT) arrange(&call->op->tensors[t], form, tensor, call->shape[t], call->stride[t]);
  rg_dev_set_tensor(call->op, &call->args, t, tensor);
  return true;
}

static bool read_param(PyObject *given, int p, core_call *call) {
  rg_param_value value = {0};
  switch (call->op->params[p].kind) {
    case RG_PARAM_DOUBLE:
      value.number = PyFloat_AsDouble(given);
      break;
    case RG_PARAM_INT64:
      value.integer = PyLong_AsLongLong(given);
      break;
    case RG_PARAM_BOOL:
      value.flag = PyObject_IsTrue(given) > 0;
      break;
    case RG_PARAM_ENUM: {
      const long choice = PyLong_AsLong(given);
      /* What no enum holds is out of range, and stays so. */
      value.choice = choice < INT_MIN || choice > INT_MAX ? -1 : (int)choice;
      break;
    }
  }
  if (PyErr_Occurred()) return false;
  rg_dev_set_param(call->op, &call->args, p, value);
  return true;
}

bool core_read_call(PyObject *arguments, DLDevice device, core_reader reader, core_call *call) {
  int index, form = CORE_AS_CONTRACT;
  PyObject *tensors, *params;
  if (!PyArg_ParseTuple(arguments, "iO!O!|i", &index, &PyTuple_Type, &tensors, &PyTuple_Type, &params, &form)) {
    return false;
  }
  if (index < 0 || index >= RG_NUM_OPERATORS) {
    PyErr_Format(PyExc_IndexError, "op_index: expected 0 to %d, got %d", RG_NUM_OPERATORS - 1, index);
    return false;
  }
  const rg_operator *op = call->op = rg_dev_operator_at(index);
  if (PyTuple_Size(tensors) != op->num_tensors || PyTuple_Size(params) != op->num_params) {
    PyErr_Format(PyExc_TypeError, "%s: expected %d tensors and %d params, got %zd and %zd", op->function,
                 (int)op->num_tensors, (int)op->num_params, PyTuple_Size(tensors), PyTuple_Size(params));
    return false;
  }
  call->args = (core_args){0};
  for (int t = 0; t < op->num_tensors; ++t) {
    PyObject *given = PyTuple_GetItem(tensors, t);
    if (given != Py_None && !read_tensor(given, t, device, reader, (core_form)form, call)) return false;
  }
  for (int p = 0; p < op->num_params; ++p) {
    if (!read_param(PyTuple_GetItem(params, p), p, call)) return false;
  }
  return true;
}
