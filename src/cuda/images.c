#include "src/cuda/images.h"

#include <pthread.h>

#include "src/cuda/context.h"

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

/* Clusters of more than 8 blocks are asked for from compute capability 9.0 on, which has them. */
enum { CLUSTERS_FROM = 90 };

static CUresult allow_all(const rg_cuda_driver *driver, CUfunction kernel, const rg_cuda_device *device) {
  int fixed_bytes = 0; /* shared memory that the kernel declares counts against the device's limit */
  CUresult result = driver->cuFuncGetAttribute(&fixed_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel);
  if (result == CUDA_SUCCESS) {
    result = driver->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        device->shared_bytes - fixed_bytes);
  }
  if (result == CUDA_SUCCESS && device->compute_capability >= CLUSTERS_FROM) {
    result = driver->cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }
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
    if (result == CUDA_SUCCESS) result = allow_all(driver, kernel[k], device);
    if (result != CUDA_SUCCESS) return fail(driver, result, op->kernels[k], error);
  }
  return RG_OK;
}
