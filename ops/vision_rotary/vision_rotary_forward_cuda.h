/* What the launcher and the kernels of vision_rotary's forward pass share. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_FORWARD_CUDA_H
#define ROPEGRAD_OPS_VISION_ROTARY_FORWARD_CUDA_H

#include "src/cuda/device_tensor.h"

/* Columns of a packet, which divides a row, for D is a multiple of 4: 16 bytes of float32, 8 of a 16-bit dtype. */
enum { VISION_ROTARY_FORWARD_PACKET = 4 };

/* The frequencies of D = 72, the size that the tuned kernels are made for. */
enum { VISION_ROTARY_FORWARD_QUARTER = 18 };

/* Outputs without gaps, packets aligned to their size; NULL where not wanted. Each patch's two positions are one aligned
 * run of 16 bytes. */
typedef struct vision_rotary_forward_dense_params {
  const float *inv_freq; /* contiguous */
  const int64_t *pos_ids;
  int64_t pos_ids_stride; /* elements from one patch to the next */
  float *emb;
  void *cos, *sin;
  uint32_t packets; /* P * Q, or half as many where a thread stores both halves of a row */
  uint32_t quarter; /* Q */
} vision_rotary_forward_dense_params;

typedef struct vision_rotary_forward_general_params {
  rg_device_tensor inv_freq, pos_ids, emb, cos, sin;
  int64_t angles, quarter; /* angles: P * 2 * quarter, the different ones */
} vision_rotary_forward_general_params;

#endif
