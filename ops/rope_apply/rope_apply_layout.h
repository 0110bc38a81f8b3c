/* How a tensor lies, as the launchers of both directions ask. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_LAYOUT_H
#define ROPEGRAD_OPS_ROPE_APPLY_LAYOUT_H

#include "ops/rope_apply/rope_apply_strided_rows.h"
#include "src/cuda/launch.h"

/* An axis of one element, or none, has no stride to speak of. */
static inline int64_t stride_of(const rg_tensor *tensor, int axis) {
  return tensor->shape[axis] > 1 ? tensor->stride[axis] : 0;
}

/* Are its rows vectors of `elements` one after the other, aligned to their size or to `widest` bytes? */
static inline bool has_vectors(const rg_tensor *tensor, int64_t elements, int64_t widest) {
  const int last = tensor->rank - 1;
  const int64_t size = (int64_t)rg_dtype_size(tensor->dtype);
  const int64_t alignment = elements * size < widest ? elements * size : widest;
  if (tensor->stride[last] != 1 || (int64_t)((uintptr_t)tensor->data % (uintptr_t)alignment) != 0) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (stride_of(tensor, axis) * size % alignment != 0) return false;
  }
  return true;
}

/* A batch of a tensor is within reach of offsets of 32 bits. */
static inline bool has_short_strides(const rg_tensor *tensor) {
  int64_t last = 0;
  for (int axis = 1; axis < tensor->rank; ++axis) {
    if (stride_of(tensor, axis) < 0) return false;
    last += (tensor->shape[axis] - 1) * tensor->stride[axis];
  }
  return (last + 1) * (int64_t)rg_dtype_size(tensor->dtype) <= UINT32_MAX;
}

/* A tensor's strides in bytes. */
typedef struct byte_strides {
  int64_t batch, head, position;
} byte_strides;

static inline byte_strides strides_of(const rg_tensor *tensor) {
  const int64_t size = (int64_t)rg_dtype_size(tensor->dtype);
  const bool has_heads = tensor->rank == 4;
  return (byte_strides){.batch = size * stride_of(tensor, 0),
                        .head = has_heads ? size * stride_of(tensor, 1) : 0,
                        .position = size * stride_of(tensor, has_heads ? 2 : 1)};
}

/* NULL: what is not given. The strides are short. */
static inline rope_apply_rows rows_of(const rg_tensor *tensor) {
  if (tensor == NULL) return (rope_apply_rows){0};
  const byte_strides strides = strides_of(tensor);
  return (rope_apply_rows){.data = tensor->data,
                           .batch = strides.batch,
                           .head = (uint32_t)strides.head,
                           .position = (uint32_t)strides.position};
}

#endif
