/* sincos.h: sine and cosine of a vector of angles in radians.
 *
 * Contract at the float levels: an absolute error of at most 2.5 u (u = 2^-24; 3 u at width 1, where a product and a
 * sum round apart) in either result for every finite angle; infinity and NaN give NaN. The error is absolute and not
 * relative because operators multiply the results by gradients and sum; their own contract allows 8 u. The FLOAT64
 * level calls libm.
 *
 * Method: k = round(x / pi); r = x - k*pi, so that |r| is little more than pi/2; sine and cosine of r by polynomials;
 * an odd k changes both signs. Reducing by pi and not, as is usual, by pi/2 asks for one more term in each polynomial
 * but saves exchanging sine and cosine lane by lane: 21 instructions a vector instead of 29 under AVX-512, in kernels
 * that wait for this as much as for memory.
 *
 * r for |x| <= 2^20. With pi = p1 + p2 + ..., both floats: p1 is a multiple of 2^-22 and |p1 - pi| < 2^-23, so that
 * x - k*p1 stays below 2 and is exact under a fused multiply-add. Taking off k*p2 rounds to within u where |r| > 1,
 * else to u/2; what pi has left is below 0.02 u for these k, so a third term would change nothing. The float 1/pi is a
 * little small, by 4e-8 of itself: k*pi may lag by the time k is 2^18.3, and |r| reaches pi * (1/2 + 0.0135) = 1.614.
 * The polynomials are good up to there.
 *
 * The polynomials are minimax in absolute error on [0, 1.614] (each coefficient rounded to float in turn and the rest
 * fitted again): 0.11 u for the sine, 0.01 u for the cosine. What is left is rounding: of r, of r*r, of the last sum.
 */
#ifndef ROPEGRAD_SRC_SIMD_SINCOS_H
#define ROPEGRAD_SRC_SIMD_SINCOS_H

#include <math.h>

#include "src/simd/vec.h"

/* Four functions:
 *
 *   rg_vf_sincos(x, &sine, &cosine)
 *   rg_vf_scaled_small_sincos(a, x, &sine, &cosine)
 *                                      a times what rg_vf_sincos gives, to the bit, in the lanes where
 *                                      |x| <= RG_SINCOS_LIMIT, of no use in others
 *   rg_vf_grad_angle(gc, gs, x)        gs*cos(x) - gc*sin(x): what the gradients gc of cos(x) and gs of sin(x) send
 *                                      back to x
 *   rg_vf_grad_small_angle(gc, gs, x)  the same bits in the lanes where |x| <= RG_SINCOS_LIMIT, of no use in others:
 *                                      for loops that look for larger angles themselves, many vectors at a time */
#if RG_LEVEL == RG_LEVEL_FLOAT64

#define RG_SINCOS_LIMIT HUGE_VAL

RG_INLINE void rg_vf_sincos(rg_vf x, rg_vf *sine, rg_vf *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}
RG_INLINE void rg_vf_scaled_small_sincos(rg_vf a, rg_vf x, rg_vf *sine, rg_vf *cosine) {
  *sine = a * sin(x);
  *cosine = a * cos(x);
}
RG_INLINE rg_vf rg_vf_grad_angle(rg_vf grad_cos, rg_vf grad_sin, rg_vf x) {
  return rg_vf_fnma(grad_cos, sin(x), grad_sin * cos(x));
}
RG_INLINE rg_vf rg_vf_grad_small_angle(rg_vf grad_cos, rg_vf grad_sin, rg_vf x) {
  return rg_vf_grad_angle(grad_cos, grad_sin, x);
}

#else

/* Beyond this many radians the lanes go through libm. */
#define RG_SINCOS_LIMIT 0x1p20f

/* Added to a number below 2^22 in magnitude, rounds it to an integer, which the low bits of the sum then hold. */
#define RG_ROUNDER 0x1.8p23f

/* x - k*pi in [-1.614, 1.614]; *halves: k + RG_ROUNDER. */
RG_INLINE rg_vf rg_sincos_reduce(rg_vf x, rg_vf *halves) {
#if RG_VF_WIDTH == 1
  /* Without a fused multiply-add floats cannot do it; in double pi in two parts is enough. The first has 33 bits and k
   * at most 19, so that their product is exact. */
  const double rounder = 0x1.8p52;
  const double k = ((double)x * 0x1.45f306dc9c883p-2 + rounder) - rounder;
  *halves = (float)k + RG_ROUNDER;
  return (float)(((double)x - k * 0x1.921fb54400000p+1) - k * 0x1.0b4611a626331p-33);
#else
  rg_vf rounder = rg_vf_set1(RG_ROUNDER);
  *halves = rg_vf_fma(x, rg_vf_set1(0x1.45f306p-2f), rounder);
  rg_vf k = rg_vf_sub(*halves, rounder);
  rg_vf r = rg_vf_fnma(k, rg_vf_set1(0x1.921fb6p+1f), x);
  return rg_vf_fnma(k, rg_vf_set1(-0x1.777a5cp-24f), r);
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

/* Of small angles, with the signs that they have for even k. */
RG_INLINE void rg_sincos_unsigned(rg_vf x, rg_vf *halves, rg_vf *sine, rg_vf *cosine) {
  rg_vf r = rg_sincos_reduce(x, halves);
  rg_vf z = rg_vf_mul(r, r);

  rg_vf p = rg_vf_fma(z, rg_vf_set1(0x1.5bede2p-19f), rg_vf_set1(-0x1.9f4d22p-13f));
  p = rg_vf_fma(z, p, rg_vf_set1(0x1.110e04p-7f));
  p = rg_vf_fma(z, p, rg_vf_set1(-0x1.555546p-3f));
  *sine = rg_vf_fma(rg_vf_mul(z, r), p, r);

  rg_vf q = rg_vf_fma(z, rg_vf_set1(-0x1.1866d6p-22f), rg_vf_set1(0x1.9f7ea6p-16f));
  q = rg_vf_fma(z, q, rg_vf_set1(-0x1.6c1436p-10f));
  q = rg_vf_fma(z, q, rg_vf_set1(0x1.55554ep-5f));
  q = rg_vf_fma(z, q, rg_vf_set1(-0.5f));
  *cosine = rg_vf_fma(z, q, rg_vf_set1(1.0f));
}

RG_INLINE void rg_vf_sincos(rg_vf x, rg_vf *sine, rg_vf *cosine) {
  rg_vf halves, s, c;
  rg_sincos_unsigned(x, &halves, &s, &c);
  s = rg_vf_negate_odd(halves, s);
  c = rg_vf_negate_odd(halves, c);
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

/* The factor takes the sign of both. */
RG_INLINE void rg_vf_scaled_small_sincos(rg_vf a, rg_vf x, rg_vf *sine, rg_vf *cosine) {
  rg_vf halves, s, c;
  rg_sincos_unsigned(x, &halves, &s, &c);
  const rg_vf factor = rg_vf_negate_odd(halves, a);
  *sine = rg_vf_mul(factor, s);
  *cosine = rg_vf_mul(factor, c);
}

/* The sign changes once, after the sum. */
RG_INLINE rg_vf rg_vf_grad_small_angle(rg_vf grad_cos, rg_vf grad_sin, rg_vf x) {
  rg_vf halves, sine, cosine;
  rg_sincos_unsigned(x, &halves, &sine, &cosine);
  return rg_vf_negate_odd(halves, rg_vf_fnma(grad_cos, sine, rg_vf_mul(grad_sin, cosine)));
}

/* As rg_sincos_huge. */
static __attribute__((noinline, cold, unused)) void rg_grad_huge_angles(const float *grad_cos, const float *grad_sin,
                                                                        const float *x, float *grad) {
  for (int i = 0; i < RG_VF_WIDTH; i++) {
    if (fabsf(x[i]) <= RG_SINCOS_LIMIT) continue;
    grad[i] = (float)((double)grad_sin[i] * cos((double)x[i]) - (double)grad_cos[i] * sin((double)x[i]));
  }
}

/* A lane does not depend on the others: where vectors begin may depend on the number of threads. */
RG_INLINE rg_vf rg_vf_grad_angle(rg_vf grad_cos, rg_vf grad_sin, rg_vf x) {
  rg_vf grad = rg_vf_grad_small_angle(grad_cos, grad_sin, x);
  if (__builtin_expect(rg_vf_any_beyond(x, RG_SINCOS_LIMIT), 0)) {
    float angle[RG_VF_WIDTH], of_cos[RG_VF_WIDTH], of_sin[RG_VF_WIDTH], of_angle[RG_VF_WIDTH];
    rg_vf_store(RG_F32, angle, x);
    rg_vf_store(RG_F32, of_cos, grad_cos);
    rg_vf_store(RG_F32, of_sin, grad_sin);
    rg_vf_store(RG_F32, of_angle, grad);
    rg_grad_huge_angles(of_cos, of_sin, angle, of_angle);
    grad = rg_vf_load(RG_F32, of_angle);
  }
  return grad;
}

#endif

#endif
