/* Whole rows moved or cleared bit for bit: the larger part of the operator's traffic. Built once per level, as part of
 * kv_cache_update_cpu.c. Rows are those of [B, Hk, rows, D] tensors; places count elements from [0, 0, 0, 0]. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_H

#include "src/simd/kernel.h"
#include "src/simd/rows.h"
#include "src/simd/stream.h"

enum { LINE_BYTES = 64, VECTOR_BYTES = RG_VF_WIDTH * sizeof(rg_real) };

/* Bytes before the first whole line at p. */
RG_INLINE int64_t bytes_to_line(const void *p, int64_t bytes) {
  const int64_t head = (int64_t)(-(uintptr_t)p % LINE_BYTES);
  return head < bytes ? head : bytes;
}

/* With `stream` the whole lines of the target are written past the caches. Vectors serve as bags of bytes: loading and
 * storing them in their own dtype converts nothing, so that the payload of a NaN survives. Levels of width 1 have no
 * streamed store, and the C library's copy serves them better. */
static inline void copy_bytes(void *target, const void *source, int64_t bytes, bool stream) {
  char *to = target;
  const char *from = source;
  int64_t i = 0;
  if (stream && RG_VF_WIDTH > 1) {
    i = bytes_to_line(to, bytes);
    if (i > 0) memcpy(to, from, (size_t)i);
    for (; i + LINE_BYTES <= bytes; i += LINE_BYTES) {
      for (int v = 0; v < LINE_BYTES; v += VECTOR_BYTES) {
        rg_vf_stream(RG_REAL_DTYPE, to + i + v, rg_vf_load(RG_REAL_DTYPE, from + i + v));
      }
    }
  }
  if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

static inline void clear_bytes(void *target, int64_t bytes, bool stream) {
  char *to = target;
  int64_t i = 0;
  if (stream && RG_VF_WIDTH > 1) {
    i = bytes_to_line(to, bytes);
    if (i > 0) memset(to, 0, (size_t)i);
    for (; i + LINE_BYTES <= bytes; i += LINE_BYTES) {
      for (int v = 0; v < LINE_BYTES; v += VECTOR_BYTES) rg_vf_stream(RG_REAL_DTYPE, to + i + v, rg_vf_zero());
    }
  }
  if (i < bytes) memset(to + i, 0, (size_t)(bytes - i));
}

/* rg_copy_strided for a size that is known at run time alone. */
static inline void copy_elements(size_t size, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                                 int64_t count) {
  if (size == 2) {
    rg_copy_strided(2, to, to_stride, from, from_stride, count);
  } else if (size == 4) {
    rg_copy_strided(4, to, to_stride, from, from_stride, count);
  } else {
    rg_copy_strided(8, to, to_stride, from, from_stride, count);
  }
}

/* Are `columns` columns of consecutive rows one run of memory? */
RG_INLINE bool rows_touch(const rg_tensor *t, int64_t columns) {
  return t->stride[3] == 1 && t->stride[2] == columns && t->shape[3] == columns;
}

/* Copies `columns` columns of `rows` consecutive rows. */
static inline void copy_rows(const rg_tensor *to, int64_t to_at, const rg_tensor *from, int64_t from_at, int64_t rows,
                             int64_t columns, bool stream) {
  const size_t size = rg_dtype_size(to->dtype);
  if (rows_touch(to, columns) && rows_touch(from, columns)) {
    columns *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    void *target = rg_element(to, to_at + r * to->stride[2]);
    const void *source = rg_element(from, from_at + r * from->stride[2]);
    if (to->stride[3] == 1 && from->stride[3] == 1) {
      copy_bytes(target, source, columns * (int64_t)size, stream);
    } else {
      copy_elements(size, target, to->stride[3], source, from->stride[3], columns);
    }
  }
}

/* Sets `rows` consecutive rows to zero. */
static inline void clear_rows(const rg_tensor *t, int64_t at, int64_t rows, bool stream) {
  static const double zero = 0.0;
  const size_t size = rg_dtype_size(t->dtype);
  int64_t columns = t->shape[3];
  if (rows_touch(t, columns)) {
    columns *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    void *target = rg_element(t, at + r * t->stride[2]);
    if (t->stride[3] == 1) {
      clear_bytes(target, columns * (int64_t)size, stream);
    } else {
      copy_elements(size, target, t->stride[3], &zero, 0, columns);
    }
  }
}

#endif
