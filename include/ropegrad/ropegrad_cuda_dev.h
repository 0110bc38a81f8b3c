/* ropegrad_cuda_dev.h: the CUDA driver API as this process has it, for the library itself, the tool and the tests. Not
 * installed. Nothing links libcuda: the driver's library is looked for at run time, so that one binary serves machines
 * with and without a GPU. */
#ifndef ROPEGRAD_ROPEGRAD_CUDA_DEV_H
#define ROPEGRAD_ROPEGRAD_CUDA_DEV_H

#include <cuda.h>

#include "ropegrad/ropegrad_dev.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The functions that ropegrad calls. cuda.h renames some of them to a version (cuMemAlloc is cuMemAlloc_v2); the
 * members follow, and so do the symbols that are looked up. */
#define RG_CUDA_FUNCTIONS(X)     \
  X(cuInit)                      \
  X(cuDriverGetVersion)          \
  X(cuGetErrorName)              \
  X(cuGetErrorString)            \
  X(cuDeviceGetCount)            \
  X(cuDeviceGet)                 \
  X(cuDeviceGetName)             \
  X(cuDeviceGetAttribute)        \
  X(cuDeviceTotalMem)            \
  X(cuDeviceGetUuid)             \
  X(cuDevicePrimaryCtxRetain)    \
  X(cuDevicePrimaryCtxRelease)   \
  X(cuCtxPushCurrent)            \
  X(cuCtxPopCurrent)             \
  X(cuCtxGetCurrent)             \
  X(cuStreamCreate)              \
  X(cuStreamDestroy)             \
  X(cuStreamSynchronize)         \
  X(cuStreamIsCapturing)         \
  X(cuStreamBeginCapture)        \
  X(cuStreamEndCapture)          \
  X(cuGraphInstantiateWithFlags) \
  X(cuGraphLaunch)               \
  X(cuGraphExecDestroy)          \
  X(cuGraphDestroy)              \
  X(cuEventCreate)               \
  X(cuEventDestroy)              \
  X(cuEventRecord)               \
  X(cuEventSynchronize)          \
  X(cuEventElapsedTime)          \
  X(cuMemAlloc)                  \
  X(cuMemFree)                   \
  X(cuMemAllocHost)              \
  X(cuMemFreeHost)               \
  X(cuMemGetInfo)                \
  X(cuMemcpyHtoDAsync)           \
  X(cuMemcpyDtoHAsync)           \
  X(cuMemcpyDtoDAsync)           \
  X(cuMemsetD8Async)             \
  X(cuMemsetD32Async)            \
  X(cuLibraryLoadData)           \
  X(cuLibraryUnload)             \
  X(cuLibraryGetKernel)          \
  X(cuKernelGetFunction)         \
  X(cuFuncGetAttribute)          \
  X(cuFuncSetAttribute)          \
  X(cuLaunchKernelEx)

typedef struct rg_cuda_driver {
  int version; /* 13000 is CUDA 13.0 */
#define RG_CUDA_MEMBER(function) __typeof__(function) *function;
  RG_CUDA_FUNCTIONS(RG_CUDA_MEMBER)
#undef RG_CUDA_MEMBER
} rg_cuda_driver;

/* The driver, loaded and initialised by the first call of the process; any thread may call. NULL: this machine has none
 * that serves, and *why, if it is not NULL, says the reason; it lives as long as the program. */
const rg_cuda_driver *rg_dev_cuda_driver(const char **why);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROPEGRAD_CUDA_DEV_H */
