/* rows.h: rows of any dtype and stride, staged through contiguous buffers of rg_real.
 *
 * The general path of an operator gathers each row into buffers, works on those with full vectors, and scatters the
 * results. Here the dtype is known at run time only and is looked at once a row; `offset` and `stride` count elements,
 * may be negative, and a stride of 0 repeats one element. */
#ifndef ROPEGRAD_SRC_SIMD_ROWS_H
#define ROPEGRAD_SRC_SIMD_ROWS_H

#include "src/simd/kernel.h"
#include "src/simd/vec.h"

/* Copies `count` elements of `size` bytes, `stride` elements apart, to or from consecutive ones. */
RG_INLINE void rg_copy_strided(size_t size, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                               int64_t count) {
  for (int64_t i = 0; i < count; i++) {
    memcpy((char *)to + i * to_stride * (int64_t)size, (const char *)from + i * from_stride * (int64_t)size, size);
  }
}

RG_INLINE void rg_row_gather_as(rg_dtype t, const void *row, int64_t stride, rg_real *dst, int64_t n) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
      rg_vf_store(RG_REAL_DTYPE, dst + i, rg_vf_load(t, rg_at_const(t, row, i)));
    }
    rg_vf_store_part(RG_REAL_DTYPE, dst + i, rg_vf_load_part(t, rg_at_const(t, row, i), n - i), n - i);
    return;
  }
  rg_real block[RG_VF_WIDTH] = {0}; /* packed elements of t, which is no larger than rg_real */
  for (int64_t i = 0; i < n; i += RG_VF_WIDTH) {
    const int64_t part = n - i < RG_VF_WIDTH ? n - i : RG_VF_WIDTH;
    rg_copy_strided(RG_SIZE(t), block, 1, rg_at_const(t, row, i * stride), stride, part);
    rg_vf_store_part(RG_REAL_DTYPE, dst + i, rg_vf_load(t, block), part);
  }
}

RG_INLINE void rg_row_scatter_as(rg_dtype t, void *row, int64_t stride, const rg_real *src, int64_t n) {
  if (stride == 1) {
    int64_t i = 0;
    for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
      rg_vf_store(t, rg_at(t, row, i), rg_vf_load(RG_REAL_DTYPE, src + i));
    }
    rg_vf_store_part(t, rg_at(t, row, i), rg_vf_load_part(RG_REAL_DTYPE, src + i, n - i), n - i);
    return;
  }
  rg_real block[RG_VF_WIDTH];
  for (int64_t i = 0; i < n; i += RG_VF_WIDTH) {
    const int64_t part = n - i < RG_VF_WIDTH ? n - i : RG_VF_WIDTH;
    rg_vf_store(t, block, rg_vf_load_part(RG_REAL_DTYPE, src + i, part));
    rg_copy_strided(RG_SIZE(t), rg_at(t, row, i * stride), stride, block, 1, part);
  }
}

/* The two entry points are ordinary functions, one copy a file: a body calls them for each of its tensors. */

/* dst[i] = element offset + i*stride of the array `base` of dtype t, 0 <= i < n. */
static inline void rg_row_gather(rg_dtype t, const void *base, int64_t offset, int64_t stride, rg_real *dst,
                                 int64_t n) {
  RG_WITH_DTYPE(t, T, rg_row_gather_as(T, rg_at_const(T, base, offset), stride, dst, n));
}

/* Element offset + i*stride of the array `base` of dtype t = src[i], rounded to nearest even, 0 <= i < n. */
static inline void rg_row_scatter(rg_dtype t, void *base, int64_t offset, int64_t stride, const rg_real *src,
                                  int64_t n) {
  RG_WITH_DTYPE(t, T, rg_row_scatter_as(T, rg_at(T, base, offset), stride, src, n));
}

#endif
