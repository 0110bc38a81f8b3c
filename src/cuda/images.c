#include "src/cuda/images.h"

#include <pthread.h>

#include "src/cuda/context.h"
#include "src/cuda/kernel.h"

/* The driver keeps an image for all devices and contexts of the process, so it is handed over once: written under the
 * lock, never changed, never unloaded (other contexts may be using it). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUlibrary libraries[RG_NUM_OPERATORS];

static CUresult library_of(const rg_cuda_driver *driver, int index, const rg_cuda_operator *op, CUlibrary *library) {
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&lock);
  if (libraries[index] == NULL) {
    CUlibrary loaded = NULL;
    result = driver->cuLibraryLoadData(&loaded, op->image, NULL, NULL, 0, NULL, NULL, 0);
    if (result == CUDA_SUCCESS) libraries[index] = loaded;
  }
  *library = libraries[index];
  pthread_mutex_unlock(&lock);
  return result;
}

/* The driver may look for code of the device's architecture at once, or only when a kernel is first asked for. */
static rg_status fail(const rg_cuda_driver *driver, CUresult result, const char *what, rg_error *error) {
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION) {
    return rg_fail(error, RG_ERR_HARDWARE, "%s: this build has no code for the GPU's architecture", what);
  }
  return rg_cuda_fail(driver, result, what, error);
}

rg_status rg_cuda_load_kernels(const rg_cuda_driver *driver, int index, const rg_cuda_operator *op,
                               const rg_cuda_device *device, CUfunction *kernel, rg_error *error) {
  CUlibrary library = NULL;
  CUresult result = library_of(driver, index, op, &library);
  if (result != CUDA_SUCCESS) return fail(driver, result, "loading the kernels", error);
  for (int k = 0; op->kernels[k] != NULL; ++k) {
    if (k == RG_MAX_CUDA_KERNELS) return rg_fail(error, RG_ERR_INTERNAL, "an operator has too many kernels");
    CUkernel found = NULL;
    result = driver->cuLibraryGetKernel(&found, library, op->kernels[k]);
    if (result == CUDA_SUCCESS) result = driver->cuKernelGetFunction(&kernel[k], found);
    if (result == CUDA_SUCCESS) {
      result = rg_cuda_allow_all(kernel[k], device, driver->cuFuncGetAttribute, driver->cuFuncSetAttribute);
    }
    if (result != CUDA_SUCCESS) return fail(driver, result, op->kernels[k], error);
  }
  return RG_OK;
}
