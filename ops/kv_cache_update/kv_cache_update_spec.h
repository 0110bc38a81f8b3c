/* What the files of this folder share: the order of the tensors and dims, and how the reference and the kernels read
 * the tables, the positions and the options. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_SPEC_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_SPEC_H

#include "ropegrad/kv_cache_update.h"
#include "src/spec/operator.h"

/* DIM_H counts key-value heads, DIM_R is derived: the option rotary_dim, or head_dim. */
enum { DIM_B, DIM_N, DIM_M, DIM_H, DIM_D, DIM_R, NUM_DIMS };

/* Backward. */
enum {
  GRAD_KEY_CACHE,
  GRAD_VALUE_CACHE,
  KEY_STATES,
  COS,
  SIN,
  CACHE_POSITION,
  GRAD_KEY_STATES,
  GRAD_VALUE_STATES,
  GRAD_COS,
  GRAD_SIN,
  GRAD_KEY_CACHE_INPUT,
  GRAD_VALUE_CACHE_INPUT,
  NUM_BACKWARD_TENSORS
};

/* Forward. */
enum {
  FORWARD_KEY_CACHE_INPUT,
  FORWARD_VALUE_CACHE_INPUT,
  FORWARD_KEY_STATES,
  FORWARD_VALUE_STATES,
  FORWARD_COS,
  FORWARD_SIN,
  FORWARD_CACHE_POSITION,
  FORWARD_KEY_CACHE,
  FORWARD_VALUE_CACHE,
  NUM_FORWARD_TENSORS
};

/* Entry n of a [N] tensor of positions. */
static inline int64_t rg_kv_cache_update_position(const rg_tensor *positions, int64_t n) {
  return rg_dtype_read_index(positions->dtype, positions->data, n * positions->stride[0]);
}

/* The dtype that `rounding = eager` rounds the product of an a and a b to. */
static inline rg_dtype rg_kv_cache_update_promote(rg_dtype a, rg_dtype b) { return a == b ? a : RG_F32; }

void rg_kv_cache_update_backward_reference(const rg_problem *problem, rg_reference_output *out);
void rg_kv_cache_update_forward_reference(const rg_problem *problem, rg_reference_output *out);

#endif
