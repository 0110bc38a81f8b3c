#include "tests/cuda/fake_driver.h"

#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_driver fake_driver_state = {.compute_capability = 90};
#define state fake_driver_state

/* Whether this call of the function is one that fails. cuda.h names some functions anew (cuMemAlloc is cuMemAlloc_v2),
 * and __func__ has the new name. */
static bool fails(const char *function, CUresult *result) {
  if (state.fails == NULL || strcmp(state.fails, function) != 0) return false;
  if (state.fails_after-- > 0) return false;
  *result = state.fails_with;
  return true;
}
#define MAY_FAIL()                               \
  do {                                           \
    CUresult result;                             \
    if (fails(__func__, &result)) return result; \
  } while (0)

/* Handles are addresses of these, so that they can be told apart. */
static char devices[FAKE_DEVICES];
enum { MAX_PUSHED = 16 };
static CUcontext stack[MAX_PUSHED];

EXPORT CUresult CUDAAPI cuInit(unsigned flags) {
  /* A machine whose driver cannot start is another process: the library asks once. */
  return getenv("FAKE_CUDA_CANNOT_START") != NULL ? CUDA_ERROR_NO_DEVICE : CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDriverGetVersion(int *version) {
  const char *given = getenv("FAKE_CUDA_VERSION");
  *version = given != NULL ? atoi(given) : CUDA_VERSION;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGetErrorName(CUresult error, const char **name) {
  *name = error == CUDA_ERROR_LAUNCH_FAILED ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuGetErrorString(CUresult error, const char **text) {
  *text = error == CUDA_ERROR_LAUNCH_FAILED ? "unspecified launch failure" : "a failure that was asked for";
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetCount(int *count) {
  MAY_FAIL();
  *count = FAKE_DEVICES;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice *device, int index) {
  MAY_FAIL();
  *device = index;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetName(char *name, int bytes, CUdevice device) {
  strncpy(name, "a GPU that is not there", (size_t)bytes - 1);
  name[bytes - 1] = '\0';
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  MAY_FAIL();
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = state.compute_capability / 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
      *value = state.compute_capability % 10;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
      *value = 132;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
      *value = 227 * 1024;
      return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
      *value = 60 << 20;
      return CUDA_SUCCESS;
    default:
      *value = 0;
      return CUDA_SUCCESS;
  }
}

EXPORT CUresult CUDAAPI cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  *bytes = (size_t)1 << 30;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  memset(uuid, device, sizeof *uuid);
  return CUDA_SUCCESS;
}

/* ---- contexts ---- */

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  MAY_FAIL();
  state.retained[device]++;
  *context = (CUcontext)(void *)&devices[device];
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) {
  state.retained[device]--;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPushCurrent(CUcontext context) {
  MAY_FAIL();
  if (state.pushed == MAX_PUSHED) return CUDA_ERROR_INVALID_VALUE;
  stack[state.pushed++] = context;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxPopCurrent(CUcontext *context) {
  if (state.pushed == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *context = stack[--state.pushed];
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuCtxGetCurrent(CUcontext *context) {
  *context = state.pushed > 0 ? stack[state.pushed - 1] : NULL;
  return CUDA_SUCCESS;
}

/* ---- memory ---- */

EXPORT CUresult CUDAAPI cuMemAlloc(CUdeviceptr *memory, size_t bytes) {
  MAY_FAIL();
  if (state.pushed == 0) return CUDA_ERROR_INVALID_CONTEXT;
  void *made = malloc(bytes);
  if (made == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  state.allocations++;
  *memory = (CUdeviceptr)made;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemFree(CUdeviceptr memory) {
  state.allocations--;
  free((void *)memory);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemAllocHost(void **memory, size_t bytes) {
  MAY_FAIL();
  *memory = malloc(bytes);
  if (*memory == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  state.allocations++;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemFreeHost(void *memory) {
  state.allocations--;
  free(memory);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemGetInfo(size_t *free_bytes, size_t *total_bytes) {
  *free_bytes = *total_bytes = (size_t)1 << 30;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
  MAY_FAIL();
  memcpy((void *)to, from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
  MAY_FAIL();
  memcpy(to, (const void *)from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  MAY_FAIL();
  memmove((void *)to, (const void *)from, bytes);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream) {
  MAY_FAIL();
  memset((void *)to, value, count);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr to, unsigned value, size_t count, CUstream stream) {
  MAY_FAIL();
  for (size_t i = 0; i < count; ++i) ((unsigned *)to)[i] = value;
  return CUDA_SUCCESS;
}

/* ---- kernels: a kernel's handle is a copy of its name, kept as long as the process ---- */

EXPORT CUresult CUDAAPI cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options, void **values,
                                          unsigned num_options, CUlibraryOption *library_options, void **library_values,
                                          unsigned num_library_options) {
  MAY_FAIL();
  state.libraries_loaded++;
  *library = (CUlibrary)(uintptr_t)code;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLibraryUnload(CUlibrary library) { return CUDA_SUCCESS; }

static const char *kept_name(const char *name) {
  static char names[512][64];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    if (names[i][0] == '\0') strncpy(names[i], name, sizeof names[i] - 1);
    if (strcmp(names[i], name) == 0) return names[i];
  }
  return NULL;
}

EXPORT CUresult CUDAAPI cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) {
  MAY_FAIL();
  *kernel = (CUkernel)(uintptr_t)kept_name(name);
  return *kernel != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult CUDAAPI cuKernelGetFunction(CUfunction *function, CUkernel kernel) {
  MAY_FAIL();
  if (state.pushed == 0) return CUDA_ERROR_INVALID_CONTEXT;
  *function = (CUfunction)(void *)kernel;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function) {
  MAY_FAIL();
  *value = 0;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  MAY_FAIL();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                                         void **extra) {
  MAY_FAIL();
  if (state.pushed == 0) return CUDA_ERROR_INVALID_CONTEXT;
  const unsigned threads = config->blockDimX * config->blockDimY * config->blockDimZ;
  if (config->gridDimX == 0 || config->gridDimY == 0 || config->gridDimY > 65535 || config->gridDimZ == 0 ||
      config->gridDimZ > 65535 || threads == 0 || threads > 1024 || config->blockDimZ > 64 || params[0] == NULL) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  state.launches++;
  state.launched_in = stack[state.pushed - 1];
  state.launch = *config;
  state.cluster = config->numAttrs > 0 ? config->attrs[0].value.clusterDim.x : 0;
  if (state.cluster > 0 && config->gridDimX % state.cluster != 0) return CUDA_ERROR_INVALID_VALUE;
  state.kernel = (const char *)(void *)function;
  return CUDA_SUCCESS;
}

/* ---- streams, graphs and events: nothing is asynchronous here ---- */

EXPORT CUresult CUDAAPI cuStreamCreate(CUstream *stream, unsigned flags) {
  *stream = (CUstream)(void *)&devices[0];
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream stream) {
  MAY_FAIL();
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamDestroy(CUstream stream) { return CUDA_SUCCESS; }

EXPORT CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status) {
  *status = CU_STREAM_CAPTURE_STATUS_NONE;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
EXPORT CUresult CUDAAPI cuStreamEndCapture(CUstream stream, CUgraph *graph) { return CUDA_ERROR_NOT_SUPPORTED; }
EXPORT CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
EXPORT CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) { return CUDA_ERROR_NOT_SUPPORTED; }
EXPORT CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) { return CUDA_ERROR_NOT_SUPPORTED; }
EXPORT CUresult CUDAAPI cuGraphDestroy(CUgraph graph) { return CUDA_ERROR_NOT_SUPPORTED; }
EXPORT CUresult CUDAAPI cuEventCreate(CUevent *event, unsigned flags) {
  MAY_FAIL();
  *event = (CUevent)malloc(1);
  if (*event == NULL) return CUDA_ERROR_OUT_OF_MEMORY;
  state.allocations++;
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventDestroy(CUevent event) {
  state.allocations--;
  free(event);
  return CUDA_SUCCESS;
}

EXPORT CUresult CUDAAPI cuEventRecord(CUevent event, CUstream stream) { return CUDA_SUCCESS; }
EXPORT CUresult CUDAAPI cuEventSynchronize(CUevent event) { return CUDA_SUCCESS; }
EXPORT CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent begin, CUevent end) {
  MAY_FAIL();
  *ms = FAKE_ELAPSED_MS;
  return CUDA_SUCCESS;
}
