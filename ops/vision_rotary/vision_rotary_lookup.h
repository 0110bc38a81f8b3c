/* One more word for the vector vocabulary of src/simd/vec.h, in the same form:
 *
 *   rg_vf_lookup(table, index)   lane i is table[index[i]], for a table of RG_VF_WIDTH elements and 0 <= index[i] <
 *                                RG_VF_WIDTH; at width 1 the table may have any size
 *
 * It is a permutation of one vector, which every instruction set has, not a gather. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_LOOKUP_H
#define ROPEGRAD_OPS_VISION_ROTARY_LOOKUP_H

#include "src/simd/vec.h"

#if RG_LEVEL == RG_LEVEL_AVX512
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  return _mm512_permutexvar_ps(_mm512_loadu_si512(index), _mm512_loadu_ps(table));
}
#elif RG_LEVEL == RG_LEVEL_AVX2
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  return _mm256_permutevar8x32_ps(_mm256_loadu_ps(table), _mm256_loadu_si256((const __m256i *)index));
}
#elif RG_LEVEL == RG_LEVEL_NEON
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) {
  /* The table is one of bytes: lane n is bytes 4n to 4n + 3. */
  const uint32x4_t first_byte = vmulq_n_u32(vreinterpretq_u32_s32(vld1q_s32(index)), 0x04040404u);
  const uint32x4_t bytes = vaddq_u32(first_byte, vdupq_n_u32(0x03020100u));
  return vreinterpretq_f32_u8(vqtbl1q_u8(vreinterpretq_u8_f32(vld1q_f32(table)), vreinterpretq_u8_u32(bytes)));
}
#else
RG_INLINE rg_vf rg_vf_lookup(const rg_real *table, const int32_t *index) { return table[*index]; }
#endif

#endif
