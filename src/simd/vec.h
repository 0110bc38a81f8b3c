/* vec.h: the vector vocabulary that every operator body is written in.
 *
 * rg_vf is a vector of RG_VF_WIDTH lanes of rg_real: float, or double at the FLOAT64 level. Arithmetic is always in
 * rg_real; the 16-bit dtypes exist only in memory, and loads and stores convert. Each vec_<level>.h defines:
 *
 *   rg_vf_zero() rg_vf_set1(x)         every lane 0, every lane x
 *   rg_vf_add(a, b) _sub _mul _neg(a)  lane by lane, each rounded once
 *   rg_vf_fma(a, b, c)                 a*b + c. One rounding where the level has the instruction, else two
 *   rg_vf_fnma(a, b, c)                c - a*b, likewise
 *   rg_vf_sum(a)                       the sum of all lanes, always in the same order
 *   rg_vf_load(t, p)                   RG_VF_WIDTH consecutive elements of dtype t from p, at any element's address
 *   rg_vf_load_part(t, p, n)           the first n of them, 0 <= n <= RG_VF_WIDTH; the other lanes are 0. Not a byte
 *                                      beyond these n elements is touched
 *   rg_vf_store(t, p, v)               the converse, rounding to nearest even: NaN stays NaN, overflow gives infinity
 *   rg_vf_store_part(t, p, v, n)       the first n lanes, likewise
 *   rg_vf_stream(t, p, v)              as rg_vf_store, past the caches where the level can; see rg_stream_aligned
 *   rg_vf_load_two(t, p, &a, &b)       2*RG_VF_WIDTH consecutive elements, in an order that the level chooses for t:
 *                                      for work lane by lane that need not know which element a lane holds
 *   rg_vf_two_splits(t)                is that order the even elements in a, the odd ones in b? Else a's elements
 *                                      precede b's. Work on elements of two dtypes needs them in one order: see
 *                                      rg_vf_load_two_like
 *   rg_vf_store_two(t, p, a, b)        the converse, rounding as rg_vf_store does
 *   rg_vf_stream_two(t, p, a, b)       likewise past the caches, at a multiple of two vectors' size in memory
 *   rg_stream_fence()                  orders streamed stores before whatever the thread does next
 *   rg_vf_round_to(t, v)               each lane rounded to dtype t and back
 *   rg_vf_deinterleave(a, b, &e, &o)   a, b: two vectors that follow each other in memory; e, o: their even and odd
 *                                      elements
 *   rg_vf_interleave(e, o, &a, &b)     the converse
 *   rg_vf_lookup(table, index)         lane i is table[index[i]], 0 <= index[i] < RG_VF_WIDTH; the table has that many
 *                                      elements, at width 1 any number
 *   rg_vf_max_abs(a, b)                the larger of a and |b|, where a is not negative. A NaN in b may be passed over
 *   rg_vf_any_beyond(v, limit)         does any lane have |lane| > limit, or hold a NaN?
 *   rg_vf_negate_odd(k, v)             (float levels) v, negated in the lanes where k is odd. Each lane of k holds an
 *                                      integer plus 1.5 * 2^23, which puts the integer into its low bits
 *
 * A dtype argument `t` must be a constant that the optimiser sees, so that only its branch remains. The float levels
 * know RG_F32, RG_BF16 and RG_F16, the FLOAT64 level RG_F64 alone. */
#ifndef ROPEGRAD_SRC_SIMD_VEC_H
#define ROPEGRAD_SRC_SIMD_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ropegrad/ropegrad_dev.h"
#include "src/simd/level.h"

/* Bytes of an element; a constant expression when t is one. */
#define RG_SIZE(t) ((t) == RG_F64 || (t) == RG_I64 ? (size_t)8 : (t) == RG_F32 || (t) == RG_I32 ? (size_t)4 : (size_t)2)

/* What memory and caches move at a time, on every processor that the library is built for. */
enum { RG_CACHE_LINE_BYTES = 64 };

#if RG_LEVEL == RG_LEVEL_AVX2
#include "src/simd/vec_avx2.h"
#elif RG_LEVEL == RG_LEVEL_AVX512
#include "src/simd/vec_avx512.h"
#elif RG_LEVEL == RG_LEVEL_NEON
#include "src/simd/vec_neon.h"
#else
#include "src/simd/vec_scalar.h"
#endif

/* Where a level has no faster order for two vectors, they follow each other. */
#ifndef RG_VF_HAS_TWO
RG_INLINE bool rg_vf_two_splits(rg_dtype t) {
  (void)t;
  return false;
}
RG_INLINE void rg_vf_load_two(rg_dtype t, const void *p, rg_vf *a, rg_vf *b) {
  *a = rg_vf_load(t, p);
  *b = rg_vf_load(t, (const char *)p + RG_VF_WIDTH * RG_SIZE(t));
}
RG_INLINE void rg_vf_store_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  rg_vf_store(t, p, a);
  rg_vf_store(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
}
RG_INLINE void rg_vf_stream_two(rg_dtype t, void *p, rg_vf a, rg_vf b) {
  rg_vf_stream(t, p, a);
  rg_vf_stream(t, (char *)p + RG_VF_WIDTH * RG_SIZE(t), b);
}
#endif

/* As rg_vf_load_two, rg_vf_store_two and rg_vf_stream_two, but with the elements of dtype t in the order of another dtype. `splits`:
 * rg_vf_two_splits of that one. */
RG_INLINE void rg_vf_load_two_like(bool splits, rg_dtype t, const void *p, rg_vf *a, rg_vf *b) {
  rg_vf_load_two(t, p, a, b);
  if (splits && !rg_vf_two_splits(t)) rg_vf_deinterleave(*a, *b, a, b);
  if (!splits && rg_vf_two_splits(t)) rg_vf_interleave(*a, *b, a, b);
}
RG_INLINE void rg_vf_store_two_like(bool splits, rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (splits && !rg_vf_two_splits(t)) rg_vf_interleave(a, b, &a, &b);
  if (!splits && rg_vf_two_splits(t)) rg_vf_deinterleave(a, b, &a, &b);
  rg_vf_store_two(t, p, a, b);
}
RG_INLINE void rg_vf_stream_two_like(bool splits, rg_dtype t, void *p, rg_vf a, rg_vf b) {
  if (splits && !rg_vf_two_splits(t)) rg_vf_interleave(a, b, &a, &b);
  if (!splits && rg_vf_two_splits(t)) rg_vf_deinterleave(a, b, &a, &b);
  rg_vf_stream_two(t, p, a, b);
}

/* Wider than rg_real: for totals of so many terms that equal ones would lose their last bits one by one. */
#if RG_LEVEL == RG_LEVEL_FLOAT64
typedef long double rg_wide;
#else
typedef double rg_wide;
#endif

/* The address of element i (of any sign) of an array of dtype t. */
RG_INLINE const void *rg_at_const(rg_dtype t, const void *base, int64_t i) {
  return (const char *)base + i * (int64_t)RG_SIZE(t);
}
RG_INLINE void *rg_at(rg_dtype t, void *base, int64_t i) { return (char *)base + i * (int64_t)RG_SIZE(t); }

/* May rg_vf_stream write at p? A streamed vector must lie at a multiple of its own size in memory. */
RG_INLINE bool rg_stream_aligned(rg_dtype t, const void *p) { return (uintptr_t)p % (RG_VF_WIDTH * RG_SIZE(t)) == 0; }

#endif
