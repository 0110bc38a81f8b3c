/* context.h: what a rg_cuda_context holds. For the files of this folder. */
#ifndef ROPEGRAD_SRC_CUDA_CONTEXT_H
#define ROPEGRAD_SRC_CUDA_CONTEXT_H

#include "ropegrad/ropegrad_cuda_dev.h"
#include "src/cuda/launch.h"

/* The oldest architecture that the images have code for. */
enum { RG_CUDA_MIN_COMPUTE_CAPABILITY = 80 };

struct rg_cuda_context {
  const rg_cuda_driver *driver;
  CUdevice handle;
  CUcontext primary;  /* retained; NULL: not yet */
  CUstream stream;    /* the caller's; NULL: the default stream */
  CUdeviceptr memory; /* the workspace, then the error word */
  rg_cuda_device device;
  CUfunction kernel[RG_NUM_OPERATORS][RG_MAX_CUDA_KERNELS];
};

/* Writes "what: the driver's words (its name)". */
rg_status rg_cuda_fail(const rg_cuda_driver *driver, CUresult result, const char *what, rg_error *error);

#endif
