/* The float64 reference of vision_rotary, both directions. Formulas: vision_rotary.h. */
#include <math.h>

#include "ops/vision_rotary/vision_rotary_spec.h"
#include "src/spec/reference.h"

/* Column d of a row lies in quarter d / Q; quarters 0 and 2 belong to the patch's row, 1 and 3 to its column. */
static double position(const rg_tensor *pos_ids, int64_t p, int64_t quarter) {
  return rg_ref_read(pos_ids, p, quarter % POSITION_AXES, 0, 0);
}

void rg_vision_rotary_backward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t P = p->dim[DIM_P], D = p->dim[DIM_D], Q = D / QUARTERS;
  rg_reference_output *grad_inv_freq = &out[GRAD_INV_FREQ];
  grad_inv_freq->terms = QUARTERS * P;
  for (int64_t j = 0; j < Q; ++j) {
    long double sum = 0; /* so that for float64 tensors too it is better than what it is compared with */
    double magnitude = 0;
    for (int64_t patch = 0; patch < P; ++patch) {
      for (int64_t d = j; d < D; d += Q) {
        const double weight = position(&p->tensor[POS_IDS], patch, d / Q);
        const double gc = rg_ref_read(&p->tensor[GRAD_COS], patch, d, 0, 0);
        const double gs = rg_ref_read(&p->tensor[GRAD_SIN], patch, d, 0, 0);
        const double angle = rg_ref_read(&p->tensor[EMB], patch, d, 0, 0);
        sum += weight * (-gc * sin(angle) + gs * cos(angle));
        magnitude += fabs(weight) * (fabs(gc) + fabs(gs));
      }
    }
    grad_inv_freq->value[j] = (double)sum;
    grad_inv_freq->magnitude[j] = magnitude;
  }
}

static void set(rg_reference_output *out, int64_t at, double value, double magnitude) {
  if (out->value == NULL) return;
  out->value[at] = value;
  out->magnitude[at] = magnitude;
}

void rg_vision_rotary_forward_reference(const rg_problem *p, rg_reference_output *out) {
  const int64_t P = p->dim[DIM_P], D = p->dim[DIM_D], Q = D / QUARTERS;
  const rg_dtype dtype = p->tensor[FORWARD_INV_FREQ].dtype;
  out[FORWARD_EMB].terms = out[FORWARD_COS].terms = out[FORWARD_SIN].terms = 1;
  for (int64_t patch = 0; patch < P; ++patch) {
    for (int64_t d = 0; d < D; ++d) {
      const double inv_freq = rg_ref_read(&p->tensor[FORWARD_INV_FREQ], d % Q, 0, 0, 0);
      const double weight = rg_dtype_round(dtype, position(&p->tensor[FORWARD_POS_IDS], patch, d / Q));
      const double angle = rg_dtype_round(dtype, weight * inv_freq);
      const int64_t at = patch * D + d;
      set(&out[FORWARD_EMB], at, angle, fabs(angle));
      set(&out[FORWARD_COS], at, cos(angle), 1.0);
      set(&out[FORWARD_SIN], at, sin(angle), 1.0);
    }
  }
}
