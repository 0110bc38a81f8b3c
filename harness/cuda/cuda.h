/* cuda.h: a GPU as the harness uses it. none.c answers for a build without CUDA. */
#ifndef ROPEGRAD_HARNESS_CUDA_CUDA_H
#define ROPEGRAD_HARNESS_CUDA_CUDA_H

#include "harness/record/gpu.h"
#include "harness/timing/device.h"
#include "harness/timing/timer.h"
#include "ropegrad/ropegrad_dev.h"

typedef struct rgh_cuda rgh_cuda;

/* Opens the device of a CUDA context for verifying and timing: a stream, which the context is given, and page-locked
 * memory to pass bytes through. pool_bytes (0: none) of the GPU's memory are taken once, and tensors placed there, so
 * that no case spends its time on allocations; what does not fit is allocated by itself. `threads` of the host copy
 * into and out of the page-locked memory. The context must outlive it and must not be given another stream. */
bool rgh_cuda_open(rgh_cuda **cuda, rg_context *context, int device, size_t pool_bytes, int threads, rgh_message *why);
void rgh_cuda_close(rgh_cuda *cuda); /* NULL is allowed */

const rgh_device *rgh_cuda_device(const rgh_cuda *cuda);
void rgh_cuda_read_facts(const rgh_cuda *cuda, rgh_gpu *gpu);

/* "cupti": from the start of the call's first activity on the GPU (kernel, copy, memset) to the end of its last, by the
 * records of the CUPTI library, which is loaded here; where it is looked for is in docs/measuring.md. `warm`: the L2 is
 * not flushed. */
bool rgh_cuda_cupti_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why);

/* "cuda_events": between two events round the call. It counts the gaps that events leave: about a microsecond more. */
bool rgh_cuda_event_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CUDA_CUDA_H */
