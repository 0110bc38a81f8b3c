#include "harness/record/gpu.h"

double rgh_gpu_bandwidth(const rgh_gpu *gpu) {
  return 2.0 * 1e3 * gpu->memory_clock_max_khz * (gpu->memory_bus_bits / 8.0);
}
