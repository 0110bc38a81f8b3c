/* gpu_state.h: what a rgh_cuda holds. For the files of this folder. */
#ifndef ROPEGRAD_HARNESS_CUDA_GPU_STATE_H
#define ROPEGRAD_HARNESS_CUDA_GPU_STATE_H

#include "harness/cuda/cuda.h"
#include "harness/cuda/nvml.h"
#include "harness/timing/activity.h"
#include "ropegrad/ropegrad_cuda_dev.h"

/* Page-locked memory, two pieces of it so that one is filled while the other is on its way. */
enum { RGH_STAGES = 2, RGH_STAGE_BYTES = 16 << 20 };

struct rgh_cuda {
  const rg_cuda_driver *driver;
  rg_context *context;
  CUdevice handle;
  CUcontext primary; /* current on the thread that opened this, from open to close */
  CUstream stream;   /* the context's too; everything happens on it */
  int multiprocessors, l2_bytes;
  int threads;
  CUdeviceptr pool;
  size_t pool_bytes, pool_used;
  int pool_live; /* allocations in the pool; when it falls to 0 the pool is empty again */
  unsigned char *stage[RGH_STAGES];
  CUevent staged[RGH_STAGES]; /* when the stage's last copy has ended */
  CUlibrary copies;           /* floor.cu's kernels; NULL: not loaded yet */
  rgh_nvml *nvml;             /* NULL: not there */
  rgh_memory memory;
  rgh_device device;
};

/* True when the result is CUDA_SUCCESS; else *why says "what: the driver's words". */
bool rgh_cuda_good(const rgh_cuda *cuda, CUresult result, const char *what, rgh_message *why);

/* Waits for the stream. */
bool rgh_cuda_wait(const rgh_cuda *cuda, const char *what, rgh_message *why);

/* memory.c */
void rgh_cuda_memory_init(rgh_cuda *cuda);

/* flush.c: memory that overwrites the L2, or, warm, a few bytes that only mark where a call begins. */
typedef struct rgh_cuda_flush {
  const rgh_cuda *cuda;
  CUdeviceptr memory;
  rgh_activity_mark mark;
} rgh_cuda_flush;
bool rgh_cuda_flush_create(rgh_cuda_flush *flush, const rgh_cuda *cuda, bool warm, rgh_message *why);
void rgh_cuda_flush_destroy(rgh_cuda_flush *flush);
/* Writes all of it and waits. */
bool rgh_cuda_flush_run(const rgh_cuda_flush *flush, rgh_message *why);

/* floor.c */
bool rgh_cuda_floor_create(const rgh_device *device, rgh_floor *floor, const rgh_floor_bytes *bytes, int threads,
                           rgh_message *why);
/* For tests: runs a copy and waits. *seen becomes the XOR of all 32-bit words that it read, whole words of the copy's
 * width alone. `source` and `target`, if not NULL, become where it read and wrote. */
bool rgh_cuda_floor_observe(rgh_floor *floor, int copy, size_t source_shift, size_t target_shift, unsigned *seen,
                            unsigned char **source, unsigned char **target, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CUDA_GPU_STATE_H */
