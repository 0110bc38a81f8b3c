/* vision_rotary: a vision model's rotary embedding, and its gradient with respect to the inverse frequencies.
 *
 * The forward pass turns the grid position of each patch, row pos_ids[p, 0] and column pos_ids[p, 1], into angles: with
 * Q = D/4 frequencies and a = 0, 1,
 *     emb[p, a*Q + j] = emb[p, D/2 + a*Q + j] = pos_ids[p, a] * inv_freq[j]
 *     cos = cos(emb)        sin = sin(emb)
 * and so, with the gradient of the angles
 *     ge = -grad_cos * sin(emb) + grad_sin * cos(emb),
 * the gradient of the inverse frequencies is
 *     grad_inv_freq[j] = sum over p and a of pos_ids[p, a] * (ge[p, a*Q + j] + ge[p, D/2 + a*Q + j]).
 *
 * Sizes: P patches (of all images together), D head_dim (a positive multiple of 4), Q = D/4. P may be 0: the gradient
 * is then 0. The halves of emb may differ: both are read. */
#ifndef ROPEGRAD_VISION_ROTARY_H
#define ROPEGRAD_VISION_ROTARY_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rg_vision_rotary_backward_args {
  /* Inputs. */
  const DLTensor *grad_cos; /* [P, D] float32, bfloat16, float16 or float64: gradient of the forward's cos */
  const DLTensor *grad_sin; /* [P, D] dtype of grad_cos: gradient of the forward's sin */
  const DLTensor *emb;      /* [P, D] float32 (float64 with float64 gradients): the forward's angles, in radians */
  const DLTensor *pos_ids;  /* [P, 2] int64: row and column of each patch, any values */
  const DLTensor *inv_freq; /* [Q] dtype of emb, or NULL: the forward's inverse frequencies. The gradient does not
                               depend on their values: shape and dtype are checked, the data is never read and may be
                               NULL */
  /* Output. */
  const DLTensor *grad_inv_freq; /* [Q] dtype of emb */
} rg_vision_rotary_backward_args;

/* Computes the gradient of the inverse frequencies; sin and cos are accurate for every finite angle, however large. The
 * sum over patches is taken in an order that depends on P and D alone, with double-precision partial sums.
 *
 * RG_ERR_NULL       context, args, a tensor other than inv_freq, its shape or its data is NULL
 * RG_ERR_RANK       inv_freq or grad_inv_freq has not 1 dimension, or another tensor not 2
 * RG_ERR_SHAPE      two tensors disagree in a size, head_dim is 0 or no multiple of 4, or pos_ids has not 2 columns
 * RG_ERR_DTYPE      a dtype other than those listed above, or float64 beside another floating dtype
 * RG_ERR_STRIDE     a tensor's first element is not aligned to its element size
 * RG_ERR_ALIAS      grad_inv_freq overlaps itself or an input that is read
 * RG_ERR_OVERFLOW   sizes or strides past the address space
 * RG_ERR_DEVICE     a tensor lives on another device than the context */
RG_API rg_status rg_vision_rotary_backward(rg_context *context, const rg_vision_rotary_backward_args *args);

typedef struct rg_vision_rotary_forward_args {
  /* Inputs. */
  const DLTensor *inv_freq; /* [Q] float32, or float64 with float64 tables: the inverse frequencies */
  const DLTensor *pos_ids;  /* [P, 2] int64: row and column of each patch, any values; used in the dtype of inv_freq */
  /* Outputs. */
  const DLTensor *emb; /* [P, D] dtype of inv_freq: the angles, which the backward pass is given */
  const DLTensor *cos; /* [P, D] float32, bfloat16, float16 or float64 */
  const DLTensor *sin; /* [P, D] dtype of cos */
} rg_vision_rotary_forward_args;

/* Computes the wanted ones of emb, cos and sin. An angle is the product rounded to the dtype of emb, whether emb is
 * wanted or not, so that the tables and the backward pass speak of the same angle; cos and sin of it are accurate for
 * every finite angle, however large, and rounded once.
 *
 * RG_ERR_NULL       context, args, an input, a tensor's shape or its data is NULL, or no output is wanted
 * RG_ERR_ALIAS      an output overlaps itself, an input or another output
 * and RG_ERR_RANK, _SHAPE, _DTYPE, _STRIDE, _OVERFLOW and _DEVICE as for the backward pass. */
RG_API rg_status rg_vision_rotary_forward(rg_context *context, const rg_vision_rotary_forward_args *args);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_VISION_ROTARY_H */
