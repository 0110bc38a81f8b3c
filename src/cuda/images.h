/* images.h: the operators' device code in the driver's hands. */
#ifndef ROPEGRAD_SRC_CUDA_IMAGES_H
#define ROPEGRAD_SRC_CUDA_IMAGES_H

#include "ropegrad/ropegrad_cuda_dev.h"
#include "src/cuda/launch.h"

/* Loads the operator's kernels into the current context, now and not when they are first called, so that no call has to
 * allocate. Each may then use all the dynamic shared memory and the largest clusters that `device` has. */
rg_status rg_cuda_load_kernels(const rg_cuda_driver *driver, int index, const rg_cuda_operator *op,
                               const rg_cuda_device *device, CUfunction *kernel, rg_error *error);

#endif
