/* kv_cache_update: new keys and values, the keys rotated, written into a key-value cache, and the six gradients.
 *
 * The forward pass, with rotate_half(x) = (-x2, x1) on the first rotary_dim columns, the others unchanged,
 *     key_cache = key_cache_input        with row cache_position[i] := key_states[i] * cos[i] +
 *                                                                      rotate_half(key_states[i]) * sin[i]
 *     value_cache = value_cache_input    with row cache_position[i] := value_states[i]
 * and so, with g = grad_key_cache[:, :, cache_position] and the indices 1 and 2 for the two elements of a pair,
 *     grad_key_states         = (g1*c1 + g2*s2, g2*c2 - g1*s1); columns from rotary_dim on: g
 *     grad_value_states       = grad_value_cache[:, :, cache_position]
 *     grad_cos                = sum over heads of g * key_states
 *     grad_sin                = sum over heads of (-g1*k2, g2*k1)
 *     grad_key_cache_input    = grad_key_cache with the rows that cache_position names set to zero
 *     grad_value_cache_input  = grad_value_cache likewise.
 *
 * Sizes: B batch, Hk key-value heads, M cache rows (max_seq_len), N new rows (new_seq_len), D head_dim (even, at least
 * 2), R rotary_dim. B, Hk, M and N may be 0, and N may exceed M. */
#ifndef ROPEGRAD_KV_CACHE_UPDATE_H
#define ROPEGRAD_KV_CACHE_UPDATE_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

/* When products are rounded. */
typedef enum rg_rounding {
  RG_ROUNDING_ONCE = 0, /* arithmetic in float32 (float64 for float64 tensors), one rounding when a result is stored */
  RG_ROUNDING_EAGER = 1 /* each product first rounded to the dtype that its two factors promote to, as a framework does
                           that runs every multiplication on its own; sums in float32. Promotion: two different dtypes
                           give float32 */
} rg_rounding;

typedef struct rg_kv_cache_update_backward_args {
  /* Inputs. */
  const DLTensor *grad_key_cache;   /* [B, Hk, M, D] float32, bfloat16, float16 or float64 */
  const DLTensor *grad_value_cache; /* [B, Hk, M, D] any of these dtypes too */
  const DLTensor *key_states;       /* [B, Hk, N, D] dtype of grad_key_cache: the keys before rotation */
  const DLTensor *cos;              /* [B or 1, N, R] float32, or the dtype of a cache */
  const DLTensor *sin;              /* [B or 1, N, R] dtype of cos */
  const DLTensor *cache_position;   /* [N] int64 or int32, in any order: the cache row of each new row, below M. A
                                       negative entry means that its new row is padding and was not written. Where an
                                       entry repeats, each of its new rows receives the whole gradient of the cache
                                       row, as if each were the one that was kept */
  /* Options. */
  bool in_place;        /* grad_key_cache_input and grad_value_cache_input, where wanted, are the very tensors
                           grad_key_cache and grad_value_cache: only rows named by cache_position are written */
  rg_rounding rounding; /* see above */
  rg_style style;       /* which columns form the pairs */
  int64_t rotary_dim;   /* R: even, 2 <= R <= D; 0 stands for D */
  /* Outputs. */
  const DLTensor *grad_key_states;        /* [B, Hk, N, D] dtype of grad_key_cache; rows of negative entries: zero */
  const DLTensor *grad_value_states;      /* [B, Hk, N, D] dtype of grad_value_cache; likewise */
  const DLTensor *grad_cos;               /* [B or 1, N, R] dtype of cos; likewise. See below */
  const DLTensor *grad_sin;               /* [B or 1, N, R] dtype of cos; likewise. See below */
  const DLTensor *grad_key_cache_input;   /* [B, Hk, M, D] dtype of grad_key_cache */
  const DLTensor *grad_value_cache_input; /* [B, Hk, M, D] dtype of grad_value_cache */
} rg_kv_cache_update_backward_args;

/* Computes the wanted gradients. cos and sin are read for grad_key_states alone, key_states for grad_cos and grad_sin
 * alone, and each cache for its own outputs alone.
 *
 * A table of batch size 1 serves every batch. Its gradient has batch size 1 too, and then sums over the batches. A
 * table expanded over B batches (a batch stride of 0) takes a gradient of either size; a table of B batches one of B.
 *
 * RG_ERR_NULL       context, args, a needed tensor, its shape or its data is NULL, or no output is wanted
 * RG_ERR_RANK       a tensor has another number of dimensions than listed above
 * RG_ERR_SHAPE      two tensors disagree in a size, head_dim is odd or 0, or grad_cos or grad_sin has not its table's
 *                   batches
 * RG_ERR_DTYPE      a dtype other than those listed above, or float64 beside another dtype
 * RG_ERR_STRIDE     a tensor's first element is not aligned to its element size
 * RG_ERR_ALIAS      an output overlaps itself, an input or another output (in_place aside); or, with in_place, a
 *                   cache's gradient is another tensor than the one it replaces
 * RG_ERR_RANGE      rotary_dim, rounding or style is out of range, or an entry of cache_position is M or more; on CUDA
 *                   rg_context_check says the latter, and the new row's gradients are zero
 * RG_ERR_OVERFLOW   sizes or strides past the address space
 * RG_ERR_DEVICE     a tensor lives on another device than the context */
RG_API rg_status rg_kv_cache_update_backward(rg_context *context, const rg_kv_cache_update_backward_args *args);

typedef struct rg_kv_cache_update_forward_args {
  /* Inputs. The key tensors, cos and sin are for key_cache alone, the value tensors for value_cache alone; those that are
   * not needed are not read and may be NULL. */
  const DLTensor *key_cache_input;   /* [B, Hk, M, D] float32, bfloat16, float16 or float64 */
  const DLTensor *value_cache_input; /* [B, Hk, M, D] any of these dtypes too */
  const DLTensor *key_states;        /* [B, Hk, N, D] dtype of key_cache_input: the new keys, before rotation */
  const DLTensor *value_states;      /* [B, Hk, N, D] dtype of value_cache_input: the new values */
  const DLTensor *cos;               /* [B or 1, N, R] float32, or the dtype of a cache */
  const DLTensor *sin;               /* [B or 1, N, R] dtype of cos */
  const DLTensor *cache_position;    /* [N] int64 or int32, in any order: the cache row of each new row, below M. A
                                        negative entry means that its new row is padding and is not written. Where an
                                        entry repeats, the cache keeps the last of its new rows */
  /* Options; zeroed they are the usual ones. */
  bool in_place;      /* key_cache and value_cache, where wanted, are the very tensors key_cache_input and
                         value_cache_input: only rows named by cache_position are written */
  rg_style style;     /* which columns form the pairs */
  int64_t rotary_dim; /* R: even, 2 <= R <= D; 0 stands for D */
  /* Outputs. */
  const DLTensor *key_cache;   /* [B, Hk, M, D] dtype of key_cache_input */
  const DLTensor *value_cache; /* [B, Hk, M, D] dtype of value_cache_input */
} rg_kv_cache_update_forward_args;

/* Computes the wanted ones of the two caches. Keys are rotated in float32 (float64 for float64 tensors) and rounded
 * once; everything else is copied bit for bit.
 *
 * RG_ERR_NULL       context, args, a needed tensor, its shape or its data is NULL, or no output is wanted
 * RG_ERR_ALIAS      an output overlaps itself, an input or the other output (in_place aside); or, with in_place, a
 *                   cache is another tensor than the one it replaces
 * RG_ERR_RANGE      rotary_dim or style is out of range, or an entry of cache_position is M or more: on the CPU nothing
 *                   is written then; on CUDA the entry's row is not, and rg_context_check says so
 * and RG_ERR_RANK, _SHAPE, _DTYPE, _STRIDE, _OVERFLOW and _DEVICE as for the backward pass. */
RG_API rg_status rg_kv_cache_update_forward(rg_context *context, const rg_kv_cache_update_forward_args *args);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_KV_CACHE_UPDATE_H */
