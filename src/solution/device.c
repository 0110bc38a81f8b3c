/* launch.h over the CUDA runtime of the harness's process. The kernels are linked in, and the launcher names them by
 * text: any one of them leads to their module, and the module to each. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdlib.h>

#include "solution_operator.h"
#include "src/cuda/kernel.h"
#include "src/solution/solution.h"

extern const rg_cuda_operator SOLUTION_CUDA;

/* The launcher's image is for a driver that loads the kernels from it; here none does. */
extern const unsigned char SOLUTION_IMAGE[], SOLUTION_IMAGE_END[];
const unsigned char SOLUTION_IMAGE[] = {0}, SOLUTION_IMAGE_END[] = {0};

enum { MOST_DEVICES = 64 };

/* Of the driver, which the runtime has loaded. */
#define FUNCTIONS(X)     \
  X(cuFuncGetModule)     \
  X(cuModuleGetFunction) \
  X(cuFuncGetAttribute)  \
  X(cuFuncSetAttribute)  \
  X(cuLaunchKernelEx)    \
  X(cuGetErrorString)
typedef struct functions {
#define MEMBER(name) __typeof__(name) *name;
  FUNCTIONS(MEMBER)
#undef MEMBER
} functions;

struct rg_cuda_context {
  functions driver;
  rg_cuda_device device;
  char *memory; /* the workspace, then the error word */
  void *queue;
  CUfunction kernel[RG_MAX_CUDA_KERNELS];
};

static rg_status fail(const functions *driver, CUresult result, const char *what, rg_error *error) {
  const char *text = NULL;
  driver->cuGetErrorString(result, &text);
  return rg_fail(error, RG_ERR_CUDA, "%s: %s", what, text != NULL ? text : "unknown error");
}

static rg_status fail_runtime(cudaError_t result, const char *what, rg_error *error) {
  return rg_fail(error, RG_ERR_CUDA, "%s: %s", what, cudaGetErrorString(result));
}

/* ---- making ---- */

static rg_status find_functions(functions *driver, rg_error *error) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  if (library == NULL) return rg_fail(error, RG_ERR_HARDWARE, "%s", dlerror());
#define FIND(name)                                 \
  *(void **)&driver->name = dlsym(library, #name); \
  if (driver->name == NULL) return rg_fail(error, RG_ERR_HARDWARE, "the driver has no %s", #name);
  FUNCTIONS(FIND)
#undef FIND
  return RG_OK;
}

static rg_status read_facts(int device, rg_cuda_device *facts, rg_error *error) {
  int major = 0, minor = 0, cache = 0;
  cudaError_t result = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  if (result == cudaSuccess) result = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
  if (result == cudaSuccess) {
    result = cudaDeviceGetAttribute(&facts->multiprocessors, cudaDevAttrMultiProcessorCount, device);
  }
  if (result == cudaSuccess) {
    result = cudaDeviceGetAttribute(&facts->shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (result == cudaSuccess) result = cudaDeviceGetAttribute(&cache, cudaDevAttrL2CacheSize, device);
  facts->compute_capability = 10 * major + minor;
  facts->cache_bytes = cache;
  return result == cudaSuccess ? RG_OK : fail_runtime(result, "reading the device's facts", error);
}

static rg_status find_kernels(rg_cuda_context *cuda, rg_error *error) {
  const functions *driver = &cuda->driver;
  CUfunction *kernel = cuda->kernel;
  cudaFunction_t landmark = NULL;
  const cudaError_t found = cudaGetFuncBySymbol(&landmark, rgx_any_kernel());
  if (found != cudaSuccess) return fail_runtime(found, "finding the kernels", error);
  CUmodule module = NULL;
  CUresult result = driver->cuFuncGetModule(&module, landmark);
  if (result != CUDA_SUCCESS) return fail(driver, result, "finding the kernels' module", error);
  for (int k = 0; SOLUTION_CUDA.kernels[k] != NULL; ++k) {
    if (k == RG_MAX_CUDA_KERNELS) return rg_fail(error, RG_ERR_INTERNAL, "the operator has too many kernels");
    result = driver->cuModuleGetFunction(&kernel[k], module, SOLUTION_CUDA.kernels[k]);
    if (result == CUDA_SUCCESS) {
      result = rg_cuda_allow_all(kernel[k], &cuda->device, driver->cuFuncGetAttribute, driver->cuFuncSetAttribute);
    }
    if (result != CUDA_SUCCESS) return fail(driver, result, SOLUTION_CUDA.kernels[k], error);
  }
  return RG_OK;
}

static rg_status make_memory(rg_cuda_context *cuda, rg_error *error) {
  const size_t bytes = RG_CUDA_WORKSPACE_BYTES + RG_CUDA_ERROR_WORD_BYTES;
  cudaError_t result = cudaMalloc((void **)&cuda->memory, bytes);
  if (result == cudaSuccess) result = cudaMemset(cuda->memory, 0, bytes);
  if (result == cudaSuccess) result = cudaDeviceSynchronize();
  return result == cudaSuccess ? RG_OK : fail_runtime(result, "making the workspace", error);
}

rg_status rgx_device(int device, void *queue, rg_cuda_context **cuda, rg_error *error) {
  static rg_cuda_context *made[MOST_DEVICES]; /* kept: the driver, not this module, knows when the process ends */
  if (device < 0 || device >= MOST_DEVICES) return rg_fail(error, RG_ERR_DEVICE, "there is no device %d", device);
  if (made[device] == NULL) {
    rg_cuda_context *fresh = calloc(1, sizeof *fresh);
    if (fresh == NULL) return rg_fail(error, RG_ERR_ALLOC, "no memory");
    rg_status status = find_functions(&fresh->driver, error);
    if (status == RG_OK) status = read_facts(device, &fresh->device, error);
    if (status == RG_OK) status = find_kernels(fresh, error);
    if (status == RG_OK) status = make_memory(fresh, error);
    if (status != RG_OK) {
      cudaFree(fresh->memory);
      free(fresh);
      return status;
    }
    made[device] = fresh;
  }
  *cuda = made[device];
  (*cuda)->queue = queue;
  return RG_OK;
}

/* ---- use: launch.h ---- */

const rg_cuda_device *rg_cuda_device_of(const rg_cuda_call *call) { return &call->cuda->device; }

void *rg_cuda_workspace(const rg_cuda_call *call) { return call->cuda->memory; }

/* Nothing reads it here: the harness compares results, and a row that no index may name is zero. */
rg_cuda_error_word *rg_cuda_error_word_of(const rg_cuda_call *call) {
  return (rg_cuda_error_word *)(call->cuda->memory + RG_CUDA_WORKSPACE_BYTES);
}

rg_status rg_cuda_launch_kernel(const rg_cuda_call *call, const rg_cuda_launch *launch, const void *params) {
  if (launch->blocks == 0) return RG_OK;
  const functions *driver = &call->cuda->driver;
  CUlaunchAttribute attribute;
  CUlaunchConfig config;
  const rg_status status = rg_cuda_configure(launch, call->cuda->queue, &attribute, &config, call->error);
  if (status != RG_OK) return status;
  void *arguments[] = {(void *)(uintptr_t)params};
  const CUresult result = driver->cuLaunchKernelEx(&config, call->cuda->kernel[launch->kernel], arguments, NULL);
  return result == CUDA_SUCCESS ? RG_OK : fail(driver, result, "launching a kernel", call->error);
}
