/* rope_apply: rotary embeddings applied to q and k, and the gradient with respect to q, k, cos and sin.
 *
 * The forward pass rotates the first R = rotary_dim elements of every head, with cos and sin shared by all heads, and
 * passes the other D - R through. For x = q and x = k, on each pair (x1, x2) of those R elements,
 *     y1 = x1*c1 - x2*s1          y2 = x2*c2 + x1*s2,
 * where (c1, c2) and (s1, s2) are the elements of cos and sin in the same two columns. With g the gradient of y:
 *     grad_cos = sum over all heads of q and k of (g1*x1, g2*x2)
 *     grad_sin = sum over all heads of q and k of (-g1*x2, g2*x1)
 *     grad_x   = (g1*c1 + g2*s2, g2*c2 - g1*s1)                    (see rg_sin_pairing)
 *     grad_x   = g past rotary_dim, bit for bit.
 *
 * Sizes: B batch, S sequence, Hq and Hk heads of q and of k, D head_dim (even, at least 2), R rotary_dim. B, S, Hq and
 * Hk may be 0; a sum over no head is 0. */
#ifndef ROPEGRAD_ROPE_APPLY_H
#define ROPEGRAD_ROPE_APPLY_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Which element of sin meets which gradient. Both give the same wherever the two elements of sin that rotate a pair are
 * equal, as they are in every table made from angles. */
typedef enum rg_sin_pairing {
  RG_SIN_ADJOINT = 0,  /* (g1*c1 + g2*s2, g2*c2 - g1*s1): the true gradient of the forward pass */
  RG_SIN_SAME_HALF = 1 /* (g1*c1 + g2*s1, g2*c2 - g1*s2), which is g*cos - rotate_half(g)*sin */
} rg_sin_pairing;

typedef struct rg_rope_apply_backward_args {
  /* Inputs. Those that no wanted output needs are not read and may be NULL. */
  const DLTensor *grad_q_embed; /* [B, Hq, S, D] float32, bfloat16, float16 or float64: gradient of the rotated q; for
                                   grad_q, grad_cos and grad_sin */
  const DLTensor *grad_k_embed; /* [B, Hk, S, D] float32, bfloat16, float16 or float64, not necessarily as for q:
                                   gradient of the rotated k; for grad_k, grad_cos and grad_sin */
  const DLTensor *q;            /* [B, Hq, S, D] dtype of grad_q_embed: the forward's q; for grad_cos and grad_sin */
  const DLTensor *k;            /* [B, Hk, S, D] dtype of grad_k_embed: the forward's k; for grad_cos and grad_sin */
  const DLTensor *cos;          /* [B or 1, S, R] float32, or the dtype of q or of k: for grad_q and grad_k */
  const DLTensor *sin;          /* [B or 1, S, R] dtype of cos: for grad_q and grad_k */
  /* Outputs. */
  const DLTensor *grad_q;   /* [B, Hq, S, D] dtype of grad_q_embed */
  const DLTensor *grad_k;   /* [B, Hk, S, D] dtype of grad_k_embed */
  const DLTensor *grad_cos; /* [B or 1, S, R] dtype of cos; with a first size of 1 it sums over the batch too */
  const DLTensor *grad_sin; /* [B or 1, S, R] dtype of cos; likewise */
  /* Options; zeroed they are the usual ones. */
  int64_t rotary_dim;         /* R, even, 2 <= R <= D; 0 stands for D */
  rg_style style;             /* which columns make a pair: j and j + R/2, or 2j and 2j + 1 */
  rg_sin_pairing sin_pairing; /* of grad_q and grad_k; grad_cos and grad_sin do not depend on it */
} rg_rope_apply_backward_args;

/* Computes the wanted ones of the four gradients.
 *
 * Tables for every batch. cos and sin may have a first size of 1, or a batch stride of 0, and then serve every batch.
 * The gradient of a table has the table's own shape: where cos has a first size of 1 so has grad_cos, where it has B
 * separate batches grad_cos has B; where its batch stride is 0, or cos is NULL, grad_cos may be either, B gradients or
 * their one sum. The same holds for sin.
 *
 * RG_ERR_NULL       context or args is NULL, no output is wanted, or a needed tensor, its shape or its data is NULL
 * RG_ERR_RANK       a tensor has not 4 dimensions, or cos, sin or a gradient of theirs not 3
 * RG_ERR_SHAPE      two tensors disagree in a size, head_dim is odd or 0, or a table's gradient has not its batches
 * RG_ERR_DTYPE      a dtype other than those listed above, or float64 beside another dtype
 * RG_ERR_STRIDE     a tensor's first element is not aligned to its element size
 * RG_ERR_ALIAS      an output overlaps itself, an input or another output
 * RG_ERR_RANGE      rotary_dim is odd, negative or larger than head_dim, or style or sin_pairing has no such value
 * RG_ERR_OVERFLOW   sizes or strides past the address space
 * RG_ERR_DEVICE     a tensor lives on another device than the context */
RG_API rg_status rg_rope_apply_backward(rg_context *context, const rg_rope_apply_backward_args *args);

typedef struct rg_rope_apply_forward_args {
  /* Inputs. q is for q_embed alone and k for k_embed alone; one that is not needed is not read and may be NULL. */
  const DLTensor *q;   /* [B, Hq, S, D] float32, bfloat16, float16 or float64 */
  const DLTensor *k;   /* [B, Hk, S, D] float32, bfloat16, float16 or float64, not necessarily as q */
  const DLTensor *cos; /* [B or 1, S, R] float32, or the dtype of q or of k */
  const DLTensor *sin; /* [B or 1, S, R] dtype of cos */
  /* Options; zeroed they are the usual ones. */
  int64_t rotary_dim; /* R, even, 2 <= R <= D; 0 stands for D */
  rg_style style;     /* which columns make a pair: j and j + R/2, or 2j and 2j + 1 */
  bool in_place;      /* q_embed and k_embed, where wanted, are the very tensors q and k */
  /* Outputs. */
  const DLTensor *q_embed; /* [B, Hq, S, D] dtype of q */
  const DLTensor *k_embed; /* [B, Hk, S, D] dtype of k */
} rg_rope_apply_forward_args;

/* Rotates q and k, those whose results are wanted. Arithmetic is in float32 (float64 for float64 tensors) and each
 * result is rounded once; what lies past rotary_dim is passed through bit for bit.
 *
 * RG_ERR_NULL       context or args is NULL, no output is wanted, or a needed tensor, its shape or its data is NULL
 * RG_ERR_ALIAS      an output overlaps itself, an input or the other output (in_place aside); or, with in_place, an
 *                   output is another tensor than the one it replaces
 * RG_ERR_RANGE      rotary_dim is odd, negative or larger than head_dim, or style has no such value
 * and RG_ERR_RANK, _SHAPE, _DTYPE, _STRIDE, _OVERFLOW and _DEVICE as for the backward pass. */
RG_API rg_status rg_rope_apply_forward(rg_context *context, const rg_rope_apply_forward_args *args);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROPE_APPLY_H */
