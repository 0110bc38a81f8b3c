#include "src/cuda/context.h"

#include <string.h>

#include "src/cuda/images.h"
#include "src/cuda/kernel.h"

rg_status rg_cuda_fail(const rg_cuda_driver *driver, CUresult result, const char *what, rg_error *error) {
  const char *name = NULL, *text = NULL;
  driver->cuGetErrorName(result, &name);
  driver->cuGetErrorString(result, &text);
  return rg_fail(error, RG_ERR_CUDA, "%s: %s (%s)", what, text != NULL ? text : "unknown error",
                 name != NULL ? name : "?");
}

rg_status rg_cuda_status(rg_error *error) {
  const char *why;
  const rg_cuda_driver *driver = rg_dev_cuda_driver(&why);
  if (driver == NULL) return rg_fail(error, RG_ERR_HARDWARE, "%s", why);
  int devices = 0;
  if (driver->cuDeviceGetCount(&devices) != CUDA_SUCCESS || devices == 0) {
    return rg_fail(error, RG_ERR_HARDWARE, "the NVIDIA driver sees no GPU");
  }
  return RG_OK;
}

/* ---- making ---- */

static int attribute(const rg_cuda_context *cuda, CUdevice_attribute which) {
  int value = 0;
  cuda->driver->cuDeviceGetAttribute(&value, which, cuda->handle);
  return value;
}

static rg_status find_device(rg_cuda_context *cuda, int index, rg_error *error) {
  int devices = 0;
  cuda->driver->cuDeviceGetCount(&devices);
  if (index < 0 || index >= devices) {
    return rg_fail(error, RG_ERR_HARDWARE, "there is no CUDA device %d: the driver sees %d", index, devices);
  }
  const CUresult result = cuda->driver->cuDeviceGet(&cuda->handle, index);
  if (result != CUDA_SUCCESS) return rg_cuda_fail(cuda->driver, result, "cuDeviceGet", error);
  cuda->device = (rg_cuda_device){
      .compute_capability = 10 * attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                            attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
      .multiprocessors = attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
      .shared_bytes = attribute(cuda, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
      .cache_bytes = attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE),
  };
  if (cuda->device.compute_capability >= RG_CUDA_MIN_COMPUTE_CAPABILITY) return RG_OK;
  return rg_fail(error, RG_ERR_HARDWARE, "CUDA device %d has compute capability %d.%d; %d.%d or higher is needed",
                 index, cuda->device.compute_capability / 10, cuda->device.compute_capability % 10,
                 RG_CUDA_MIN_COMPUTE_CAPABILITY / 10, RG_CUDA_MIN_COMPUTE_CAPABILITY % 10);
}

/* With the primary context current. */
static rg_status make_memory(rg_cuda_context *cuda, rg_error *error) {
  const rg_cuda_driver *driver = cuda->driver;
  const size_t bytes = RG_CUDA_WORKSPACE_BYTES + RG_CUDA_ERROR_WORD_BYTES;
  CUresult result = driver->cuMemAlloc(&cuda->memory, bytes);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    return rg_fail(error, RG_ERR_ALLOC, "the GPU has no %zu bytes for a context", bytes);
  }
  if (result == CUDA_SUCCESS) result = driver->cuMemsetD8Async(cuda->memory, 0, bytes, CU_STREAM_LEGACY);
  if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(CU_STREAM_LEGACY);
  return result == CUDA_SUCCESS ? RG_OK : rg_cuda_fail(driver, result, "making a context's memory", error);
}

static rg_status fill(rg_cuda_context *cuda, int index, const rg_cuda_operator *const *operators, rg_error *error) {
  const rg_cuda_driver *driver = cuda->driver;
  rg_status status = find_device(cuda, index, error);
  if (status != RG_OK) return status;
  CUresult result = driver->cuDevicePrimaryCtxRetain(&cuda->primary, cuda->handle);
  if (result != CUDA_SUCCESS) {
    cuda->primary = NULL;
    return rg_cuda_fail(driver, result, "cuDevicePrimaryCtxRetain", error);
  }
  result = driver->cuCtxPushCurrent(cuda->primary);
  if (result != CUDA_SUCCESS) return rg_cuda_fail(driver, result, "cuCtxPushCurrent", error);
  for (int op = 0; op < RG_NUM_OPERATORS && status == RG_OK; ++op) {
    if (operators[op] == NULL) continue;
    status = rg_cuda_load_kernels(driver, op, operators[op], &cuda->device, cuda->kernel[op], error);
  }
  if (status == RG_OK) status = make_memory(cuda, error);
  CUcontext popped;
  driver->cuCtxPopCurrent(&popped);
  return status;
}

rg_status rg_cuda_context_create(rg_cuda_context **made, int device, const rg_cuda_operator *const *operators,
                                 const rg_allocator *allocator, rg_error *error) {
  *made = NULL;
  rg_status status = rg_cuda_status(error);
  if (status != RG_OK) return status;
  rg_cuda_context *cuda = allocator->allocate(allocator->user, sizeof *cuda);
  if (cuda == NULL) return rg_fail(error, RG_ERR_ALLOC, "no memory for a context");
  memset(cuda, 0, sizeof *cuda);
  cuda->driver = rg_dev_cuda_driver(NULL);
  status = fill(cuda, device, operators, error);
  if (status != RG_OK) {
    rg_cuda_context_destroy(cuda, allocator);
    return status;
  }
  *made = cuda;
  return RG_OK;
}

void rg_cuda_context_destroy(rg_cuda_context *cuda, const rg_allocator *allocator) {
  if (cuda == NULL) return;
  const rg_cuda_driver *driver = cuda->driver;
  if (cuda->primary != NULL) {
    if (cuda->memory != 0 && driver->cuCtxPushCurrent(cuda->primary) == CUDA_SUCCESS) {
      CUcontext popped;
      driver->cuStreamSynchronize(cuda->stream);
      driver->cuMemFree(cuda->memory);
      driver->cuCtxPopCurrent(&popped);
    }
    driver->cuDevicePrimaryCtxRelease(cuda->handle);
  }
  allocator->release(allocator->user, cuda);
}

/* ---- use ---- */

void rg_cuda_context_set_stream(rg_cuda_context *cuda, void *stream) { cuda->stream = stream; }

void *rg_cuda_context_stream(const rg_cuda_context *cuda) { return cuda->stream; }

void *rg_cuda_context_primary(const rg_cuda_context *cuda) { return cuda->primary; }

static CUresult read_error_word(const rg_cuda_context *cuda, rg_cuda_error_word *word) {
  const rg_cuda_driver *driver = cuda->driver;
  const CUdeviceptr at = cuda->memory + RG_CUDA_WORKSPACE_BYTES;
  CUresult result = driver->cuMemcpyDtoHAsync(word, at, sizeof *word, cuda->stream);
  if (result == CUDA_SUCCESS) result = driver->cuStreamSynchronize(cuda->stream);
  if (result != CUDA_SUCCESS || *word == RG_CUDA_NO_ERROR) return result;
  result = driver->cuMemsetD8Async(at, 0, sizeof *word, cuda->stream);
  return result == CUDA_SUCCESS ? driver->cuStreamSynchronize(cuda->stream) : result;
}

rg_status rg_cuda_context_check(rg_cuda_context *cuda, rg_error *error) {
  const rg_cuda_driver *driver = cuda->driver;
  CUresult result = driver->cuCtxPushCurrent(cuda->primary);
  if (result != CUDA_SUCCESS) return rg_cuda_fail(driver, result, "cuCtxPushCurrent", error);
  rg_cuda_error_word word = RG_CUDA_NO_ERROR;
  result = read_error_word(cuda, &word);
  CUcontext popped;
  driver->cuCtxPopCurrent(&popped);
  if (result != CUDA_SUCCESS) return rg_cuda_fail(driver, result, "an earlier call on this context's stream", error);
  if (word == RG_CUDA_NO_ERROR) return RG_OK;
  return rg_fail(error, RG_ERR_RANGE,
                 "place %lld of an earlier call's index tensor lies past the end of the dimension that it picks from; "
                 "what it should have picked is zero",
                 RG_CUDA_ERROR_PLACE(word));
}

const rg_cuda_device *rg_cuda_device_of(const rg_cuda_call *call) { return &call->cuda->device; }

void *rg_cuda_workspace(const rg_cuda_call *call) { return (void *)(uintptr_t)call->cuda->memory; }

rg_cuda_error_word *rg_cuda_error_word_of(const rg_cuda_call *call) {
  return (rg_cuda_error_word *)(uintptr_t)(call->cuda->memory + RG_CUDA_WORKSPACE_BYTES);
}

rg_status rg_cuda_launch_kernel(const rg_cuda_call *call, const rg_cuda_launch *launch, const void *params) {
  if (launch->blocks == 0) return RG_OK;
  const rg_cuda_context *cuda = call->cuda;
  const rg_cuda_driver *driver = cuda->driver;
  CUlaunchAttribute attribute;
  CUlaunchConfig config;
  const rg_status status = rg_cuda_configure(launch, cuda->stream, &attribute, &config, call->error);
  if (status != RG_OK) return status;
  void *arguments[] = {(void *)(uintptr_t)params};
  CUresult result = driver->cuCtxPushCurrent(cuda->primary);
  if (result != CUDA_SUCCESS) return rg_cuda_fail(driver, result, "cuCtxPushCurrent", call->error);
  result = driver->cuLaunchKernelEx(&config, cuda->kernel[call->op][launch->kernel], arguments, NULL);
  CUcontext popped;
  driver->cuCtxPopCurrent(&popped);
  return result == CUDA_SUCCESS ? RG_OK : rg_cuda_fail(driver, result, "launching a kernel", call->error);
}
