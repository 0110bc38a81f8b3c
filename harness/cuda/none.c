/* A build without CUDA. Nothing here is reached, because no context for a GPU can be made first. */
#include <stddef.h>

#include "harness/cuda/cuda.h"

static const char reason[] = "this build has no CUDA: ROPEGRAD_CUDA was OFF, or nvcc not found, when it was configured";

bool rgh_cuda_open(rgh_cuda **cuda, rg_context *context, int device, size_t pool_bytes, int threads, rgh_message *why) {
  (void)context, (void)device, (void)pool_bytes, (void)threads;
  *cuda = NULL;
  return rgh_fail(why, "%s", reason);
}

void rgh_cuda_close(rgh_cuda *cuda) { (void)cuda; }

const rgh_device *rgh_cuda_device(const rgh_cuda *cuda) {
  (void)cuda;
  return NULL;
}

void rgh_cuda_read_facts(const rgh_cuda *cuda, rgh_gpu *gpu) {
  (void)cuda;
  *gpu = (rgh_gpu){0};
}

bool rgh_cuda_cupti_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why) {
  (void)timer, (void)cuda, (void)warm;
  return rgh_fail(why, "%s", reason);
}

bool rgh_cuda_event_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why) {
  (void)timer, (void)cuda, (void)warm;
  return rgh_fail(why, "%s", reason);
}
