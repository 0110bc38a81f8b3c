/* vec_avx2.h: the vector vocabulary on 8 lanes of AVX2, with FMA and F16C (see vec.h for what each function does). */
#ifndef ROPEGRAD_SRC_SIMD_VEC_AVX2_H
#define ROPEGRAD_SRC_SIMD_VEC_AVX2_H

#if !defined(__AVX2__) || !defined(__FMA__) || !defined(__F16C__)
#error "the AVX2 level needs -mavx2 -mfma -mf16c"
#endif

#include <immintrin.h>

typedef float rg_real;
typedef __m256 rg_vf;
#define RG_VF_WIDTH 8

RG_INLINE rg_vf rg_vf_zero(void) { return _mm256_setzero_ps(); }
RG_INLINE rg_vf rg_vf_set1(rg_real x) { return _mm256_set1_ps(x); }
RG_INLINE rg_vf rg_vf_add(rg_vf a, rg_vf b) { return _mm256_add_ps(a, b); }
RG_INLINE rg_vf rg_vf_sub(rg_vf a, rg_vf b) { return _mm256_sub_ps(a, b); }
RG_INLINE rg_vf rg_vf_mul(rg_vf a, rg_vf b) { return _mm256_mul_ps(a, b); }
RG_INLINE rg_vf rg_vf_neg(rg_vf a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
RG_INLINE rg_vf rg_vf_fma(rg_vf a, rg_vf b, rg_vf c) { return _mm256_fmadd_ps(a, b, c); }
RG_INLINE rg_vf rg_vf_fnma(rg_vf a, rg_vf b, rg_vf c) { return _mm256_fnmadd_ps(a, b, c); }

/* Lane i with lane i + 4, then with i + 2, then with i + 1. */
RG_INLINE rg_real rg_vf_sum(rg_vf a) {
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

RG_INLINE void rg_vf_deinterleave(rg_vf a, rg_vf b, rg_vf *even, rg_vf *odd) {
  /* Within 128-bit halves first: a0 a2 b0 b2 | a4 a6 b4 b6; then the middle two 64-bit pieces change places. */
  __m256d e = _mm256_castps_pd(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0)));
  __m256d o = _mm256_castps_pd(_mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1)));
  *even = _mm256_castpd_ps(_mm256_permute4x64_pd(e, _MM_SHUFFLE(3, 1, 2, 0)));
  *odd = _mm256_castpd_ps(_mm256_permute4x64_pd(o, _MM_SHUFFLE(3, 1, 2, 0)));
}

RG_INLINE void rg_vf_interleave(rg_vf even, rg_vf odd, rg_vf *a, rg_vf *b) {
  __m256 low = _mm256_unpacklo_ps(even, odd);  /* pairs 0 1 | 4 5 */
  __m256 high = _mm256_unpackhi_ps(even, odd); /* pairs 2 3 | 6 7 */
  *a = _mm256_permute2f128_ps(low, high, 0x20);
  *b = _mm256_permute2f128_ps(low, high, 0x31);
}

/* Lanes below n: all ones. */
RG_INLINE __m256i rg_part_mask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

/* AVX2 has no masked access to 16-bit elements. */
RG_INLINE __m128i rg_load_part_16bit(const void *p, int64_t n) {
  uint16_t lane[RG_VF_WIDTH] = {0};
  memcpy(lane, p, (size_t)n * sizeof *lane);
  return _mm_loadu_si128((const __m128i *)lane);
}
RG_INLINE void rg_store_part_16bit(void *p, __m128i v, int64_t n) {
  uint16_t lane[RG_VF_WIDTH];
  _mm_storeu_si128((__m128i *)lane, v);
  memcpy(p, lane, (size_t)n * sizeof *lane);
}

/* Lanes of 32 bits whose upper halves are the bfloat16; the lower halves are left over from the rounding. */
RG_INLINE __m256i rg_bf16_bits(rg_vf v) {
  __m256i bits = _mm256_castps_si256(v);
  __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x00400000));
  __m256 is_nan = _mm256_cmp_ps(v, v, _CMP_UNORD_Q);
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), is_nan));
}

RG_INLINE rg_vf rg_from_16bit(rg_dtype t, __m128i lanes) {
  if (t == RG_F16) return _mm256_cvtph_ps(lanes);
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(lanes), 16));
}
RG_INLINE __m128i rg_to_16bit(rg_dtype t, rg_vf v) {
  if (t == RG_F16) return _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  __m256i bits = _mm256_srli_epi32(rg_bf16_bits(v), 16);
  return _mm_packus_epi32(_mm256_castsi256_si128(bits), _mm256_extracti128_si256(bits, 1));
}

RG_INLINE rg_vf rg_vf_load(rg_dtype t, const void *p) {
  if (t == RG_F32) return _mm256_loadu_ps((const float *)p);
  return rg_from_16bit(t, _mm_loadu_si128((const __m128i *)p));
}
RG_INLINE rg_vf rg_vf_load_part(rg_dtype t, const void *p, int64_t n) {
  if (t == RG_F32) return _mm256_maskload_ps((const float *)p, rg_part_mask(n));
  return rg_from_16bit(t, rg_load_part_16bit(p, n));
}
RG_INLINE void rg_vf_store(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    _mm256_storeu_ps((float *)p, v);
  } else {
    _mm_storeu_si128((__m128i *)p, rg_to_16bit(t, v));
  }
}
RG_INLINE void rg_vf_store_part(rg_dtype t, void *p, rg_vf v, int64_t n) {
  if (t == RG_F32) {
    _mm256_maskstore_ps((float *)p, rg_part_mask(n), v);
  } else {
    rg_store_part_16bit(p, rg_to_16bit(t, v), n);
  }
}
RG_INLINE void rg_vf_stream(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    _mm256_stream_ps((float *)p, v);
  } else {
    _mm_stream_si128((__m128i *)p, rg_to_16bit(t, v));
  }
}

/* Two vectors of bfloat16 are one register in memory, and a shift and a mask split it into its even and its odd
 * elements: half the work of widening each half. */
#define RG_VF_HAS_TWO
RG_INLINE bool rg_vf_two_splits(rg_dtype t) { return t == RG_BF16; }
RG_INLINE void rg_vf_load_two(rg_dtype t, const void *p, rg_vf *a, rg_vf *b) {
  if (t == RG_BF16) {
    __m256i both = _mm256_loadu_si256((const __m256i *)p);
    *a = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
    *b = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32((int)0xffff0000)));
  } else {
    *a = rg_vf_load(t, p);
    *b = rg_vf_load(t, (const char *)p + RG_VF_WIDTH * RG_SIZE(t));
  }
}

RG_INLINE __m256i rg_bf16_pack(rg_vf even, rg_vf odd) {
  return _mm256_blend_epi16(_mm256_srli_epi32(rg_bf16_bits(even), 16), rg_bf16_bits(odd), 0xaa);
}
RG_INLINE void rg_vf_store_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (t == RG_BF16) {
    _mm256_storeu_si256((__m256i *)p, rg_bf16_pack(a, b));
  } else {
    rg_vf_store(t, p, a);
    rg_vf_store(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
  }
}
RG_INLINE void rg_vf_stream_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (t == RG_BF16) {
    _mm256_stream_si256((__m256i *)p, rg_bf16_pack(a, b));
  } else {
    rg_vf_stream(t, p, a);
    rg_vf_stream(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
  }
}
RG_INLINE void rg_stream_fence(void) { _mm_sfence(); }

RG_INLINE rg_vf rg_vf_round_to(rg_dtype t, rg_vf v) {
  if (t == RG_F32) return v;
  if (t == RG_F16) return _mm256_cvtph_ps(_mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  return _mm256_castsi256_ps(_mm256_and_si256(rg_bf16_bits(v), _mm256_set1_epi32((int)0xffff0000)));
}

/* A permutation of one vector, not a gather: that would cost a load per lane. */
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), _mm256_loadu_si256((const __m256i *)index));
}

RG_INLINE rg_vf rg_vf_max_abs(rg_vf a, rg_vf b) { return _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), b), a); }
RG_INLINE bool rg_vf_any_beyond(rg_vf v, rg_real limit) {
  __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
  return _mm256_movemask_ps(_mm256_cmp_ps(magnitude, _mm256_set1_ps(limit), _CMP_NLE_UQ)) != 0;
}

RG_INLINE rg_vf rg_vf_negate_odd(rg_vf k, rg_vf v) {
  return _mm256_xor_ps(v, _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(k), 31)));
}

#endif
