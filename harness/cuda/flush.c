#include "harness/cuda/gpu_state.h"

/* Written before every call. No tensor is as large as the flush and set to this. */
static const uint32_t MARK_VALUE = 0x464C5553;
enum { WARM_MARK_BYTES = 16 };

bool rgh_cuda_flush_create(rgh_cuda_flush *flush, const rgh_cuda *cuda, bool warm, rgh_message *why) {
  const uint64_t bytes = warm ? WARM_MARK_BYTES : 2 * (uint64_t)cuda->l2_bytes;
  *flush = (rgh_cuda_flush){.cuda = cuda, .mark = {bytes, MARK_VALUE}};
  return rgh_cuda_good(cuda, cuda->driver->cuMemAlloc(&flush->memory, bytes), "memory that flushes the L2", why);
}

void rgh_cuda_flush_destroy(rgh_cuda_flush *flush) {
  if (flush->memory != 0) flush->cuda->driver->cuMemFree(flush->memory);
  flush->memory = 0;
}

bool rgh_cuda_flush_run(const rgh_cuda_flush *flush, rgh_message *why) {
  const rgh_cuda *cuda = flush->cuda;
  const CUresult result = cuda->driver->cuMemsetD32Async(flush->memory, flush->mark.value,
                                                         flush->mark.bytes / sizeof(uint32_t), cuda->stream);
  return rgh_cuda_good(cuda, result, "flushing the L2", why) && rgh_cuda_wait(cuda, "flushing the L2", why);
}
