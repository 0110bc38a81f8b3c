#include "harness/cuda/gpu_state.h"

#include <stdlib.h>
#include <string.h>

bool rgh_cuda_good(const rgh_cuda *cuda, CUresult result, const char *what, rgh_message *why) {
  if (result == CUDA_SUCCESS) return true;
  const char *name = NULL, *text = NULL;
  cuda->driver->cuGetErrorName(result, &name);
  cuda->driver->cuGetErrorString(result, &text);
  return rgh_fail(why, "%s: %s (%s)", what, text != NULL ? text : "unknown error", name != NULL ? name : "?");
}

bool rgh_cuda_wait(const rgh_cuda *cuda, const char *what, rgh_message *why) {
  return rgh_cuda_good(cuda, cuda->driver->cuStreamSynchronize(cuda->stream), what, why);
}

static int attribute(const rgh_cuda *cuda, CUdevice_attribute which) {
  int value = 0;
  cuda->driver->cuDeviceGetAttribute(&value, which, cuda->handle);
  return value;
}

static int clock_mhz(const rgh_device *device) {
  const rgh_cuda *cuda = device->state;
  return cuda->nvml != NULL ? rgh_nvml_sm_clock_mhz(cuda->nvml) : 0;
}

/* A pool that there is no room for is left out: what it would have held is allocated piece by piece. */
static void make_pool(rgh_cuda *cuda, size_t bytes) {
  if (bytes == 0 || cuda->driver->cuMemAlloc(&cuda->pool, bytes) != CUDA_SUCCESS) return;
  cuda->pool_bytes = bytes;
}

static bool make_resources(rgh_cuda *cuda, size_t pool_bytes, rgh_message *why) {
  const rg_cuda_driver *driver = cuda->driver;
  if (!rgh_cuda_good(cuda, driver->cuStreamCreate(&cuda->stream, CU_STREAM_NON_BLOCKING), "making a stream", why)) {
    return false;
  }
  for (int s = 0; s < RGH_STAGES; s++) {
    if (!rgh_cuda_good(cuda, driver->cuMemAllocHost((void **)&cuda->stage[s], RGH_STAGE_BYTES),
                       "taking page-locked memory", why) ||
        !rgh_cuda_good(cuda, driver->cuEventCreate(&cuda->staged[s], CU_EVENT_DISABLE_TIMING), "making an event",
                       why)) {
      return false;
    }
  }
  make_pool(cuda, pool_bytes);
  return true;
}

bool rgh_cuda_open(rgh_cuda **made, rg_context *context, int device, size_t pool_bytes, int threads, rgh_message *why) {
  *made = NULL;
  rgh_cuda *cuda = calloc(1, sizeof *cuda);
  if (cuda == NULL) return rgh_fail(why, "no memory");
  cuda->driver = rg_dev_cuda_driver(NULL);
  cuda->context = context;
  cuda->threads = threads;
  CUcontext primary = rg_dev_cuda_primary_context(context);
  bool good = rgh_cuda_good(cuda, cuda->driver->cuDeviceGet(&cuda->handle, device), "cuDeviceGet", why) &&
              rgh_cuda_good(cuda, cuda->driver->cuCtxPushCurrent(primary), "cuCtxPushCurrent", why);
  if (good) cuda->primary = primary;
  good = good && make_resources(cuda, pool_bytes, why);
  if (good && rg_context_set_stream(context, cuda->stream) != RG_OK) {
    good = rgh_fail(why, "%s", rg_last_error(context));
  }
  if (!good) {
    rgh_cuda_close(cuda);
    return false;
  }
  cuda->multiprocessors = attribute(cuda, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  cuda->l2_bytes = attribute(cuda, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  CUuuid uuid;
  if (cuda->driver->cuDeviceGetUuid(&uuid, cuda->handle) == CUDA_SUCCESS) cuda->nvml = rgh_nvml_open(uuid.bytes);
  rgh_cuda_memory_init(cuda);
  cuda->memory.device = (DLDevice){kDLCUDA, device};
  cuda->device = (rgh_device){
      .memory = &cuda->memory, .state = cuda, .create_floor = rgh_cuda_floor_create, .clock_mhz = clock_mhz};
  *made = cuda;
  return true;
}

void rgh_cuda_close(rgh_cuda *cuda) {
  if (cuda == NULL) return;
  const rg_cuda_driver *driver = cuda->driver;
  if (cuda->stream != NULL) driver->cuStreamSynchronize(cuda->stream);
  if (cuda->copies != NULL) driver->cuLibraryUnload(cuda->copies);
  if (cuda->pool != 0) driver->cuMemFree(cuda->pool);
  for (int s = 0; s < RGH_STAGES; s++) {
    if (cuda->stage[s] != NULL) driver->cuMemFreeHost(cuda->stage[s]);
    if (cuda->staged[s] != NULL) driver->cuEventDestroy(cuda->staged[s]);
  }
  if (cuda->stream != NULL) {
    rg_context_set_stream(cuda->context, NULL);
    driver->cuStreamDestroy(cuda->stream);
  }
  CUcontext popped;
  if (cuda->primary != NULL) driver->cuCtxPopCurrent(&popped);
  rgh_nvml_close(cuda->nvml);
  free(cuda);
}

const rgh_device *rgh_cuda_device(const rgh_cuda *cuda) { return &cuda->device; }

void rgh_cuda_read_facts(const rgh_cuda *cuda, rgh_gpu *gpu) {
  memset(gpu, 0, sizeof *gpu);
  size_t bytes = 0;
  cuda->driver->cuDeviceGetName(gpu->name, sizeof gpu->name, cuda->handle);
  cuda->driver->cuDeviceTotalMem(&bytes, cuda->handle);
  gpu->compute_capability = 10 * attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) +
                            attribute(cuda, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  gpu->driver_cuda_version = cuda->driver->version;
  gpu->multiprocessors = cuda->multiprocessors;
  gpu->l2_bytes = cuda->l2_bytes;
  gpu->memory_bytes = (int64_t)bytes;
  gpu->memory_bus_bits = attribute(cuda, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH);
  gpu->memory_clock_max_khz = attribute(cuda, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE);
  gpu->sm_clock_max_khz = attribute(cuda, CU_DEVICE_ATTRIBUTE_CLOCK_RATE);
  if (cuda->nvml != NULL) rgh_nvml_read(cuda->nvml, gpu);
}
