/* nvml.h: the GPU's clocks, temperature and power, by the driver's management library, which is loaded at run time. */
#ifndef ROPEGRAD_HARNESS_CUDA_NVML_H
#define ROPEGRAD_HARNESS_CUDA_NVML_H

#include "harness/record/gpu.h"

typedef struct rgh_nvml rgh_nvml;

/* By the 16 bytes of the device's UUID. NULL: this machine has no such library, or it does not know the device. */
rgh_nvml *rgh_nvml_open(const char uuid[16]);
void rgh_nvml_close(rgh_nvml *nvml); /* NULL is allowed */

/* 0: not known. */
int rgh_nvml_sm_clock_mhz(const rgh_nvml *nvml);

/* Sets what NVML knows of *gpu. */
void rgh_nvml_read(const rgh_nvml *nvml, rgh_gpu *gpu);

#endif /* ROPEGRAD_HARNESS_CUDA_NVML_H */
