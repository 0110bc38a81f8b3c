#include "python/core/core.h"

/* DLPack's C exchange API: a table of functions that a framework's tensor type offers as __dlpack_c_exchange_api__. The
 * dlpack.h of most systems is older than it, so its layout, which version 1 fixes, stands here. */
typedef struct exchange_api {
  uint32_t major, minor;
  void *previous;
  int (*allocate)(void);
  int (*managed_from_object)(void);
  int (*managed_to_object)(void);
  core_reader read;
  int (*current_stream)(void);
} exchange_api;

core_reader core_reader_of(PyObject *capsule) {
  const exchange_api *api = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
  if (api == NULL) return NULL;
  if (api->major != 1 || api->read == NULL) {
    PyErr_Format(PyExc_ValueError, "DLPack's exchange API: expected version 1, which reads tensors, got version %d",
                 (int)api->major);
    return NULL;
  }
  return api->read;
}
