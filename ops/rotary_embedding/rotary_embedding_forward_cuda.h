/* What the launcher and the kernels of rotary_embedding's forward pass share. A row is a pair (b, s). */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_CUDA_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_FORWARD_CUDA_H

#include "src/cuda/device_tensor.h"

/* Frequencies of a packet, which a thread has of each of its rows: 16 bytes of the angles, 8 of each 16-bit table. */
enum { ROTARY_EMBEDDING_FORWARD_PACKET = 4 };

/* The frequencies of a row of D = 128, the size that the tuned kernels are made for. */
enum { ROTARY_EMBEDDING_FORWARD_HALF = 64 };

/* Outputs without gaps, every packet aligned to its size; NULL where not wanted. Positions may lie anywhere, and so may
 * each batch's frequencies, which are contiguous. */
typedef struct rotary_embedding_forward_rows_params {
  rg_device_tensor position_ids; /* [B, S] */
  const float *inv_freq;
  int64_t inv_freq_stride; /* elements from one batch's frequencies to the next one's; 0: one set serves all */
  float *emb;
  void *cos, *sin;
  uint32_t rows, seq_len;
  /* The batch of row i is i * batch_multiplier >> batch_shift. */
  uint32_t batch_multiplier, batch_shift;
  uint32_t half; /* D/2 */
  float scaling;
} rotary_embedding_forward_rows_params;

typedef struct rotary_embedding_forward_general_params {
  rg_device_tensor position_ids, inv_freq, emb, cos, sin;
  int64_t angles, seq_len, half; /* angles: B * S * half */
  double scaling;
} rotary_embedding_forward_general_params;

#endif
