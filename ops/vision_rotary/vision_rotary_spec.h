/* What the files of this folder share: the order of the tensors and dims. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_SPEC_H
#define ROPEGRAD_OPS_VISION_ROTARY_SPEC_H

#include "ropegrad/vision_rotary.h"
#include "src/spec/operator.h"

/* num_images and max_grid_size only describe where the patches come from: no tensor has them. */
enum { DIM_IMAGES, DIM_P, DIM_GRID, DIM_D, NUM_DIMS };

/* A row of D columns is four quarters of Q; the positions weigh them row, column, row, column. */
enum { QUARTERS = 4, POSITION_AXES = 2 };

/* Backward. */
enum { GRAD_COS, GRAD_SIN, EMB, POS_IDS, INV_FREQ, GRAD_INV_FREQ, NUM_BACKWARD_TENSORS };

/* Forward. */
enum { FORWARD_INV_FREQ, FORWARD_POS_IDS, FORWARD_EMB, FORWARD_COS, FORWARD_SIN, NUM_FORWARD_TENSORS };

void rg_vision_rotary_backward_reference(const rg_problem *problem, rg_reference_output *out);
void rg_vision_rotary_forward_reference(const rg_problem *problem, rg_reference_output *out);

#endif
