/* vec_scalar.h: the vector vocabulary at width 1, in plain C (see vec.h for what each function does). It serves two
 * levels: SCALAR, where rg_real is float, and FLOAT64, where it is double. */
#ifndef ROPEGRAD_SRC_SIMD_VEC_SCALAR_H
#define ROPEGRAD_SRC_SIMD_VEC_SCALAR_H

#include <math.h>

#if RG_LEVEL == RG_LEVEL_FLOAT64
typedef double rg_real;
#else
typedef float rg_real;
#endif
typedef rg_real rg_vf;
#define RG_VF_WIDTH 1

RG_INLINE rg_vf rg_vf_zero(void) { return 0; }
RG_INLINE rg_vf rg_vf_set1(rg_real x) { return x; }
RG_INLINE rg_vf rg_vf_add(rg_vf a, rg_vf b) { return a + b; }
RG_INLINE rg_vf rg_vf_sub(rg_vf a, rg_vf b) { return a - b; }
RG_INLINE rg_vf rg_vf_mul(rg_vf a, rg_vf b) { return a * b; }
RG_INLINE rg_vf rg_vf_neg(rg_vf a) { return -a; }
/* Two roundings: without the instruction libm's fma is a call of some hundred cycles. */
RG_INLINE rg_vf rg_vf_fma(rg_vf a, rg_vf b, rg_vf c) { return a * b + c; }
RG_INLINE rg_vf rg_vf_fnma(rg_vf a, rg_vf b, rg_vf c) { return c - a * b; }
RG_INLINE rg_real rg_vf_sum(rg_vf a) { return a; }

RG_INLINE void rg_vf_deinterleave(rg_vf a, rg_vf b, rg_vf *even, rg_vf *odd) {
  *even = a;
  *odd = b;
}
RG_INLINE void rg_vf_interleave(rg_vf even, rg_vf odd, rg_vf *a, rg_vf *b) {
  *a = even;
  *b = odd;
}

RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) { return table[*index]; }

RG_INLINE rg_vf rg_vf_max_abs(rg_vf a, rg_vf b) {
  const rg_vf magnitude = b < 0 ? -b : b;
  return magnitude > a ? magnitude : a;
}

/* Not `fabs(v) > limit`, which is false for a NaN. */
RG_INLINE bool rg_vf_any_beyond(rg_vf v, rg_real limit) { return !(fabs((double)v) <= (double)limit); }

#if RG_LEVEL == RG_LEVEL_FLOAT64

RG_INLINE rg_vf rg_vf_load(rg_dtype t, const void *p) {
  (void)t;
  double value;
  memcpy(&value, p, sizeof value);
  return value;
}
RG_INLINE void rg_vf_store(rg_dtype t, void *p, rg_vf v) {
  (void)t;
  memcpy(p, &v, sizeof v);
}
RG_INLINE rg_vf rg_vf_round_to(rg_dtype t, rg_vf v) {
  (void)t;
  return v;
}

#else

RG_INLINE uint32_t rg_float_bits(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}
RG_INLINE float rg_bits_float(uint32_t bits) {
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

RG_INLINE float rg_bf16_to_float(uint16_t bits) { return rg_bits_float((uint32_t)bits << 16); }

RG_INLINE uint16_t rg_float_to_bf16(float x) {
  uint32_t bits = rg_float_bits(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u); /* NaN: keep it one, made quiet */
  return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/* float16: 1 sign, 5 exponent (bias 15) and 10 fraction bits; float32 has bias 127 and 23 fraction bits. */
RG_INLINE float rg_f16_to_float(uint16_t bits) {
  uint32_t sign = (uint32_t)(bits & 0x8000u) << 16;
  uint32_t magnitude = bits & 0x7fffu;
  if (magnitude < 0x0400u) { /* zero and the subnormals, which are multiples of 2^-24 */
    return rg_bits_float(sign | rg_float_bits((float)magnitude * 0x1p-24f));
  }
  uint32_t rebias = magnitude < 0x7c00u ? (127u - 15u) << 23 : (255u - 31u) << 23; /* infinity and NaN keep all ones */
  uint32_t quiet = magnitude > 0x7c00u ? 0x00400000u : 0;
  return rg_bits_float(sign | quiet | ((magnitude << 13) + rebias));
}

RG_INLINE uint16_t rg_float_to_f16(float x) {
  uint32_t bits = rg_float_bits(x);
  uint32_t sign = bits >> 16 & 0x8000u;
  uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) { /* NaN, made quiet */
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) { /* from 65520, halfway between the largest float16 and 2^16, on: infinity */
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) { /* from 2^-14 on: normal */
    half = (magnitude - ((127u - 15u) << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  } else { /* subnormal, a multiple of 2^-24: the spacing of floats from 0.5 on, so that the sum rounds to it */
    half = rg_float_bits(rg_bits_float(magnitude) + 0.5f) - rg_float_bits(0.5f);
  }
  return (uint16_t)(sign | half);
}

RG_INLINE rg_vf rg_vf_load(rg_dtype t, const void *p) {
  if (t == RG_F32) {
    float value;
    memcpy(&value, p, sizeof value);
    return value;
  }
  uint16_t bits;
  memcpy(&bits, p, sizeof bits);
  return t == RG_BF16 ? rg_bf16_to_float(bits) : rg_f16_to_float(bits);
}

RG_INLINE void rg_vf_store(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    memcpy(p, &v, sizeof v);
  } else {
    uint16_t bits = t == RG_BF16 ? rg_float_to_bf16(v) : rg_float_to_f16(v);
    memcpy(p, &bits, sizeof bits);
  }
}

RG_INLINE rg_vf rg_vf_round_to(rg_dtype t, rg_vf v) {
  if (t == RG_F32) return v;
  return t == RG_BF16 ? rg_bf16_to_float(rg_float_to_bf16(v)) : rg_f16_to_float(rg_float_to_f16(v));
}

RG_INLINE rg_vf rg_vf_negate_odd(rg_vf k, rg_vf v) { return rg_float_bits(k) & 1u ? -v : v; }

#endif

RG_INLINE rg_vf rg_vf_load_part(rg_dtype t, const void *p, int64_t n) { return n > 0 ? rg_vf_load(t, p) : 0; }
RG_INLINE void rg_vf_store_part(rg_dtype t, void *p, rg_vf v, int64_t n) {
  if (n > 0) rg_vf_store(t, p, v);
}
RG_INLINE void rg_vf_stream(rg_dtype t, void *p, rg_vf v) { rg_vf_store(t, p, v); }
RG_INLINE void rg_stream_fence(void) {}

#endif
