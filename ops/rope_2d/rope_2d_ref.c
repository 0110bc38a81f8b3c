/* The float64 reference of rope_2d, both directions. Formulas: rope_2d.h. */
#include <math.h>

#include "ops/rope_2d/rope_2d_spec.h"
#include "src/spec/reference.h"

void rg_rope_2d_backward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S], D = p->dim[DIM_D];
  rg_reference_output *grad_theta = &out[GRAD_IDX_THETA];
  grad_theta->terms = 2;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < S; ++s) {
      for (int64_t d = 0; d < D; ++d) {
        const double gc = rg_ref_read(&p->tensor[GRAD_COS], b, s, d, 0);
        const double gs = rg_ref_read(&p->tensor[GRAD_SIN], b, s, d, 0);
        const double theta = rg_ref_read(&p->tensor[IDX_THETA], b, s, d, 0);
        const int64_t at = rg_ref_place(&p->tensor[GRAD_IDX_THETA], b, s, d, 0);
        grad_theta->value[at] = -gc * sin(theta) + gs * cos(theta);
        grad_theta->magnitude[at] = fabs(gc) + fabs(gs);
      }
    }
  }
}

void rg_rope_2d_forward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S], D = p->dim[DIM_D];
  out[FORWARD_COS].terms = out[FORWARD_SIN].terms = 1;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < S; ++s) {
      for (int64_t d = 0; d < D; ++d) {
        const double theta = rg_ref_read(&p->tensor[FORWARD_IDX_THETA], b, s, d, 0);
        const int64_t at = (b * S + s) * D + d;
        if (out[FORWARD_COS].value) {
          out[FORWARD_COS].value[at] = cos(theta);
          out[FORWARD_COS].magnitude[at] = 1.0;
        }
        if (out[FORWARD_SIN].value) {
          out[FORWARD_SIN].value[at] = sin(theta);
          out[FORWARD_SIN].magnitude[at] = 1.0;
        }
      }
    }
  }
}
