/* pairs.h: vectors of pairs in memory, in both styles.
 *
 * A vector of pairs is a pair of vectors (rg_pair). `first` and `second` are where the first and the second elements of
 * a row's pairs begin, contiguous; interleaved pairs take turns from `first` on, and nobody looks at `second`. A vector
 * has n pairs, 0 < n <= RG_VF_WIDTH, from pair i on: without masks where n is the constant RG_VF_WIDTH. */
#ifndef ROPEGRAD_SRC_SIMD_PAIRS_H
#define ROPEGRAD_SRC_SIMD_PAIRS_H

#include "src/simd/rotate.h"

/* The first n lanes, 0 <= n <= RG_VF_WIDTH. */
RG_INLINE rg_vf rg_load_lanes(rg_dtype T, const void *p, int64_t n) {
  return n == RG_VF_WIDTH ? rg_vf_load(T, p) : rg_vf_load_part(T, p, n);
}

RG_INLINE void rg_store_lanes(rg_dtype T, void *p, rg_vf v, int64_t n) {
  if (n == RG_VF_WIDTH) {
    rg_vf_store(T, p, v);
  } else {
    rg_vf_store_part(T, p, v, n);
  }
}

/* Of the 2n consecutive elements of n interleaved pairs, how many lie in the first of two vectors. */
RG_INLINE int64_t rg_lower_lanes(int64_t n) { return 2 * n < RG_VF_WIDTH ? 2 * n : RG_VF_WIDTH; }

RG_INLINE rg_pair rg_load_pairs(rg_dtype T, rg_style S, const void *first, const void *second, int64_t i, int64_t n) {
  if (S == RG_STYLE_ROTATE_HALF) {
    return (rg_pair){rg_load_lanes(T, rg_at_const(T, first, i), n), rg_load_lanes(T, rg_at_const(T, second, i), n)};
  }
  const int64_t lower = rg_lower_lanes(n);
  rg_pair pairs;
  rg_vf_deinterleave(rg_load_lanes(T, rg_at_const(T, first, 2 * i), lower),
                     rg_load_lanes(T, rg_at_const(T, first, 2 * i + lower), 2 * n - lower), &pairs.first,
                     &pairs.second);
  return pairs;
}

RG_INLINE void rg_store_pairs(rg_dtype T, rg_style S, void *first, void *second, int64_t i, rg_pair pairs, int64_t n) {
  if (S == RG_STYLE_ROTATE_HALF) {
    rg_store_lanes(T, rg_at(T, first, i), pairs.first, n);
    rg_store_lanes(T, rg_at(T, second, i), pairs.second, n);
    return;
  }
  const int64_t lower = rg_lower_lanes(n);
  rg_vf a, b;
  rg_vf_interleave(pairs.first, pairs.second, &a, &b);
  rg_store_lanes(T, rg_at(T, first, 2 * i), a, lower);
  rg_store_lanes(T, rg_at(T, first, 2 * i + lower), b, 2 * n - lower);
}

/* A whole vector past the caches: both of its parts in memory must be rg_stream_aligned. */
RG_INLINE void rg_stream_pairs(rg_dtype T, rg_style S, void *first, void *second, int64_t i, rg_pair pairs) {
  if (S == RG_STYLE_ROTATE_HALF) {
    rg_vf_stream(T, rg_at(T, first, i), pairs.first);
    rg_vf_stream(T, rg_at(T, second, i), pairs.second);
    return;
  }
  rg_vf a, b;
  rg_vf_interleave(pairs.first, pairs.second, &a, &b);
  rg_vf_stream(T, rg_at(T, first, 2 * i), a);
  rg_vf_stream(T, rg_at(T, first, 2 * i + RG_VF_WIDTH), b);
}

#endif
