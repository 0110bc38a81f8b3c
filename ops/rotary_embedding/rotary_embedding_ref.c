/* The float64 reference of rotary_embedding, both directions. Formulas: rotary_embedding.h. */
#include <math.h>

#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "src/spec/reference.h"

void rg_rotary_embedding_backward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S], D = p->dim[DIM_D];
  const rg_rotary_embedding_backward_args *args = p->args;
  const double scaling = rg_rotary_embedding_scaling(args->attention_scaling, p->tensor[EMB].dtype);
  rg_reference_output *grad_position = &out[GRAD_POSITION_IDS];
  grad_position->terms = 2 * D; /* two gradients for each of the D columns */
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < S; ++s) {
      long double sum = 0; /* so that for float64 tensors too it is better than what it is compared with */
      double magnitude = 0.0;
      for (int64_t j = 0; j < D / 2; ++j) {
        const double gc1 = rg_ref_read(&p->tensor[GRAD_COS], b, s, j, 0);
        const double gc2 = rg_ref_read(&p->tensor[GRAD_COS], b, s, j + D / 2, 0);
        const double gs1 = rg_ref_read(&p->tensor[GRAD_SIN], b, s, j, 0);
        const double gs2 = rg_ref_read(&p->tensor[GRAD_SIN], b, s, j + D / 2, 0);
        const double theta = rg_ref_read(&p->tensor[EMB], b, s, j, 0);
        const double inv_freq = rg_ref_read(&p->tensor[INV_FREQ], b, j, 0, 0);
        sum += inv_freq * ((gs1 + gs2) * cos(theta) - (gc1 + gc2) * sin(theta));
        magnitude += fabs(inv_freq) * (fabs(gs1) + fabs(gs2) + fabs(gc1) + fabs(gc2));
      }
      const int64_t at = rg_ref_place(&p->tensor[GRAD_POSITION_IDS], b, s, 0, 0);
      grad_position->value[at] = (double)(scaling * sum);
      grad_position->magnitude[at] = fabs(scaling) * magnitude;
    }
  }
}

static void set(rg_reference_output *out, int64_t at, double value, double magnitude) {
  if (out->value == NULL) return;
  out->value[at] = value;
  out->magnitude[at] = magnitude;
}

void rg_rotary_embedding_forward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t B = p->dim[DIM_B], S = p->dim[DIM_S], D = p->dim[DIM_D];
  const rg_rotary_embedding_forward_args *args = p->args;
  const double scaling = rg_rotary_embedding_scaling(args->attention_scaling, p->tensor[FORWARD_INV_FREQ].dtype);
  const rg_dtype angle = p->tensor[FORWARD_INV_FREQ].dtype;
  out[FORWARD_EMB].terms = out[FORWARD_COS].terms = out[FORWARD_SIN].terms = 1;
  for (int64_t b = 0; b < B; ++b) {
    for (int64_t s = 0; s < S; ++s) {
      const double position = rg_dtype_round(angle, rg_ref_read(&p->tensor[FORWARD_POSITION_IDS], b, s, 0, 0));
      for (int64_t d = 0; d < D; ++d) {
        const double inv_freq = rg_ref_read(&p->tensor[FORWARD_INV_FREQ], b, d % (D / 2), 0, 0);
        const double theta = rg_dtype_round(angle, position * inv_freq);
        const int64_t at = (b * S + s) * D + d;
        set(&out[FORWARD_EMB], at, theta, fabs(theta));
        set(&out[FORWARD_COS], at, scaling * cos(theta), fabs(scaling));
        set(&out[FORWARD_SIN], at, scaling * sin(theta), fabs(scaling));
      }
    }
  }
}
