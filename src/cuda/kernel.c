#include "src/cuda/kernel.h"

#include <inttypes.h>

/* Clusters of more than 8 blocks are asked for from compute capability 9.0 on, which has them. */
enum { CLUSTERS_FROM = 90 };

CUresult rg_cuda_allow_all(CUfunction kernel, const rg_cuda_device *device, __typeof__(cuFuncGetAttribute) *get,
                           __typeof__(cuFuncSetAttribute) *set) {
  int fixed_bytes = 0; /* shared memory that the kernel declares counts against the device's limit */
  CUresult result = get(&fixed_bytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel);
  if (result == CUDA_SUCCESS) {
    result = set(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, device->shared_bytes - fixed_bytes);
  }
  if (result == CUDA_SUCCESS && device->compute_capability >= CLUSTERS_FROM) {
    result = set(kernel, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1);
  }
  return result;
}

static unsigned at_least_one(uint32_t count) { return count > 0 ? count : 1; }

rg_status rg_cuda_configure(const rg_cuda_launch *launch, void *stream, CUlaunchAttribute *attribute,
                            CUlaunchConfig *config, rg_error *error) {
  if (launch->blocks > INT32_MAX) {
    return rg_fail(error, RG_ERR_OVERFLOW, "the call needs %" PRId64 " blocks, and a grid has at most %" PRId32,
                   launch->blocks, INT32_MAX);
  }
  *attribute =
      (CUlaunchAttribute){.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, .value.clusterDim = {launch->cluster, 1, 1}};
  *config = (CUlaunchConfig){.gridDimX = (unsigned)launch->blocks,
                             .gridDimY = at_least_one(launch->blocks_y),
                             .gridDimZ = at_least_one(launch->blocks_z),
                             .blockDimX = launch->threads,
                             .blockDimY = at_least_one(launch->threads_y),
                             .blockDimZ = at_least_one(launch->threads_z),
                             .sharedMemBytes = launch->shared_bytes,
                             .hStream = stream,
                             .attrs = attribute,
                             .numAttrs = launch->cluster > 1};
  return RG_OK;
}
