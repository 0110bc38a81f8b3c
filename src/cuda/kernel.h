/* kernel.h: a kernel in the driver's terms, for the library and for an exported solution (src/solution), each of which has
 * the driver's functions in a table of its own. */
#ifndef ROPEGRAD_SRC_CUDA_KERNEL_H
#define ROPEGRAD_SRC_CUDA_KERNEL_H

#include <cuda.h>

#include "src/cuda/launch.h"

/* Lets the kernel use all the dynamic shared memory and the largest clusters that the device has. */
CUresult rg_cuda_allow_all(CUfunction kernel, const rg_cuda_device *device, __typeof__(cuFuncGetAttribute) *get,
                           __typeof__(cuFuncSetAttribute) *set);

/* Fills in what cuLaunchKernelEx takes; `config` points to `attribute`. RG_ERR_OVERFLOW: more blocks than a grid has. */
rg_status rg_cuda_configure(const rg_cuda_launch *launch, void *stream, CUlaunchAttribute *attribute,
                            CUlaunchConfig *config, rg_error *error);

#endif
