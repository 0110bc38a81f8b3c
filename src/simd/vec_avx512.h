/* vec_avx512.h: the vector vocabulary on 16 lanes of AVX-512 (F, BW, VL, DQ; see vec.h for what each function does). */
#ifndef ROPEGRAD_SRC_SIMD_VEC_AVX512_H
#define ROPEGRAD_SRC_SIMD_VEC_AVX512_H

#if !defined(__AVX512F__) || !defined(__AVX512BW__) || !defined(__AVX512VL__) || !defined(__AVX512DQ__)
#error "the AVX512 level needs -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c"
#endif

#include <immintrin.h>

typedef float rg_real;
typedef __m512 rg_vf;
#define RG_VF_WIDTH 16

RG_INLINE rg_vf rg_vf_zero(void) { return _mm512_setzero_ps(); }
RG_INLINE rg_vf rg_vf_set1(rg_real x) { return _mm512_set1_ps(x); }
RG_INLINE rg_vf rg_vf_add(rg_vf a, rg_vf b) { return _mm512_add_ps(a, b); }
RG_INLINE rg_vf rg_vf_sub(rg_vf a, rg_vf b) { return _mm512_sub_ps(a, b); }
RG_INLINE rg_vf rg_vf_mul(rg_vf a, rg_vf b) { return _mm512_mul_ps(a, b); }
RG_INLINE rg_vf rg_vf_neg(rg_vf a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
RG_INLINE rg_vf rg_vf_fma(rg_vf a, rg_vf b, rg_vf c) { return _mm512_fmadd_ps(a, b, c); }
RG_INLINE rg_vf rg_vf_fnma(rg_vf a, rg_vf b, rg_vf c) { return _mm512_fnmadd_ps(a, b, c); }

/* Lane i with lane i + 8, then with i + 4, i + 2 and i + 1. */
RG_INLINE rg_real rg_vf_sum(rg_vf a) {
  __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}

/* In the indices of a two-source permutation, 0 to 15 name lanes of the first source, 16 to 31 of the second. */
RG_INLINE void rg_vf_deinterleave(rg_vf a, rg_vf b, rg_vf *even, rg_vf *odd) {
  __m512i evens = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  __m512i odds = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
  *even = _mm512_permutex2var_ps(a, evens, b);
  *odd = _mm512_permutex2var_ps(a, odds, b);
}
RG_INLINE void rg_vf_interleave(rg_vf even, rg_vf odd, rg_vf *a, rg_vf *b) {
  __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  *a = _mm512_permutex2var_ps(even, low, odd);
  *b = _mm512_permutex2var_ps(even, high, odd);
}

/* Lanes below n. */
RG_INLINE __mmask16 rg_part_mask(int64_t n) { return (__mmask16)((1u << n) - 1u); }

/* Lanes of 32 bits whose upper halves are the bfloat16; the lower halves are left over from the rounding. The
 * instruction of AVX512_BF16 is of no use here: it takes subnormals for zero. */
RG_INLINE __m512i rg_bf16_bits(rg_vf v) {
  __m512i bits = _mm512_castps_si512(v);
  __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __mmask16 is_nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(rounded, is_nan, bits, _mm512_set1_epi32(0x00400000));
}

RG_INLINE rg_vf rg_from_16bit(rg_dtype t, __m256i lanes) {
  if (t == RG_F16) return _mm512_cvtph_ps(lanes);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(lanes), 16));
}
RG_INLINE __m256i rg_to_16bit(rg_dtype t, rg_vf v) {
  if (t == RG_F16) return _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT);
  return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rg_bf16_bits(v), 16));
}

RG_INLINE rg_vf rg_vf_load(rg_dtype t, const void *p) {
  if (t == RG_F32) return _mm512_loadu_ps(p);
  return rg_from_16bit(t, _mm256_loadu_si256((const __m256i *)p));
}
RG_INLINE rg_vf rg_vf_load_part(rg_dtype t, const void *p, int64_t n) {
  if (t == RG_F32) return _mm512_maskz_loadu_ps(rg_part_mask(n), p);
  return rg_from_16bit(t, _mm256_maskz_loadu_epi16(rg_part_mask(n), p));
}
RG_INLINE void rg_vf_store(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    _mm512_storeu_ps(p, v);
  } else {
    _mm256_storeu_si256((__m256i *)p, rg_to_16bit(t, v));
  }
}
RG_INLINE void rg_vf_store_part(rg_dtype t, void *p, rg_vf v, int64_t n) {
  if (t == RG_F32) {
    _mm512_mask_storeu_ps(p, rg_part_mask(n), v);
  } else {
    _mm256_mask_storeu_epi16(p, rg_part_mask(n), rg_to_16bit(t, v));
  }
}
RG_INLINE void rg_vf_stream(rg_dtype t, void *p, rg_vf v) {
  if (t == RG_F32) {
    _mm512_stream_ps(p, v);
  } else {
    _mm256_stream_si256((__m256i *)p, rg_to_16bit(t, v));
  }
}

/* Two vectors of bfloat16 are one line in memory, and a shift and a mask split it into its even and its odd elements:
 * half the work of widening each half. */
#define RG_VF_HAS_TWO
RG_INLINE bool rg_vf_two_splits(rg_dtype t) { return t == RG_BF16; }
RG_INLINE void rg_vf_load_two(rg_dtype t, const void *p, rg_vf *a, rg_vf *b) {
  if (t == RG_BF16) {
    __m512i line = _mm512_loadu_si512(p);
    *a = _mm512_castsi512_ps(_mm512_slli_epi32(line, 16));
    *b = _mm512_castsi512_ps(_mm512_and_si512(line, _mm512_set1_epi32((int)0xffff0000)));
  } else {
    *a = rg_vf_load(t, p);
    *b = rg_vf_load(t, (const char *)p + RG_VF_WIDTH * RG_SIZE(t));
  }
}

/* Values that are no NaN, rounded as rg_bf16_bits does. */
RG_INLINE __m512i rg_bf16_bits_of_number(rg_vf v) {
  __m512i bits = _mm512_castps_si512(v);
  __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  return _mm512_add_epi32(bits, _mm512_mask_blend_epi32(odd, _mm512_set1_epi32(0x7fff), _mm512_set1_epi32(0x8000)));
}
/* One test finds the rare NaN in either vector. */
RG_INLINE __m512i rg_bf16_line(rg_vf even, rg_vf odd) {
  __m512i low, high;
  if (__builtin_expect(_mm512_cmp_ps_mask(even, odd, _CMP_UNORD_Q) != 0, 0)) {
    low = rg_bf16_bits(even);
    high = rg_bf16_bits(odd);
  } else {
    low = rg_bf16_bits_of_number(even);
    high = rg_bf16_bits_of_number(odd);
  }
  return _mm512_mask_blend_epi16(0xaaaaaaaa, _mm512_srli_epi32(low, 16), high);
}

RG_INLINE void rg_vf_store_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (t == RG_BF16) {
    _mm512_storeu_si512(p, rg_bf16_line(a, b));
  } else {
    rg_vf_store(t, p, a);
    rg_vf_store(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
  }
}
RG_INLINE void rg_vf_stream_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (t == RG_BF16) {
    _mm512_stream_si512(p, rg_bf16_line(a, b));
  } else {
    rg_vf_stream(t, p, a);
    rg_vf_stream(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
  }
}
RG_INLINE void rg_stream_fence(void) { _mm_sfence(); }

RG_INLINE rg_vf rg_vf_round_to(rg_dtype t, rg_vf v) {
  if (t == RG_F32) return v;
  if (t == RG_F16) return _mm512_cvtph_ps(_mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  return _mm512_castsi512_ps(_mm512_and_si512(rg_bf16_bits(v), _mm512_set1_epi32((int)0xffff0000)));
}

/* A permutation of one vector, not a gather: that would cost a load per lane. */
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  return _mm512_permutexvar_ps(_mm512_loadu_si512(index), _mm512_loadu_ps(table));
}

/* 3: the larger in magnitude; 2 << 2: without a sign. */
RG_INLINE rg_vf rg_vf_max_abs(rg_vf a, rg_vf b) { return _mm512_range_ps(a, b, 3 | 2 << 2); }
RG_INLINE bool rg_vf_any_beyond(rg_vf v, rg_real limit) {
  return _mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(limit), _CMP_NLE_UQ) != 0;
}

RG_INLINE rg_vf rg_vf_negate_odd(rg_vf k, rg_vf v) {
  return _mm512_xor_ps(v, _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(k), 31)));
}

#endif
