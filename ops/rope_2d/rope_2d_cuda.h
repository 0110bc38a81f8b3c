/* What rope_2d's launcher and kernels share. */
#ifndef ROPEGRAD_OPS_ROPE_2D_CUDA_H
#define ROPEGRAD_OPS_ROPE_2D_CUDA_H

#include "src/cuda/device_tensor.h"

/* Elements of a thread of the tuned kernels: 8 bytes of each 16-bit gradient, 16 of the angles. */
enum { ROPE_2D_VECTOR = 4 };

/* Dense tensors: one run of elements, vectors aligned to their size. */
typedef struct rope_2d_dense_params {
  const void *grad_cos, *grad_sin;
  const float *idx_theta;
  float *grad_idx_theta;
  int64_t elements;
} rope_2d_dense_params;

typedef struct rope_2d_general_params {
  rg_device_tensor grad_cos, grad_sin, idx_theta, grad_idx_theta;
  int64_t elements, seq_len, head_dim;
} rope_2d_general_params;

#endif
