/* rotary_embedding: a rotary embedding's tables, and their gradient with respect to the positions.
 *
 * The forward pass, with j counting the D/2 frequencies,
 *     theta[b,s,j] = position_ids[b,s] * inv_freq_expanded[b,j,0]        emb = concat(theta, theta)
 *     cos = cos(emb) * attention_scaling                                 sin = sin(emb) * attention_scaling
 * and so, with gc and gs the incoming gradients of cos and sin,
 *     grad_position_ids[b,s] = attention_scaling * sum over j of inv_freq_expanded[b,j,0] *
 *         ((gs[b,s,j] + gs[b,s,j+D/2]) * cos(emb[b,s,j]) - (gc[b,s,j] + gc[b,s,j+D/2]) * sin(emb[b,s,j])).
 *
 * Sizes: B batch, S sequence, D head_dim (even, at least 2). B and S may be 0. */
#ifndef ROPEGRAD_ROTARY_EMBEDDING_H
#define ROPEGRAD_ROTARY_EMBEDDING_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rg_rotary_embedding_backward_args {
  /* Inputs. */
  const DLTensor *grad_cos; /* [B, S, D] float32, bfloat16, float16 or float64: gradient of the forward's cos */
  const DLTensor *grad_sin; /* [B, S, D] dtype of grad_cos: gradient of the forward's sin */
  const DLTensor *emb;      /* [B, S, D] float32 (float64 with float64 gradients): the forward's angles, in radians.
                               Only the first half of the last dimension is read: the second repeats it */
  const DLTensor *inv_freq_expanded; /* [B, D/2, 1] dtype of emb: radians per position. One set of frequencies for every
                                        batch is passed expanded, with a stride of 0 over B */
  /* Option. */
  double attention_scaling; /* the factor on cos and sin, 1 where the model has none; rounded to float32 unless the
                               tensors are float64 */
  /* Output. */
  const DLTensor *grad_position_ids; /* [B, S] dtype of emb */
} rg_rotary_embedding_backward_args;

/* Computes the gradient of the positions; sin and cos are accurate for every finite angle, however large.
 *
 * RG_ERR_NULL       context, args, a tensor, its shape or its data is NULL
 * RG_ERR_RANK       a tensor has another number of dimensions than listed above
 * RG_ERR_SHAPE      two tensors disagree in a size, or head_dim is odd or 0
 * RG_ERR_DTYPE      a dtype other than those listed above, or float64 beside another dtype
 * RG_ERR_STRIDE     a tensor's first element is not aligned to its element size
 * RG_ERR_ALIAS      grad_position_ids overlaps itself or an input
 * RG_ERR_OVERFLOW   sizes or strides past the address space
 * RG_ERR_DEVICE     a tensor lives on another device than the context */
RG_API rg_status rg_rotary_embedding_backward(rg_context *context, const rg_rotary_embedding_backward_args *args);

typedef struct rg_rotary_embedding_forward_args {
  /* Inputs. */
  const DLTensor *position_ids;      /* [B, S] int64, int32 or the dtype of inv_freq_expanded, in which they are used.
                                        One row of positions for every batch is passed expanded, with a stride of 0 */
  const DLTensor *inv_freq_expanded; /* [B, D/2, 1] float32, or float64 with float64 tables: radians per position. One
                                        set of frequencies for every batch is passed expanded, with a stride of 0 */
  /* Option. */
  double attention_scaling; /* the factor on cos and sin, 1 where the model has none; rounded to float32 unless the
                               tensors are float64 */
  /* Outputs. */
  const DLTensor *emb; /* [B, S, D] dtype of inv_freq_expanded: the angles, which the backward pass is given */
  const DLTensor *cos; /* [B, S, D] float32, bfloat16, float16 or float64 */
  const DLTensor *sin; /* [B, S, D] dtype of cos */
} rg_rotary_embedding_forward_args;

/* Computes the wanted ones of emb, cos and sin. An angle is the product rounded to the dtype of emb, whether emb is
 * wanted or not, so that the tables and the backward pass speak of the same angle; cos and sin of it are accurate for
 * every finite angle, however large, and rounded once.
 *
 * RG_ERR_NULL       context, args, an input, a tensor's shape or its data is NULL, or no output is wanted
 * RG_ERR_ALIAS      an output overlaps itself, an input or another output
 * and RG_ERR_RANK, _SHAPE, _DTYPE, _STRIDE, _OVERFLOW and _DEVICE as for the backward pass. */
RG_API rg_status rg_rotary_embedding_forward(rg_context *context, const rg_rotary_embedding_forward_args *args);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROTARY_EMBEDDING_H */
