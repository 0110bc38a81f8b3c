/* device_tensor.h: a tensor as kernels are given it. Both sides include this. */
#ifndef ROPEGRAD_SRC_CUDA_DEVICE_TENSOR_H
#define ROPEGRAD_SRC_CUDA_DEVICE_TENSOR_H

#include "ropegrad/ropegrad_dev.h"

typedef struct rg_device_tensor {
  void *data; /* element [0, ..., 0]; NULL where the tensor is not given */
  int64_t
      stride[RG_MAX_RANK]; /* elements; 0 along an axis of one element, such as the batch of a table that serves all */
  rg_dtype dtype;
} rg_device_tensor;

/* NULL for what is not given. */
static inline void *rg_data_of(const rg_tensor *tensor) { return tensor->dtype == RG_DTYPE_NONE ? NULL : tensor->data; }

static inline rg_device_tensor rg_device_tensor_of(const rg_tensor *tensor) {
  rg_device_tensor made;
  const int rank = tensor->dtype == RG_DTYPE_NONE ? 0 : tensor->rank; /* nothing else is known of what is not given */
  made.data = rg_data_of(tensor);
  for (int axis = 0; axis < RG_MAX_RANK; ++axis) {
    made.stride[axis] = axis < rank && tensor->shape[axis] != 1 ? tensor->stride[axis] : 0;
  }
  made.dtype = tensor->dtype;
  return made;
}

#endif
