/* A build whose CUDA toolkit came without CUPTI's headers. */
#include "harness/cuda/cuda.h"

bool rgh_cuda_cupti_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why) {
  (void)timer, (void)cuda, (void)warm;
  return rgh_fail(why,
                  "this build has no CUPTI: cupti.h was not found when it was configured. Take --timer events, or "
                  "build again with ROPEGRAD_CUPTI_INCLUDE");
}
