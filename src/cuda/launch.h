/* launch.h: what an operator's launcher (ops/<op>/<op>_cuda.c) works with. */
#ifndef ROPEGRAD_SRC_CUDA_LAUNCH_H
#define ROPEGRAD_SRC_CUDA_LAUNCH_H

#include "src/cuda/backend.h"
#include "src/cuda/device_error.h"
#include "src/cuda/device_tensor.h"

/* The kernels of an operator at most. */
enum { RG_MAX_CUDA_KERNELS = 64 };

/* Device memory of a context, all zero when the context is made, where blocks pass partial results to each other. A
 * kernel leaves what it used zero again, so that the next call, or the replay of a captured one, starts alike. */
enum { RG_CUDA_WORKSPACE_BYTES = 4 << 20 };

/* Room for the error word, behind the workspace. */
enum { RG_CUDA_ERROR_WORD_BYTES = 256 };

/* Facts of the device. */
typedef struct rg_cuda_device {
  int compute_capability; /* 10 * major + minor: 90 */
  int multiprocessors;
  int shared_bytes;    /* dynamic shared memory that a block may have */
  int64_t cache_bytes; /* L2 */
} rg_cuda_device;

const rg_cuda_device *rg_cuda_device_of(const rg_cuda_call *call);
void *rg_cuda_workspace(const rg_cuda_call *call);                   /* device memory */
rg_cuda_error_word *rg_cuda_error_word_of(const rg_cuda_call *call); /* device memory */

/* Blocks of a grid along y, and along z, at most. */
enum { RG_CUDA_MAX_BLOCKS_YZ = 65535 };

typedef struct rg_cuda_launch {
  int kernel;                    /* its number in rg_cuda_operator.kernels */
  int64_t blocks;                /* along x; 0: nothing is launched */
  uint32_t blocks_y, blocks_z;   /* 0: 1 */
  uint32_t threads;              /* of a block, along x */
  uint32_t threads_y, threads_z; /* 0: 1 */
  uint32_t shared_bytes;         /* dynamic */
  uint32_t cluster;              /* blocks of a cluster, a divisor of `blocks`; 0 and 1: no clusters */
} rg_cuda_launch;

/* Launches on the context's device and stream. `params` is the kernel's one parameter, a struct that it takes by value.
 * RG_ERR_CUDA with the driver's words; RG_ERR_OVERFLOW: more blocks than a grid has. */
rg_status rg_cuda_launch_kernel(const rg_cuda_call *call, const rg_cuda_launch *launch, const void *params);

/* `blocks`, or as many as keep the memory of the device busy where that is fewer: for kernels whose blocks go round until
 * the work is done. Blocks of 256 threads are meant. */
int64_t rg_cuda_cap_blocks(const rg_cuda_call *call, int64_t blocks);

/* a / b rounded up; b > 0. */
static inline int64_t rg_divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

#endif
