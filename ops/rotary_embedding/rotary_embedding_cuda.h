/* What rotary_embedding's launcher and kernels share. A row is a pair (b, s): D gradients of cos, D of sin and D/2
 * angles make one element of the output. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_CUDA_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_CUDA_H

#include "src/cuda/device_tensor.h"

/* The frequencies of a row of D = 128, the size that the tuned kernels are made for. */
enum { ROTARY_EMBEDDING_HALF = 64 };

/* Elements of a vector of the kernels for any D. */
enum { ROTARY_EMBEDDING_VECTOR = 4 };

/* For the kernels that want rows evenly spaced: row i of a tensor lies i strides after row 0, whatever its batch.
 * Strides are in elements. */
typedef struct rotary_embedding_rows_params {
  const float *emb;
  const void *grad_cos, *grad_sin;
  int32_t emb_stride, grad_cos_stride, grad_sin_stride;
  int32_t rows;
  /* The batch of row i is i * batch_multiplier >> batch_shift. */
  uint32_t batch_multiplier, batch_shift;
  const float *inv_freq;
  int32_t inv_freq_stride;  /* from one batch's frequencies to the next one's; 0: one set serves all */
  int32_t half;             /* D/2 */
  float *grad_position_ids; /* dense */
  float scaling;
} rotary_embedding_rows_params;

typedef struct rotary_embedding_general_params {
  rg_device_tensor grad_cos, grad_sin, emb, inv_freq, grad_position_ids;
  int64_t rows, seq_len, half; /* half: D/2 */
  double scaling;
  int32_t lanes; /* of a row: a power of two, 32 at most */
} rotary_embedding_general_params;

#endif
