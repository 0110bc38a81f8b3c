/* ropegrad._core: the library as a Python extension module, in the limited API, so that one build serves every Python
 * from 3.9 on. It knows tensors as addresses and numbers alone; what they are to NumPy or PyTorch is the business of
 * the faces above it. */
#ifndef ROPEGRAD_PYTHON_CORE_CORE_H
#define ROPEGRAD_PYTHON_CORE_CORE_H

#include <Python.h>

#include "ropegrad/operators.h"
#include "ropegrad/ropegrad_dev.h"

/* ---- exchange.c ---- */

/* Fills `out` with a framework's tensor, which it keeps no reference to; shape and strides stay the tensor's own. */
typedef int (*core_reader)(void *object, DLTensor *out);

/* From a capsule of DLPack's C exchange API; NULL: a Python exception is set. */
core_reader core_reader_of(PyObject *capsule);

/* ---- call.c ---- */

/* Any operator's arguments. */
typedef union core_args {
#define RG_OP(name)                          \
  rg_##name##_backward_args name##_backward; \
  rg_##name##_forward_args name##_forward;
#include "ropegrad/ops.def"
#undef RG_OP
} core_args;

/* A call as Python gave it; `args` points into the rest. */
typedef struct core_call {
  const rg_operator *op;
  core_args args;
  DLTensor tensor[RG_MAX_TENSORS];
  int64_t shape[RG_MAX_TENSORS][RG_MAX_RANK], stride[RG_MAX_TENSORS][RG_MAX_RANK];
} core_call;

/* From (op_index, tensors, params, form), see Context.call. reader may be NULL. False: a Python exception is set. */
bool core_read_call(PyObject *arguments, DLDevice device, core_reader reader, core_call *call);

/* ---- eager.c ---- */

/* A new reference to the type Eager; NULL: a Python exception is set. */
PyObject *core_eager_type(void);

/* ---- context.c ---- */

/* A new reference to the type Context; NULL: a Python exception is set. */
PyObject *core_context_type(void);

/* ---- describe.c ---- */

/* The list of operators(): a new reference; NULL: a Python exception is set. */
PyObject *core_describe_operators(void);

#endif
