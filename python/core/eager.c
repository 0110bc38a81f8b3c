#include "python/core/core.h"

/* The straight way of an eager call: see the documentation of the type. In C, because in Python the questions that a
 * call raises take longer than their answers. */
typedef struct core_eager {
  PyObject_HEAD Py_ssize_t count;
  PyObject *types, *watchers, *level_of, *is_lazy, *records; /* what is asked */
  PyObject *kernel, *record, *dispatch;                      /* where the call goes */
  PyObject *requires_grad, *is_cpu, *is_cuda, *level;        /* names of attributes */
} core_eager;

typedef enum core_way { CORE_FAILED = -1, CORE_DISPATCH, CORE_KERNEL, CORE_RECORD } core_way;

/* Of an answer, whose reference it gives up: 1 yes, 0 no, -1 a Python exception is set. */
static int truth(PyObject *answer) {
  if (answer == NULL) return -1;
  const int is_true = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  return is_true;
}

static int attribute(PyObject *tensor, PyObject *name) { return truth(PyObject_GetAttr(tensor, name)); }

/* Whether anybody besides the kernel and autograd's recording has to see the call. */
static int is_watched(const core_eager *self) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(self->watchers); ++i) {
    const int watches = truth(PyObject_CallFunctionObjArgs(PyTuple_GetItem(self->watchers, i), NULL));
    if (watches != 0) return watches;
  }
  PyObject *level = PyObject_GetAttr(self->level_of, self->level);
  if (level == NULL) return -1;
  const long number = PyLong_AsLong(level);
  Py_DECREF(level);
  return PyErr_Occurred() ? -1 : number >= 0;
}

static int has_known_type(const core_eager *self, PyObject *tensor) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(self->types); ++i) {
    if (PyTuple_GetItem(self->types, i) == (PyObject *)Py_TYPE(tensor)) return 1;
  }
  return 0;
}

static core_way choose(const core_eager *self, PyObject *arguments) {
  const int watched = is_watched(self);
  if (watched != 0) return watched < 0 ? CORE_FAILED : CORE_DISPATCH;
  int requires_grad = 0;
  bool knows_device = false; /* that of the first tensor; the library compares the others with it */
  const Py_ssize_t given = PyTuple_Size(arguments);
  for (Py_ssize_t i = 0; i < self->count && i < given; ++i) {
    PyObject *tensor = PyTuple_GetItem(arguments, i);
    if (tensor == Py_None) continue;
    if (!has_known_type(self, tensor)) return CORE_DISPATCH;
    if (!knows_device) {
      int known = attribute(tensor, self->is_cuda);
      if (known == 0) known = attribute(tensor, self->is_cpu);
      if (known != 1) return known < 0 ? CORE_FAILED : CORE_DISPATCH;
      knows_device = true;
    }
    const int lazy = truth(PyObject_CallFunctionObjArgs(self->is_lazy, tensor, NULL));
    if (lazy != 0) return lazy < 0 ? CORE_FAILED : CORE_DISPATCH;
    if (!requires_grad) requires_grad = attribute(tensor, self->requires_grad);
    if (requires_grad < 0) return CORE_FAILED;
  }
  if (!requires_grad) return CORE_KERNEL;
  const int records = truth(PyObject_CallFunctionObjArgs(self->records, NULL));
  return records < 0 ? CORE_FAILED : records ? CORE_RECORD : CORE_KERNEL;
}

/* record(kernel, *arguments) */
static PyObject *run_recorded(const core_eager *self, PyObject *arguments) {
  const Py_ssize_t given = PyTuple_Size(arguments);
  PyObject *all = PyTuple_New(given + 1);
  if (all == NULL) return NULL;
  for (Py_ssize_t i = 0; i <= given; ++i) {
    PyObject *argument = i == 0 ? self->kernel : PyTuple_GetItem(arguments, i - 1);
    Py_INCREF(argument);
    PyTuple_SetItem(all, i, argument);
  }
  PyObject *results = PyObject_Call(self->record, all, NULL);
  Py_DECREF(all);
  return results;
}

static PyObject *call(PyObject *object, PyObject *arguments, PyObject *keywords) {
  const core_eager *self = (core_eager *)object;
  if (keywords == NULL) {
    const core_way way = choose(self, arguments);
    if (way == CORE_FAILED) return NULL;
    if (way != CORE_DISPATCH) {
      PyObject *results =
          way == CORE_RECORD ? run_recorded(self, arguments) : PyObject_Call(self->kernel, arguments, NULL);
      if (results != NULL || !PyErr_ExceptionMatches(PyExc_BufferError)) return results;
      PyErr_Clear(); /* a tensor without memory, such as a sparse or a batched one: the dispatcher knows what it is */
    }
  }
  return PyObject_Call(self->dispatch, arguments, keywords);
}

static void release(PyObject *object) {
  core_eager *self = (core_eager *)object;
  PyObject *const held[] = {self->types,         self->watchers, self->level_of, self->is_lazy,
                            self->records,       self->kernel,   self->record,   self->dispatch,
                            self->requires_grad, self->is_cpu,   self->is_cuda,  self->level};
  PyTypeObject *type = Py_TYPE(object);
  freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
  free_object(object);
  for (size_t i = 0; i < sizeof held / sizeof held[0]; ++i) Py_XDECREF(held[i]);
  Py_DECREF(type);
}

static PyObject *make(PyTypeObject *type, PyObject *arguments, PyObject *keywords) {
  static char *names[] = {"count",   "types",  "watchers", "level_of", "is_lazy",
                          "records", "kernel", "record",   "dispatch", NULL};
  allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
  core_eager *self = (core_eager *)allocate(type, 0); /* all zeros */
  if (self == NULL) return NULL;
  PyObject **const given[] = {&self->types,   &self->watchers, &self->level_of, &self->is_lazy,
                              &self->records, &self->kernel,   &self->record,   &self->dispatch};
  const bool good = PyArg_ParseTupleAndKeywords(arguments, keywords, "nO!O!OOOOOO:Eager", names, &self->count,
                                                &PyTuple_Type, given[0], &PyTuple_Type, given[1], given[2], given[3],
                                                given[4], given[5], given[6], given[7]);
  for (size_t i = 0; i < sizeof given / sizeof given[0]; ++i) Py_XINCREF(*given[i]);
  self->requires_grad = PyUnicode_InternFromString("requires_grad");
  self->is_cpu = PyUnicode_InternFromString("is_cpu");
  self->is_cuda = PyUnicode_InternFromString("is_cuda");
  self->level = PyUnicode_InternFromString("_current_level");
  if (good && self->requires_grad && self->is_cpu && self->is_cuda && self->level) return (PyObject *)self;
  Py_DECREF(self);
  return NULL;
}

PyObject *core_eager_type(void) {
  PyType_Slot slots[] = {
      {Py_tp_doc,
       "Eager(count, types, watchers, level_of, is_lazy, records, kernel, record, dispatch)\n\n"
       "An operator on a framework's tensors, which are the first count arguments, or None. If nobody else has to see\n"
       "the call, kernel(*arguments) runs it, or record(kernel, *arguments) where a tensor requires gradients and\n"
       "records() says yes; otherwise dispatch(*arguments). Others have to see it if one of the watchers, functions "
       "of\n"
       "no argument, or level_of._current_level says so, or if a tensor is of none of exactly these types, on no "
       "device\n"
       "of the library or, by is_lazy(tensor), not what its memory holds."},
      {Py_tp_new, make},
      {Py_tp_call, call},
      {Py_tp_dealloc, release},
      {0, NULL}};
  PyType_Spec spec = {"ropegrad._core.Eager", sizeof(core_eager), 0, Py_TPFLAGS_DEFAULT, slots};
  return PyType_FromSpec(&spec);
}
