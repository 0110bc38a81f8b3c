#include "python/core/core.h"

static PyObject *operators(PyObject *module, PyObject *unused) {
  (void)module;
  (void)unused;
  return core_describe_operators();
}

/* Adds `value` to the module and gives up the reference to it. */
static int add(PyObject *module, const char *name, PyObject *value) {
  if (value == NULL) return -1;
  if (PyModule_AddObject(module, name, value) == 0) return 0;
  Py_DECREF(value);
  return -1;
}

static PyObject *make_dtypes(void) {
  PyObject *dtypes = PyDict_New();
  for (int dtype = RG_DTYPE_NONE + 1; dtypes != NULL && dtype < RG_NUM_DTYPES; ++dtype) {
    PyObject *number = PyLong_FromLong(dtype);
    const bool failed = number == NULL || PyDict_SetItemString(dtypes, rg_dtype_name((rg_dtype)dtype), number) != 0;
    Py_XDECREF(number);
    if (failed) {
      Py_DECREF(dtypes);
      return NULL;
    }
  }
  return dtypes;
}

static int fill(PyObject *module) {
  if (add(module, "Context", core_context_type()) != 0) return -1;
  if (add(module, "Eager", core_eager_type()) != 0) return -1;
  if (add(module, "DTYPES", make_dtypes()) != 0) return -1;
  if (PyModule_AddIntConstant(module, "CPU", kDLCPU) != 0) return -1;
  if (PyModule_AddIntConstant(module, "CUDA", kDLCUDA) != 0) return -1;
  return PyModule_AddStringConstant(module, "VERSION", rg_version());
}

PyMODINIT_FUNC PyInit__core(void);

PyMODINIT_FUNC PyInit__core(void) {
  static PyMethodDef functions[] = {
      {"operators", operators, METH_NOARGS, "operators()\n\nThe contracts of all operators: see _core.pyi."},
      {NULL, NULL, 0, NULL}};
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, fill}, {0, NULL}};
  static PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                   .m_name = "ropegrad._core",
                                   .m_doc = "The library itself: contexts, calls, contracts.",
                                   .m_methods = functions,
                                   .m_slots = slots};
  return PyModuleDef_Init(&definition);
}
