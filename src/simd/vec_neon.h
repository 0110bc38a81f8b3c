/* vec_neon.h: the vector vocabulary on 4 lanes of AArch64 Advanced SIMD (see vec.h for what each function does). */
#ifndef ROPEGRAD_SRC_SIMD_VEC_NEON_H
#define ROPEGRAD_SRC_SIMD_VEC_NEON_H

#if !defined(__aarch64__)
#error "the NEON level needs AArch64"
#endif

#include <arm_neon.h>

typedef float rg_real;
typedef float32x4_t rg_vf;
#define RG_VF_WIDTH 4

RG_INLINE rg_vf rg_vf_zero(void) { return vdupq_n_f32(0); }
RG_INLINE rg_vf rg_vf_set1(rg_real x) { return vdupq_n_f32(x); }
RG_INLINE rg_vf rg_vf_add(rg_vf a, rg_vf b) { return vaddq_f32(a, b); }
RG_INLINE rg_vf rg_vf_sub(rg_vf a, rg_vf b) { return vsubq_f32(a, b); }
RG_INLINE rg_vf rg_vf_mul(rg_vf a, rg_vf b) { return vmulq_f32(a, b); }
RG_INLINE rg_vf rg_vf_neg(rg_vf a) { return vnegq_f32(a); }
RG_INLINE rg_vf rg_vf_fma(rg_vf a, rg_vf b, rg_vf c) { return vfmaq_f32(c, a, b); }
RG_INLINE rg_vf rg_vf_fnma(rg_vf a, rg_vf b, rg_vf c) { return vfmsq_f32(c, a, b); }
RG_INLINE rg_real rg_vf_sum(rg_vf a) { return vaddvq_f32(a); } /* (0 + 1) + (2 + 3) */

RG_INLINE void rg_vf_deinterleave(rg_vf a, rg_vf b, rg_vf *even, rg_vf *odd) {
  *even = vuzp1q_f32(a, b);
  *odd = vuzp2q_f32(a, b);
}
RG_INLINE void rg_vf_interleave(rg_vf even, rg_vf odd, rg_vf *a, rg_vf *b) {
  *a = vzip1q_f32(even, odd);
  *b = vzip2q_f32(even, odd);
}

/* Lanes of 32 bits whose upper halves are the bfloat16; the lower halves are left over from the rounding. */
RG_INLINE uint32x4_t rg_bf16_bits(rg_vf v) {
  uint32x4_t bits = vreinterpretq_u32_f32(v);
  uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x00400000));
  return vbslq_u32(vceqq_f32(v, v), rounded, quiet);
}

RG_INLINE rg_vf rg_from_16bit(rg_dtype t, uint16x4_t lanes) {
  if (t == RG_F16) return vcvt_f32_f16(vreinterpret_f16_u16(lanes));
  return vreinterpretq_f32_u32(vshll_n_u16(lanes, 16));
}
RG_INLINE uint16x4_t rg_to_16bit(rg_dtype t, rg_vf v) {
  if (t == RG_F16) return vreinterpret_u16_f16(vcvt_f16_f32(v));
  return vshrn_n_u32(rg_bf16_bits(v), 16);
}

RG_INLINE rg_vf rg_vf_load(rg_dtype t, const void *p) {
  if (t == RG_F32) return vld1q_f32((const float *)p);
  return rg_from_16bit(t, vld1_u16((const uint16_t *)p));
}
RG_INLINE void rg_vf_store(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    vst1q_f32((float *)p, v);
  } else {
    vst1_u16((uint16_t *)p, rg_to_16bit(t, v));
  }
}
RG_INLINE rg_vf rg_vf_load_part(rg_dtype t, const void *p, int64_t n) {
  unsigned char lane[RG_VF_WIDTH * sizeof(float)] = {0};
  memcpy(lane, p, (size_t)n * RG_SIZE(t));
  return rg_vf_load(t, lane);
}
RG_INLINE void rg_vf_store_part(rg_dtype t, void *p, rg_vf v, int64_t n) {
  unsigned char lane[RG_VF_WIDTH * sizeof(float)];
  rg_vf_store(t, lane, v);
  memcpy(p, lane, (size_t)n * RG_SIZE(t));
}
RG_INLINE void rg_vf_stream(rg_dtype t, void *p, rg_vf v) { rg_vf_store(t, p, v); }
RG_INLINE void rg_stream_fence(void) {}

RG_INLINE rg_vf rg_vf_round_to(rg_dtype t, rg_vf v) {
  if (t == RG_F32) return v;
  if (t == RG_F16) return vcvt_f32_f16(vcvt_f16_f32(v));
  return vreinterpretq_f32_u32(vandq_u32(rg_bf16_bits(v), vdupq_n_u32(0xffff0000u)));
}

/* The table is one of bytes: lane n is bytes 4n to 4n + 3. */
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  const uint32x4_t first_byte = vmulq_n_u32(vreinterpretq_u32_s32(vld1q_s32(index)), 0x04040404u);
  const uint32x4_t bytes = vaddq_u32(first_byte, vdupq_n_u32(0x03020100u));
  return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(vld1q_f32(table)), vreinterpretq_u8_u32(bytes)));
}

RG_INLINE rg_vf rg_vf_max_abs(rg_vf a, rg_vf b) { return vmaxnmq_f32(a, vabsq_f32(b)); }
RG_INLINE bool rg_vf_any_beyond(rg_vf v, rg_real limit) {
  return vminvq_u32(vcleq_f32(vabsq_f32(v), vdupq_n_f32(limit))) == 0;
}

RG_INLINE rg_vf rg_vf_negate_odd(rg_vf k, rg_vf v) {
  const uint32x4_t sign = vshlq_n_u32(vreinterpretq_u32_f32(k), 31);
  return vreinterpretq_f32_u32(veorq_u32(vreinterpretq_u32_f32(v), sign));
}

#endif
