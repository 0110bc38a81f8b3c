#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>

#include "ropegrad/ropegrad_cuda_dev.h"

/* The driver belongs to the process, like the GPU itself: it is loaded once and never changes or goes. */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static rg_cuda_driver driver;
static char reason[256]; /* "" when the driver serves */

/* The oldest driver that has the library functions by which images are loaded once for all devices. */
enum { MIN_VERSION = 12000 };

#define TEXT_OF(name) #name
#define SYMBOL_OF(function) TEXT_OF(function) /* after cuda.h has renamed it */

static void load(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    snprintf(reason, sizeof reason, "no NVIDIA driver is installed: libcuda.so.1 was not found");
    return;
  }
#define LOOK_UP(function)                                                                                        \
  *(void **)&driver.function = dlsym(library, SYMBOL_OF(function));                                              \
  if (driver.function == NULL) {                                                                                 \
    snprintf(reason, sizeof reason, "the NVIDIA driver is too old: it has no %s (CUDA 12.0 or later is needed)", \
             SYMBOL_OF(function));                                                                               \
    return;                                                                                                      \
  }
  RG_CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  const CUresult result = driver.cuInit(0);
  if (result != CUDA_SUCCESS) {
    const char *name = NULL, *text = NULL;
    driver.cuGetErrorName(result, &name);
    driver.cuGetErrorString(result, &text);
    snprintf(reason, sizeof reason, "the NVIDIA driver cannot start: %s (%s)", text != NULL ? text : "unknown error",
             name != NULL ? name : "?");
    return;
  }
  driver.cuDriverGetVersion(&driver.version);
  if (driver.version < MIN_VERSION) {
    snprintf(reason, sizeof reason, "the NVIDIA driver is too old: it knows CUDA %d.%d, and 12.0 or later is needed",
             driver.version / 1000, driver.version % 1000 / 10);
  }
}

const rg_cuda_driver *rg_dev_cuda_driver(const char **why) {
  pthread_once(&once, load);
  if (why != NULL) *why = reason;
  return reason[0] == '\0' ? &driver : NULL;
}
