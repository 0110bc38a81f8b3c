/* What the launcher and the kernels of rope_2d's forward pass share. */
#ifndef ROPEGRAD_OPS_ROPE_2D_FORWARD_CUDA_H
#define ROPEGRAD_OPS_ROPE_2D_FORWARD_CUDA_H

#include "src/cuda/device_tensor.h"

/* Elements of a packet of the tuned kernels: 16 bytes of the angles, 8 of each 16-bit table. */
enum { ROPE_2D_FORWARD_PACKET = 4 };

/* Dense tensors: one run of elements, packets aligned to their size. A table that is not wanted is NULL. */
typedef struct rope_2d_forward_dense_params {
  const float *idx_theta;
  void *cos, *sin;
  int64_t elements;
} rope_2d_forward_dense_params;

typedef struct rope_2d_forward_general_params {
  rg_device_tensor idx_theta, cos, sin;
  int64_t elements, seq_len, head_dim;
} rope_2d_forward_general_params;

#endif
