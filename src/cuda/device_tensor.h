/* device_tensor.h: a tensor as kernels are given it. Both sides include this. */
#ifndef ROPEGRAD_SRC_CUDA_DEVICE_TENSOR_H
#define ROPEGRAD_SRC_CUDA_DEVICE_TENSOR_H

#include "ropegrad/ropegrad_dev.h"

typedef struct rg_device_tensor {
  void *data;                  /* element [0, ..., 0]; NULL where the tensor is not given */
  int64_t stride[RG_MAX_RANK]; /* elements */
  rg_dtype dtype;
} rg_device_tensor;

/* NULL for what is not given. */
static inline void *rg_data_of(const rg_tensor *tensor) { return tensor->dtype == RG_DTYPE_NONE ? NULL : tensor->data; }

static inline rg_device_tensor rg_device_tensor_of(const rg_tensor *tensor) {
  rg_device_tensor made;
  made.data = rg_data_of(tensor);
  for (int axis = 0; axis < RG_MAX_RANK; ++axis) made.stride[axis] = tensor->stride[axis];
  made.dtype = tensor->dtype;
  return made;
}

#endif
