#include "harness/cuda/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* The toolkit may come without nvml.h; these few are pinned by the library's ABI. */
typedef struct nvml_device *nvml_device;
enum { NVML_OK = 0, NVML_CLOCK_SM = 1, NVML_CLOCK_MEM = 2, NVML_TEMPERATURE_GPU = 0 };

struct rgh_nvml {
  void *library;
  nvml_device device;
  int (*shutdown)(void);
  int (*clock)(nvml_device device, int type, unsigned *mhz);
  int (*temperature)(nvml_device device, int sensor, unsigned *celsius);
  int (*power_limit)(nvml_device device, unsigned *milliwatts);
  int (*power)(nvml_device device, unsigned *milliwatts);
  int (*driver_version)(char *text, unsigned room);
};

static bool look_up(void *library, const char *name, void *function) {
  *(void **)function = dlsym(library, name);
  return *(void **)function != NULL;
}

static bool open_device(rgh_nvml *nvml, const char *name) {
  int (*init)(void);
  int (*by_uuid)(const char *uuid, nvml_device *device);
  if (!look_up(nvml->library, "nvmlInit_v2", &init) || !look_up(nvml->library, "nvmlShutdown", &nvml->shutdown) ||
      !look_up(nvml->library, "nvmlDeviceGetHandleByUUID", &by_uuid) ||
      !look_up(nvml->library, "nvmlDeviceGetClockInfo", &nvml->clock) ||
      !look_up(nvml->library, "nvmlDeviceGetTemperature", &nvml->temperature) ||
      !look_up(nvml->library, "nvmlDeviceGetPowerManagementLimit", &nvml->power_limit) ||
      !look_up(nvml->library, "nvmlDeviceGetPowerUsage", &nvml->power) ||
      !look_up(nvml->library, "nvmlSystemGetDriverVersion", &nvml->driver_version) || init() != NVML_OK) {
    return false;
  }
  if (by_uuid(name, &nvml->device) == NVML_OK) return true;
  nvml->shutdown();
  return false;
}

rgh_nvml *rgh_nvml_open(const char uuid[16]) {
  char name[64] = "GPU-";
  int used = 4;
  for (int i = 0; i < 16; i++) {
    const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
    used += snprintf(name + used, sizeof name - (size_t)used, "%s%02x", dash ? "-" : "", (unsigned char)uuid[i]);
  }
  rgh_nvml *nvml = calloc(1, sizeof *nvml);
  if (nvml == NULL) return NULL;
  nvml->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
  if (nvml->library != NULL && open_device(nvml, name)) return nvml;
  if (nvml->library != NULL) dlclose(nvml->library);
  free(nvml);
  return NULL;
}

void rgh_nvml_close(rgh_nvml *nvml) {
  if (nvml == NULL) return;
  nvml->shutdown();
  dlclose(nvml->library);
  free(nvml);
}

static int clock_of(const rgh_nvml *nvml, int type) {
  unsigned mhz = 0;
  return nvml->clock(nvml->device, type, &mhz) == NVML_OK ? (int)mhz : 0;
}

int rgh_nvml_sm_clock_mhz(const rgh_nvml *nvml) { return clock_of(nvml, NVML_CLOCK_SM); }

void rgh_nvml_read(const rgh_nvml *nvml, rgh_gpu *gpu) {
  unsigned value = 0;
  gpu->nvml = true;
  gpu->sm_clock_mhz = clock_of(nvml, NVML_CLOCK_SM);
  gpu->memory_clock_mhz = clock_of(nvml, NVML_CLOCK_MEM);
  gpu->temperature_c = nvml->temperature(nvml->device, NVML_TEMPERATURE_GPU, &value) == NVML_OK ? (int)value : -1;
  gpu->power_limit_w = nvml->power_limit(nvml->device, &value) == NVML_OK ? value * 1e-3 : -1;
  gpu->power_w = nvml->power(nvml->device, &value) == NVML_OK ? value * 1e-3 : -1;
  if (nvml->driver_version(gpu->driver_version, sizeof gpu->driver_version) != NVML_OK) gpu->driver_version[0] = '\0';
}
