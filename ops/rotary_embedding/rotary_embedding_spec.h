/* What the files of this folder share: the order of the tensors and dims, and the value of the scaling. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_SPEC_H
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_SPEC_H

#include "ropegrad/rotary_embedding.h"
#include "src/spec/operator.h"

enum { DIM_B, DIM_S, DIM_D, NUM_DIMS };

/* Backward. */
enum { GRAD_COS, GRAD_SIN, EMB, INV_FREQ, GRAD_POSITION_IDS, NUM_BACKWARD_TENSORS };

/* Forward. */
enum { FORWARD_POSITION_IDS, FORWARD_INV_FREQ, FORWARD_EMB, FORWARD_COS, FORWARD_SIN, NUM_FORWARD_TENSORS };

/* The scaling that reference and kernels use: beside float32 angles it is a float32 itself. */
static inline double rg_rotary_embedding_scaling(double attention_scaling, rg_dtype angle_dtype) {
  return angle_dtype == RG_F64 ? attention_scaling : (double)(float)attention_scaling;
}

void rg_rotary_embedding_backward_reference(const rg_problem *problem, rg_reference_output *out);
void rg_rotary_embedding_forward_reference(const rg_problem *problem, rg_reference_output *out);

#endif
