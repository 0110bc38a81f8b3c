/* Rows of strided tensors, and how they are moved or cleared bit for bit: the larger part of the operator's traffic.
 * Built once per level, as part of both directions. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_ROWS_H

#include "src/simd/kernel.h"
#include "src/simd/stream.h"

enum {
  COPY_BYTES = 4 * RG_CACHE_LINE_BYTES,
  VECTOR_BYTES = RG_VF_WIDTH * sizeof(rg_real),
  LINE_VECTORS = RG_CACHE_LINE_BYTES / VECTOR_BYTES,
  COPY_VECTORS = COPY_BYTES / VECTOR_BYTES
};

/* A [B, Hk, rows, columns] tensor, or a [B or 1, rows, columns] table, which is the same for every head. Steps along
 * each axis in bytes. */
typedef struct row_view {
  char *data; /* NULL: not given */
  int64_t batch, head, row, column;
  int64_t element; /* bytes of one */
} row_view;

static inline row_view view_rows(const rg_tensor *t) {
  if (t->dtype == RG_DTYPE_NONE) return (row_view){0};
  const int64_t element = (int64_t)rg_dtype_size(t->dtype);
  const bool has_heads = t->rank == 4, serves_every_batch = t->shape[0] == 1;
  return (row_view){.data = t->data,
                    .batch = serves_every_batch ? 0 : t->stride[0] * element,
                    .head = has_heads ? t->stride[1] * element : 0,
                    .row = t->stride[t->rank - 2] * element,
                    .column = t->stride[t->rank - 1] * element,
                    .element = element};
}

/* p moved by `bytes`, by number: what is empty or not given has no memory, and no offset may be added to a NULL
 * pointer, not even 0. */
RG_INLINE char *moved(char *p, int64_t bytes) { return (char *)((uintptr_t)p + (uintptr_t)bytes); }

RG_INLINE char *row_at(const row_view *v, int64_t b, int64_t h, int64_t row) {
  return moved(v->data, b * v->batch + h * v->head + row * v->row);
}

RG_INLINE bool contiguous_columns(const row_view *v) { return v->column == v->element; }

/* Bytes before the first whole line at p, at most `bytes`. */
RG_INLINE int64_t bytes_to_line(const void *p, int64_t bytes) {
  const int64_t head = (int64_t)(-(uintptr_t)p % RG_CACHE_LINE_BYTES);
  return head < bytes ? head : bytes;
}

/* All loads, then all stores: memory is faster when reads and writes come in bursts. */
RG_INLINE void stream_vectors(int vectors, char *to, const char *from) {
  rg_vf value[COPY_VECTORS];
  for (int v = 0; v < vectors; ++v) value[v] = rg_vf_load(RG_REAL_DTYPE, from + v * VECTOR_BYTES);
  for (int v = 0; v < vectors; ++v) rg_vf_stream(RG_REAL_DTYPE, to + v * VECTOR_BYTES, value[v]);
}

/* With `stream` the whole lines of the target are written past the caches. Vectors serve as bags of bytes: loading and
 * storing them in their own dtype converts nothing, so that the payload of a NaN survives. Levels of width 1 have no
 * streamed store, and the C library's copy serves them better. */
RG_INLINE void copy_bytes(char *to, const char *from, int64_t bytes, bool stream) {
  int64_t i = 0;
  if (stream && RG_VF_WIDTH > 1) {
    i = bytes_to_line(to, bytes);
    if (i > 0) memcpy(to, from, (size_t)i);
    for (; i + COPY_BYTES <= bytes; i += COPY_BYTES) stream_vectors(COPY_VECTORS, to + i, from + i);
    for (; i + RG_CACHE_LINE_BYTES <= bytes; i += RG_CACHE_LINE_BYTES) stream_vectors(LINE_VECTORS, to + i, from + i);
  }
  if (i < bytes) memcpy(to + i, from + i, (size_t)(bytes - i));
}

RG_INLINE void clear_bytes(char *to, int64_t bytes, bool stream) {
  int64_t i = 0;
  if (stream && RG_VF_WIDTH > 1) {
    i = bytes_to_line(to, bytes);
    if (i > 0) memset(to, 0, (size_t)i);
    for (; i + RG_CACHE_LINE_BYTES <= bytes; i += RG_CACHE_LINE_BYTES) {
      for (int v = 0; v < RG_CACHE_LINE_BYTES; v += VECTOR_BYTES) rg_vf_stream(RG_REAL_DTYPE, to + i + v, rg_vf_zero());
    }
  }
  if (i < bytes) memset(to + i, 0, (size_t)(bytes - i));
}

RG_INLINE void copy_elements_of(size_t size, char *to, int64_t to_step, const char *from, int64_t from_step,
                                int64_t count) {
  for (int64_t i = 0; i < count; ++i) memcpy(to + i * to_step, from + i * from_step, size);
}

/* Copies `count` elements that lie `to_step` and `from_step` bytes apart. */
static inline void copy_elements(int64_t size, char *to, int64_t to_step, const char *from, int64_t from_step,
                                 int64_t count) {
  if (size == 2) {
    copy_elements_of(2, to, to_step, from, from_step, count);
  } else if (size == 4) {
    copy_elements_of(4, to, to_step, from, from_step, count);
  } else {
    copy_elements_of(8, to, to_step, from, from_step, count);
  }
}

/* Copies `columns` columns of `rows` consecutive rows, from the one at `source` to the one at `target`. */
static inline void copy_rows(const row_view *to, char *target, const row_view *from, const char *source, int64_t rows,
                             int64_t columns, bool stream) {
  const bool contiguous = contiguous_columns(to) && contiguous_columns(from);
  int64_t bytes = columns * to->element;
  if (contiguous && to->row == bytes && from->row == bytes) { /* the rows touch: one run */
    bytes *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (contiguous) {
      copy_bytes(target + r * to->row, source + r * from->row, bytes, stream);
    } else {
      copy_elements(to->element, target + r * to->row, to->column, source + r * from->row, from->column, columns);
    }
  }
}

/* Sets `columns` columns of `rows` consecutive rows to zero. */
static inline void clear_rows(const row_view *v, char *target, int64_t rows, int64_t columns, bool stream) {
  static const char zero[sizeof(double)];
  int64_t bytes = columns * v->element;
  if (contiguous_columns(v) && v->row == bytes) {
    bytes *= rows;
    rows = 1;
  }
  for (int64_t r = 0; r < rows; ++r) {
    if (contiguous_columns(v)) {
      clear_bytes(target + r * v->row, bytes, stream);
    } else {
      copy_elements(v->element, target + r * v->row, v->column, zero, 0, columns);
    }
  }
}

#endif
