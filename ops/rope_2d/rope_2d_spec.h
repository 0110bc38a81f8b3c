/* What the files of this folder share: the order of the tensors and dims. */
#ifndef ROPEGRAD_OPS_ROPE_2D_SPEC_H
#define ROPEGRAD_OPS_ROPE_2D_SPEC_H

#include "ropegrad/rope_2d.h"
#include "src/spec/operator.h"

enum { DIM_B, DIM_S, DIM_D, NUM_DIMS };

/* Backward. */
enum { GRAD_COS, GRAD_SIN, IDX_THETA, GRAD_IDX_THETA, NUM_BACKWARD_TENSORS };

/* Forward. */
enum { FORWARD_IDX_THETA, FORWARD_COS, FORWARD_SIN, NUM_FORWARD_TENSORS };

void rg_rope_2d_backward_reference(const rg_problem *problem, rg_reference_output *out);
void rg_rope_2d_forward_reference(const rg_problem *problem, rg_reference_output *out);

#endif
