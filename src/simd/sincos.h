/* sincos.h: sine and cosine of a vector of angles in radians.
 *
 * Contract at the float levels, for every finite angle: either result has an absolute error of at most 1.5 u and a
 * relative one of at most 3 u (u = 2^-24). Infinity and NaN give NaN; -0 has the sine +0. The FLOAT64 level calls libm.
 *
 * Method: k = round(x * 2/pi); r = x - k*pi/2, so that |r| is little more than pi/4; sine and cosine of r by
 * polynomials; then k modulo 4 exchanges them and turns their signs.
 *
 * r for |x| <= 2^20. With pi/2 = p1 + p2 + p3, each a float: p1 is a multiple of 2^-23 and |p1 - pi/2| < 2^-24, so that
 * x - k*p1 stays below 1 and is exact under a fused multiply-add. Taking off k*p2 rounds to within 2^-25, and k*p3,
 * below 2^-29, is what pi/2 has left: it keeps the relative error small near multiples of pi/2. The float 2/pi is too
 * small by 4e-8 of itself, which shifts the quotient by up to 0.027, so that |r| reaches pi/2 * (1/2 + 0.027) = 0.828.
 *
 * The polynomials are minimax in absolute error on [0, 0.8278] (Remez, each coefficient rounded to float in turn and
 * the rest fitted again): 0.05 u for the sine, 0.003 u for the cosine. The rest of the error is rounding: of r, of
 * r*r, and of the last sum. Over all floats up to 2^20 the worst are 1.21 u absolute and 2.92 u relative, without a
 * fused multiply-add 1.47 u and 2.13 u. */
#ifndef ROPEGRAD_SRC_SIMD_SINCOS_H
#define ROPEGRAD_SRC_SIMD_SINCOS_H

#include <math.h>

#include "src/simd/vec.h"

#if RG_LEVEL == RG_LEVEL_FLOAT64

RG_INLINE void rg_vf_sincos(rg_vf x, rg_vf *sine, rg_vf *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}

#else

/* Beyond this many radians the lanes go through libm. */
#define RG_SINCOS_LIMIT 0x1p20f

/* Added to a number below 2^22 in magnitude, rounds it to an integer, which the low bits of the sum then hold. */
#define RG_ROUNDER 0x1.8p23f

/* x - k*pi/2 in [-0.828, 0.828]; *quarters: k + RG_ROUNDER. */
RG_INLINE rg_vf rg_sincos_reduce(rg_vf x, rg_vf *quarters) {
#if RG_VF_WIDTH == 1
  /* Without a fused multiply-add floats cannot do it; in double pi/2 in two parts is enough. The first has 33 bits and
   * k at most 20, so that their product is exact. */
  const double rounder = 0x1.8p52;
  const double k = ((double)x * 0x1.45f306dc9c883p-1 + rounder) - rounder;
  *quarters = (float)k + RG_ROUNDER;
  return (float)(((double)x - k * 0x1.921fb54400000p+0) - k * 0x1.0b4611a626331p-34);
#else
  rg_vf rounder = rg_vf_set1(RG_ROUNDER);
  *quarters = rg_vf_fma(x, rg_vf_set1(0x1.45f306p-1f), rounder);
  rg_vf k = rg_vf_sub(*quarters, rounder);
  rg_vf r = rg_vf_fnma(k, rg_vf_set1(0x1.921fb6p+0f), x);
  r = rg_vf_fnma(k, rg_vf_set1(-0x1.777a5cp-25f), r);
  return rg_vf_fnma(k, rg_vf_set1(-0x1.ee59dap-50f), r);
#endif
}

/* Replaces the lanes whose angle is huge or not finite. Never inlined: it is rare, and calls would cost the common path
 * its registers. */
static __attribute__((noinline, cold, unused)) void rg_sincos_huge(const float *x, float *sine, float *cosine) {
  for (int i = 0; i < RG_VF_WIDTH; i++) {
    if (fabsf(x[i]) <= RG_SINCOS_LIMIT) continue;
    sine[i] = (float)sin((double)x[i]);
    cosine[i] = (float)cos((double)x[i]);
  }
}

RG_INLINE void rg_vf_sincos(rg_vf x, rg_vf *sine, rg_vf *cosine) {
  rg_vf quarters;
  rg_vf r = rg_sincos_reduce(x, &quarters);
  rg_vf z = rg_vf_mul(r, r);

  rg_vf p = rg_vf_fma(z, rg_vf_set1(-0x1.980fb4p-13f), rg_vf_set1(0x1.110314p-7f));
  p = rg_vf_fma(z, p, rg_vf_set1(-0x1.555538p-3f));
  rg_vf s = rg_vf_fma(rg_vf_mul(z, r), p, r);

  rg_vf q = rg_vf_fma(z, rg_vf_set1(0x1.9938c4p-16f), rg_vf_set1(-0x1.6c09bap-10f));
  q = rg_vf_fma(z, q, rg_vf_set1(0x1.555546p-5f));
  q = rg_vf_fma(z, q, rg_vf_set1(-0.5f));
  rg_vf c = rg_vf_fma(z, q, rg_vf_set1(1.0f));

  rg_vf_turn(quarters, &s, &c);
  if (__builtin_expect(rg_vf_any_beyond(x, RG_SINCOS_LIMIT), 0)) {
    float angle[RG_VF_WIDTH], sines[RG_VF_WIDTH], cosines[RG_VF_WIDTH];
    rg_vf_store(RG_F32, angle, x);
    rg_vf_store(RG_F32, sines, s);
    rg_vf_store(RG_F32, cosines, c);
    rg_sincos_huge(angle, sines, cosines);
    s = rg_vf_load(RG_F32, sines);
    c = rg_vf_load(RG_F32, cosines);
  }
  *sine = s;
  *cosine = c;
}

#endif

#endif
