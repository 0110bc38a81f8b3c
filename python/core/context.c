#include "python/core/core.h"

typedef struct core_context {
  PyObject_HEAD rg_context *context;
  DLDevice device;
  core_reader reader; /* of a framework's tensors; NULL: tuples alone are read */
  bool busy;          /* a thread runs a call of it without holding the GIL */
} core_context;

/* Raises what ropegrad.errors makes of the status. */
static PyObject *raise_error(rg_status status, const char *text) {
  PyObject *errors = PyImport_ImportModule("ropegrad.errors");
  if (errors == NULL) return NULL;
  PyObject *error = PyObject_CallMethod(errors, "error_of", "is", (int)status, text);
  Py_DECREF(errors);
  if (error == NULL) return NULL;
  PyErr_SetObject((PyObject *)Py_TYPE(error), error);
  Py_DECREF(error);
  return NULL;
}

static PyObject *result(const core_context *self, rg_status status) {
  if (status == RG_OK) Py_RETURN_NONE;
  const char *text = rg_last_error(self->context);
  return raise_error(status, text[0] != '\0' ? text : rg_status_string(status));
}

static bool is_free(const core_context *self) {
  if (!self->busy) return true;
  PyErr_SetString(PyExc_RuntimeError, "the context is in use by another thread: each thread needs one of its own");
  return false;
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"device_type", "device_id", "threads", "variant", NULL};
  int device_type, device_id;
  rg_context_options options = {0};
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "ii|iz:Context", names, &device_type, &device_id,
                                   &options.threads, &options.variant)) {
    return NULL;
  }
  const DLDevice device = {(DLDeviceType)device_type, device_id};
  rg_context *context = NULL;
  const rg_status status = rg_context_create(&context, device, &options);
  if (status != RG_OK) {
    char why[512];
    rg_device_status(device, why, sizeof why);
    return raise_error(status, why[0] != '\0' ? why : rg_status_string(status));
  }
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  core_context *self = (core_context *)allocate(type, 0);
  if (self == NULL) {
    rg_context_destroy(context);
    return NULL;
  }
  self->context = context;
  self->device = device;
  return (PyObject *)self;
}

static void release(PyObject *object) {
  PyTypeObject *type = Py_TYPE(object);
  rg_context_destroy(((core_context *)object)->context);
  freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
  free_object(object);
  Py_DECREF(type); /* an instance of a heap type owns a reference to it */
}

/* A launch on a GPU returns in microseconds, less than letting the GIL go can cost; work on the CPU may take long. */
static PyObject *call(PyObject *object, PyObject *arguments) {
  core_context *self = (core_context *)object;
  core_call given;
  if (!core_read_call(arguments, self->device, self->reader, &given) || !is_free(self)) return NULL;
  if (self->device.device_type != kDLCPU) {
    return result(self, rg_dev_run(self->context, given.op, NULL, &given.args));
  }
  rg_status status;
  self->busy = true;
  Py_BEGIN_ALLOW_THREADS;
  status = rg_dev_run(self->context, given.op, NULL, &given.args);
  Py_END_ALLOW_THREADS;
  self->busy = false;
  return result(self, status);
}

static PyObject *sizes(PyObject *object, PyObject *arguments) {
  core_context *self = (core_context *)object;
  core_call given;
  if (!core_read_call(arguments, self->device, self->reader, &given) || !is_free(self)) return NULL;
  rg_problem problem;
  const rg_status status = rg_dev_bind(self->context, given.op, &given.args, &problem);
  if (status != RG_OK) return result(self, status);
  PyObject *tuple = PyTuple_New(given.op->num_dims);
  for (int d = 0; tuple != NULL && d < given.op->num_dims; ++d) {
    PyObject *size = PyLong_FromLongLong(problem.dim[d]);
    if (size == NULL || PyTuple_SetItem(tuple, d, size) != 0) {
      Py_DECREF(tuple);
      return NULL;
    }
  }
  return tuple;
}

static PyObject *set_stream(PyObject *object, PyObject *stream) {
  core_context *self = (core_context *)object;
  void *handle = PyLong_AsVoidPtr(stream);
  if ((handle == NULL && PyErr_Occurred()) || !is_free(self)) return NULL;
  return result(self, rg_context_set_stream(self->context, handle));
}

static PyObject *read_tensors_by(PyObject *object, PyObject *capsule) {
  const core_reader reader = core_reader_of(capsule);
  if (reader == NULL) return NULL;
  ((core_context *)object)->reader = reader;
  Py_RETURN_NONE;
}

static PyObject *check(PyObject *object, PyObject *unused) {
  (void)unused;
  core_context *self = (core_context *)object;
  if (!is_free(self)) return NULL;
  rg_status status;
  self->busy = true;
  Py_BEGIN_ALLOW_THREADS;
  status = rg_context_check(self->context);
  Py_END_ALLOW_THREADS;
  self->busy = false;
  return result(self, status);
}

static PyObject *get_variant(PyObject *object, void *unused) {
  (void)unused;
  return PyUnicode_FromString(rg_dev_default_variant(((core_context *)object)->context));
}

PyObject *core_context_type(void) {
  static PyMethodDef methods[] = {
      {"call", call, METH_VARARGS,
       "call(op_index, tensors, params, form=0)\n\n"
       "Runs an operator. tensors, in the order of its contract: each None or (data_ptr, dtype, shape, strides), with\n"
       "a dtype of DTYPES and strides in elements or None for row-major. params, in the order of its contract: "
       "numbers,\n"
       "an enum's place among its values. form: 0: shapes as in the contract; 1: a tensor whose first axis may be 1 "
       "may\n"
       "also be without that axis; 2: moreover tensors of four axes come with the second and third exchanged, and "
       "their\n"
       "strides given. Raises what ropegrad.errors describes."},
      {"sizes", sizes, METH_VARARGS,
       "sizes(op_index, tensors, params, form=0)\n\n"
       "The operator's dims, in the order of its contract, as far as the given tensors and the options decide them,\n"
       "0 elsewhere: outputs that are still to be made are None. Arguments as for call."},
      {"set_stream", set_stream, METH_O,
       "set_stream(handle)\n\nThe CUDA stream of later calls; 0: the default stream."},
      {"read_tensors_by", read_tensors_by, METH_O,
       "read_tensors_by(capsule)\n\n"
       "From now on a call takes a framework's tensors as they are, beside tuples: capsule is their type's\n"
       "__dlpack_c_exchange_api__. What is given must then be None, a tuple or such a tensor."},
      {"check", check, METH_NOARGS,
       "check()\n\nCUDA: waits for the stream, then raises the error that calls on it have left behind."},
      {NULL, NULL, 0, NULL}};
  static PyGetSetDef members[] = {
      {"variant", get_variant, NULL, "The variant that calls run as, such as cpu.avx2", NULL},
      {NULL, NULL, NULL, NULL, NULL}};
  PyType_Slot slots[] = {
      {Py_tp_doc,
       "Context(device_type, device_id, threads=0, variant=None)\n\n"
       "A device and its resources, for one thread at a time: device_type CPU or CUDA; threads of one call\n"
       "on the CPU, 0 for as many as the process may use; variant None for the fastest that runs here."},
      {Py_tp_new, make},
      {Py_tp_dealloc, release},
      {Py_tp_methods, methods},
      {Py_tp_getset, members},
      {0, NULL}};
  PyType_Spec spec = {"ropegrad._core.Context", sizeof(core_context), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}
