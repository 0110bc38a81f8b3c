/* rope_2d: batched 2D RoPE position encoding, and its gradient with respect to the angles.
 *
 * The forward pass is element by element
 *     cos = cos(idx_theta)        sin = sin(idx_theta)
 * and so the gradient of the angles is
 *     grad_idx_theta = -grad_cos * sin(idx_theta) + grad_sin * cos(idx_theta).
 *
 * Sizes: B batch, S sequence, D head_dim (even, at least 2). B and S may be 0. */
#ifndef ROPEGRAD_ROPE_2D_H
#define ROPEGRAD_ROPE_2D_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rg_rope_2d_backward_args {
  /* Inputs. */
  const DLTensor *grad_cos;  /* [B, S, D] float32, bfloat16, float16 or float64: gradient of the forward's cos */
  const DLTensor *grad_sin;  /* [B, S, D] dtype of grad_cos: gradient of the forward's sin */
  const DLTensor *idx_theta; /* [B, S, D] float32 (float64 with float64 gradients): the forward's angles, in radians */
  /* Output. */
  const DLTensor *grad_idx_theta; /* [B, S, D] dtype of idx_theta */
} rg_rope_2d_backward_args;

/* Computes the gradient of the angles; sin and cos are accurate for every finite angle, however large.
 *
 * RG_ERR_NULL       context, args, a tensor, its shape or its data is NULL
 * RG_ERR_RANK       a tensor has not 3 dimensions
 * RG_ERR_SHAPE      two tensors disagree in a size, or head_dim is odd or 0
 * RG_ERR_DTYPE      a dtype other than those listed above, or float64 beside another dtype
 * RG_ERR_STRIDE     a tensor's first element is not aligned to its element size
 * RG_ERR_ALIAS      grad_idx_theta overlaps itself or an input
 * RG_ERR_OVERFLOW   sizes or strides past the address space
 * RG_ERR_DEVICE     a tensor lives on another device than the context */
RG_API rg_status rg_rope_2d_backward(rg_context *context, const rg_rope_2d_backward_args *args);

typedef struct rg_rope_2d_forward_args {
  /* Input. */
  const DLTensor *idx_theta; /* [B, S, D] float32, or float64 with float64 tables: the angles, in radians */
  /* Outputs. */
  const DLTensor *cos; /* [B, S, D] float32, bfloat16, float16 or float64 */
  const DLTensor *sin; /* [B, S, D] dtype of cos */
} rg_rope_2d_forward_args;

/* Computes the wanted ones of cos and sin, accurate for every finite angle, however large, and rounded once.
 *
 * RG_ERR_NULL       context, args, idx_theta, a tensor's shape or its data is NULL, or no output is wanted
 * RG_ERR_ALIAS      an output overlaps itself, idx_theta or the other output
 * and RG_ERR_RANK, _SHAPE, _DTYPE, _STRIDE, _OVERFLOW and _DEVICE as for the backward pass. */
RG_API rg_status rg_rope_2d_forward(rg_context *context, const rg_rope_2d_forward_args *args);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROPE_2D_H */
