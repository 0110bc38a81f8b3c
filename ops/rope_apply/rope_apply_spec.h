/* What the files of this folder share: the order of the tensors and dims. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_SPEC_H
#define ROPEGRAD_OPS_ROPE_APPLY_SPEC_H

#include "ropegrad/rope_apply.h"
#include "src/spec/operator.h"

enum { DIM_B, DIM_HQ, DIM_HK, DIM_S, DIM_D, DIM_R, NUM_DIMS };

/* Backward. */
enum { GRAD_Q_EMBED, GRAD_K_EMBED, Q, K, COS, SIN, GRAD_Q, GRAD_K, GRAD_COS, GRAD_SIN, NUM_BACKWARD_TENSORS };

/* Forward. */
enum { FORWARD_Q, FORWARD_K, FORWARD_COS, FORWARD_SIN, FORWARD_Q_EMBED, FORWARD_K_EMBED, NUM_FORWARD_TENSORS };

/* Is the gradient of a table one sum over the batch? */
static inline bool rope_apply_sums_batch(const rg_problem *problem, int grad_table) {
  return rg_given(problem, grad_table) && problem->tensor[grad_table].shape[0] != problem->dim[DIM_B];
}

void rg_rope_apply_backward_reference(const rg_problem *problem, rg_reference_output *out);
void rg_rope_apply_forward_reference(const rg_problem *problem, rg_reference_output *out);

#endif
