/* The accuracy contract of docs and spec: how much of the allowed error an output element uses. */
#include <math.h>

#include "ropegrad/ropegrad_dev.h"

double rg_dev_allowance_used(rg_dtype dtype, double value, double reference, double magnitude, int64_t terms) {
  if (isnan(reference)) return isnan(value) ? 0.0 : (double)INFINITY;
  if (magnitude == RG_EXACT) {
    const bool same = value == reference && signbit(value) == signbit(reference);
    return same ? 0.0 : (double)INFINITY;
  }
  if (isinf(reference)) return value == reference ? 0.0 : (double)INFINITY;
  /* A float64 output is compared with a reference that rounds as it does itself, so both may use the allowance. */
  const double u = rg_dtype_unit_roundoff(dtype == RG_F64 ? RG_F64 : RG_F32);
  const double sides = dtype == RG_F64 ? 2.0 : 1.0;
  const double arithmetic = sides * u * ((8.0 + sqrt((double)terms) / 16.0) * magnitude + fabs(reference));
  if (isinf(value)) {
    /* Right where the furthest result that the arithmetic may give rounds to infinity in the output's dtype. */
    const double furthest = rg_dtype_round(dtype, reference + copysign(arithmetic, value));
    return furthest == value ? 1.0 : (double)INFINITY;
  }
  double allowed = arithmetic;
  if (dtype == RG_BF16 || dtype == RG_F16) {
    /* The half ulp is the one at the far end of the arithmetic's share: the sum may cross into the next binade. */
    allowed += rg_dtype_half_ulp(dtype, fabs(reference) + arithmetic);
  }
  if (isnan(value)) return (double)INFINITY;
  const double error = fabs(value - reference);
  if (error == 0.0) return 0.0;
  return allowed > 0.0 ? error / allowed : (double)INFINITY;
}
