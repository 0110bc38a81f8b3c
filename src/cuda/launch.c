#include "src/cuda/launch.h"

int64_t rg_cuda_cap_blocks(const rg_cuda_call *call, int64_t blocks) {
  enum { BLOCKS_A_MULTIPROCESSOR = 8 }; /* 2048 threads, as many as one holds */
  const int64_t most = (int64_t)BLOCKS_A_MULTIPROCESSOR * rg_cuda_device_of(call)->multiprocessors;
  return blocks < most ? blocks : most;
}
