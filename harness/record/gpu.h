/* gpu.h: what is known of the GPU that a run used. */
#ifndef ROPEGRAD_HARNESS_RECORD_GPU_H
#define ROPEGRAD_HARNESS_RECORD_GPU_H

#include <stdbool.h>
#include <stdint.h>

enum { RGH_GPU_TEXT = 128 };

/* "", 0 and negative numbers where nobody says. */
typedef struct rgh_gpu {
  char name[RGH_GPU_TEXT];
  int compute_capability; /* 10 * major + minor */
  char driver_version[RGH_GPU_TEXT];
  int driver_cuda_version; /* the newest CUDA that the driver knows: 13000 is 13.0 */
  int multiprocessors;
  int64_t l2_bytes;
  int64_t memory_bytes;
  int memory_bus_bits;
  int memory_clock_max_khz;
  int sm_clock_max_khz;
  /* At this moment, by NVML. */
  bool nvml;
  int sm_clock_mhz, memory_clock_mhz, temperature_c;
  double power_limit_w, power_w;
} rgh_gpu;

/* Of the memory's datasheet, bytes per second: two transfers a clock of the whole bus. 0: not known. */
double rgh_gpu_bandwidth(const rgh_gpu *gpu);

#endif /* ROPEGRAD_HARNESS_RECORD_GPU_H */
