/* sincos.cuh: sine and cosine of angles in radians, for device code. The same method and the same coefficients as
 * src/simd/sincos.h, where the derivation and the error bounds stand: an absolute error of at most 2.5 u for every
 * finite float. Angles beyond 2^20 go through the CUDA library's own functions. */
#ifndef ROPEGRAD_SRC_CUDA_SINCOS_CUH
#define ROPEGRAD_SRC_CUDA_SINCOS_CUH

/* An angle is a product rounded by itself: no sum may take it in unrounded. */
__device__ __forceinline__ float rg_angle_of(float position, float inv_freq) { return __fmul_rn(position, inv_freq); }
__device__ __forceinline__ double rg_angle_of(double position, double inv_freq) {
  return __dmul_rn(position, inv_freq);
}

/* Beyond this many radians the slow functions are taken. */
#define RG_SINCOS_LIMIT 0x1p20f

/* Sine and cosine of x, |x| <= RG_SINCOS_LIMIT, each up to the same sign, (-1)^halves: what the sign multiplies need be
 * turned only once where the two are summed. */
__device__ __forceinline__ void rg_sincos_unsigned(float x, float *sine, float *cosine, unsigned *halves) {
  const float rounder = 0x1.8p23f; /* makes an integer of a number below 2^22, in the low bits of the sum */
  const float shifted = __fmaf_rn(x, 0x1.45f306p-2f, rounder);
  const float k = shifted - rounder;
  float r = __fmaf_rn(k, -0x1.921fb6p+1f, x);
  r = __fmaf_rn(k, 0x1.777a5cp-24f, r);
  const float z = r * r;
  float p = __fmaf_rn(z, 0x1.5bede2p-19f, -0x1.9f4d22p-13f);
  p = __fmaf_rn(z, p, 0x1.110e04p-7f);
  p = __fmaf_rn(z, p, -0x1.555546p-3f);
  float q = __fmaf_rn(z, -0x1.1866d6p-22f, 0x1.9f7ea6p-16f);
  q = __fmaf_rn(z, q, -0x1.6c1436p-10f);
  q = __fmaf_rn(z, q, 0x1.55554ep-5f);
  q = __fmaf_rn(z, q, -0.5f);
  *sine = __fmaf_rn(z * r, p, r);
  *cosine = __fmaf_rn(z, q, 1.0f);
  *halves = __float_as_uint(shifted);
}

__device__ __forceinline__ float rg_negate_odd(unsigned halves, float x) {
  return __uint_as_float(__float_as_uint(x) ^ (halves << 31));
}

/* Never inlined: it is rare, and its registers and code would cost the common path 3 to 5 % (measured, H200). */
__device__ __noinline__ static void rg_sincos_slow(float x, float *sine, float *cosine) { sincosf(x, sine, cosine); }

/* Any float, infinite and NaN too. */
__device__ __forceinline__ void rg_sincos(float x, float *sine, float *cosine) {
  unsigned halves;
  rg_sincos_unsigned(x, sine, cosine, &halves);
  *sine = rg_negate_odd(halves, *sine);
  *cosine = rg_negate_odd(halves, *cosine);
  if (fabsf(x) > RG_SINCOS_LIMIT) rg_sincos_slow(x, sine, cosine);
}

__device__ __forceinline__ void rg_sincos(double x, double *sine, double *cosine) { sincos(x, sine, cosine); }

/* N at a time, in registers: one test for huge angles serves them all. A NaN passes the test, and as a NaN through the
 * arithmetic. */
template <int N>
__device__ __forceinline__ void rg_sincos_all(const float (&theta)[N], float (&sine)[N], float (&cosine)[N]) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    unsigned halves;
    rg_sincos_unsigned(theta[i], &sine[i], &cosine[i], &halves);
    sine[i] = rg_negate_odd(halves, sine[i]);
    cosine[i] = rg_negate_odd(halves, cosine[i]);
    largest = fmaxf(largest, fabsf(theta[i]));
  }
  if (largest > RG_SINCOS_LIMIT) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      float slow_sine, slow_cosine; /* of their own, so that those of the common path have no address */
      rg_sincos_slow(theta[i], &slow_sine, &slow_cosine);
      sine[i] = slow_sine;
      cosine[i] = slow_cosine;
    }
  }
}

/* ---- grad_sin * cos(theta) - grad_cos * sin(theta), what the angle's gradient is made of ---- */

__device__ __noinline__ static float rg_angle_gradient_slow(float grad_cos, float grad_sin, float theta) {
  float sine, cosine;
  sincosf(theta, &sine, &cosine);
  return __fmaf_rn(-grad_cos, sine, grad_sin * cosine);
}

/* N at a time, in registers: one test for huge angles serves them all. A NaN passes the test, and as a NaN through the
 * arithmetic. */
template <int N>
__device__ __forceinline__ void rg_angle_gradients(const float (&grad_cos)[N], const float (&grad_sin)[N],
                                                   const float (&theta)[N], float (&gradient)[N]) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    float sine, cosine;
    unsigned halves;
    rg_sincos_unsigned(theta[i], &sine, &cosine, &halves);
    gradient[i] = rg_negate_odd(halves, __fmaf_rn(-grad_cos[i], sine, grad_sin[i] * cosine));
    largest = fmaxf(largest, fabsf(theta[i]));
  }
  if (largest > RG_SINCOS_LIMIT) {
#pragma unroll
    for (int i = 0; i < N; ++i) gradient[i] = rg_angle_gradient_slow(grad_cos[i], grad_sin[i], theta[i]);
  }
}

__device__ __forceinline__ float rg_angle_gradient(float grad_cos, float grad_sin, float theta) {
  const float c[1] = {grad_cos}, s[1] = {grad_sin}, t[1] = {theta};
  float g[1];
  rg_angle_gradients<1>(c, s, t, g);
  return g[0];
}

__device__ __forceinline__ double rg_angle_gradient(double grad_cos, double grad_sin, double theta) {
  double sine, cosine;
  sincos(theta, &sine, &cosine);
  return grad_sin * cosine - grad_cos * sine;
}

#endif
