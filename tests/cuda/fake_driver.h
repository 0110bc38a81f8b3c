/* fake_driver.h: a CUDA driver in plain C, so that the host side of the CUDA backend is tested where there is no GPU.
 * It is built as a libcuda.so.1 of its own and found before any other. It runs no kernels: it counts what it hands out,
 * remembers the last launch, and fails where it is told to. "Device" memory is ordinary memory. */
#ifndef ROPEGRAD_TESTS_CUDA_FAKE_DRIVER_H
#define ROPEGRAD_TESTS_CUDA_FAKE_DRIVER_H

#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>

enum { FAKE_DEVICES = 2 };

/* Between any two events. */
#define FAKE_ELAPSED_MS 0.5f

typedef struct fake_driver {
  /* What is out: all 0 once every context is gone. */
  int retained[FAKE_DEVICES]; /* primary contexts */
  int pushed;                 /* contexts on the stack beyond the caller's own */
  int allocations;
  /* What was done. */
  int libraries_loaded;
  int launches;
  CUcontext launched_in; /* the current context of the last launch */
  CUlaunchConfig launch; /* its attributes are not kept */
  unsigned cluster;      /* blocks of a cluster; 0: none asked for */
  const char *kernel;    /* its name */
  /* What to do. */
  const char *fails;      /* a function: FAKE_NAME(cuMemAlloc); NULL: none */
  int fails_after;        /* calls of it that still succeed */
  CUresult fails_with;    /* what it then returns, every time */
  int compute_capability; /* of every device: 90 unless set */
} fake_driver;

/* The function's name as cuda.h has it. */
#define FAKE_TEXT(name) #name
#define FAKE_NAME(function) FAKE_TEXT(function)

extern fake_driver fake_driver_state;

/* The state of the driver that this process has loaded; NULL, and a line that says so: it is another one. */
static inline fake_driver *fake_driver_find(void) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  fake_driver *driver = library != NULL ? dlsym(library, "fake_driver_state") : NULL;
  if (driver == NULL) {
    fprintf(stderr, "libcuda.so.1 is not the fake one: the test must be started with its folder in LD_LIBRARY_PATH\n");
  }
  return driver;
}

#endif
