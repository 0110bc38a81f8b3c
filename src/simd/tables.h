/* tables.h: vectors of angles with their cosines and sines, and the rows that they are written to.
 *
 * An operator that makes tables writes those of three rows that are wanted: the angles, in rg_real, and their cosines
 * and sines, both of one dtype T. */
#ifndef ROPEGRAD_SRC_SIMD_TABLES_H
#define ROPEGRAD_SRC_SIMD_TABLES_H

#include "src/simd/pairs.h"
#include "src/simd/rows.h"
#include "src/simd/sincos.h"

/* Contiguous rows; NULL: not wanted. */
typedef struct rg_tables {
  rg_real *angle;
  void *cosine, *sine;
} rg_tables;

RG_INLINE bool rg_want_sincos(rg_tables to) { return to.cosine != NULL || to.sine != NULL; }

/* The same rows from element i on. */
RG_INLINE rg_tables rg_tables_from(rg_dtype T, rg_tables to, int64_t i) {
  return (rg_tables){.angle = to.angle ? to.angle + i : NULL,
                     .cosine = to.cosine ? rg_at(T, to.cosine, i) : NULL,
                     .sine = to.sine ? rg_at(T, to.sine, i) : NULL};
}

/* May vectors be streamed to elements 0, RG_VF_WIDTH, ... of every wanted row? */
RG_INLINE bool rg_tables_aligned(rg_dtype T, rg_tables to) {
  return (!to.angle || rg_stream_aligned(RG_REAL_DTYPE, to.angle)) && (!to.cosine || rg_stream_aligned(T, to.cosine)) &&
         (!to.sine || rg_stream_aligned(T, to.sine));
}

/* A vector of each row. */
typedef struct rg_table_vectors {
  rg_vf angle, cosine, sine;
} rg_table_vectors;

RG_INLINE rg_table_vectors rg_table_vectors_of(rg_tables wanted, rg_vf angle) {
  rg_table_vectors v = {angle, angle, angle};
  if (rg_want_sincos(wanted)) rg_vf_sincos(angle, &v.sine, &v.cosine);
  return v;
}

/* The first n lanes, 0 <= n <= RG_VF_WIDTH, to elements i, i+1, ... */
RG_INLINE void rg_tables_store(rg_dtype T, rg_tables to, int64_t i, rg_table_vectors v, int64_t n) {
  if (to.angle) rg_store_lanes(RG_REAL_DTYPE, to.angle + i, v.angle, n);
  if (to.cosine) rg_store_lanes(T, rg_at(T, to.cosine, i), v.cosine, n);
  if (to.sine) rg_store_lanes(T, rg_at(T, to.sine, i), v.sine, n);
}

/* A whole vector past the caches, where that is aligned. */
RG_INLINE void rg_tables_stream(rg_dtype T, rg_tables to, int64_t i, rg_table_vectors v) {
  if (to.angle) rg_vf_stream(RG_REAL_DTYPE, to.angle + i, v.angle);
  if (to.cosine) rg_vf_stream(T, rg_at(T, to.cosine, i), v.cosine);
  if (to.sine) rg_vf_stream(T, rg_at(T, to.sine, i), v.sine);
}

#endif
