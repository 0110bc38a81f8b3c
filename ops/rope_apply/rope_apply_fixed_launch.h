/* The launcher of the kernels for a fixed head_dim: contiguous rows of whole pairs, strides shared by a side's tensors. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FIXED_LAUNCH_H
#define ROPEGRAD_OPS_ROPE_APPLY_FIXED_LAUNCH_H

#include <string.h>

#include "ops/rope_apply/rope_apply_kernels.h"
#include "ops/rope_apply/rope_apply_layout.h"
#include "ops/rope_apply/rope_apply_work.h"

static inline rope_apply_tiles tiles_of(int64_t seq_len, int64_t count) {
  return (rope_apply_tiles){
      .count = rg_divider_of(count), .rows = (uint32_t)(seq_len / count), .longer = (uint32_t)(seq_len % count)};
}

/* Sets `strides` to those that the given tensors share, unless they differ, or offsets are negative or do not fit into
 * 32 bits. */
static inline bool share_strides(const rg_tensor *const *tensors, int count, byte_strides *strides) {
  *strides = (byte_strides){0};
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (tensors[i] == NULL) continue;
    const byte_strides these = strides_of(tensors[i]);
    if (any && memcmp(&these, strides, sizeof these) != 0) return false;
    if (these.batch < 0 || these.head < 0 || these.position < 0) return false;
    int64_t end = 0;
    for (int axis = 0; axis < tensors[i]->rank; ++axis) {
      end += (tensors[i]->shape[axis] - 1) * tensors[i]->stride[axis];
    }
    if ((end + 1) * (int64_t)rg_dtype_size(tensors[i]->dtype) > UINT32_MAX) return false;
    *strides = these;
    any = true;
  }
  return true;
}

static inline bool set_fixed_side(const side_tensors *side, rope_apply_fixed_side *set) {
  *set = (rope_apply_fixed_side){0};
  if (side->heads == 0) return true;
  byte_strides strides;
  if (!share_strides((const rg_tensor *const[]){side->grad_y, side->x, side->grad_x}, 3, &strides)) return false;
  set->grad_y = side->grad_y->data;
  if (side->x != NULL) set->x = side->x->data;
  if (side->grad_x != NULL) set->grad_x = side->grad_x->data;
  set->batch = (uint32_t)strides.batch;
  set->head = (uint32_t)strides.head;
  set->position = (uint32_t)strides.position;
  return true;
}

/* Bulk copies take 16 bytes at a time, and positions that follow each other. */
static inline bool suits_bulk(const side_tensors *side, int64_t row_bytes) {
  enum { UNIT = 16 };
  if (side->heads == 0) return true;
  const rg_tensor *tensors[] = {side->grad_y, side->x};
  for (int i = 0; i < 2; ++i) {
    if (tensors[i] == NULL) continue;
    const byte_strides strides = strides_of(tensors[i]);
    if ((uintptr_t)tensors[i]->data % UNIT != 0 || strides.batch % UNIT != 0 || strides.head % UNIT != 0) return false;
    if (tensors[i]->shape[2] > 1 && strides.position != row_bytes) return false;
  }
  return true;
}

/* From this compute capability on there are bulk copies. */
enum { BULK_COPIES_FROM = 90 };

/* Whether one of the fixed kernels serves; it is launched then. */
static inline bool run_fixed(const work *w, const rg_cuda_call *call, rg_status *status) {
  if (w->head_dim != ROPE_APPLY_FIXED_DIM || w->rotary_dim != w->head_dim || w->interleaved) return false;
  if (w->sums_batch[0] || w->sums_batch[1]) return false;
  if (w->payload != RG_F32 && (w->plain || w->batches * w->seq_len < ROPE_APPLY_FIXED_16_BIT_FROM)) return false;
  rope_apply_fixed_params params = {
      .heads_of_q = (uint32_t)w->side[0].heads, .heads = (uint32_t)w->heads, .same_half = w->same_half};
  byte_strides of_tables, of_grads;
  if (!set_fixed_side(&w->side[0], &params.side[0]) || !set_fixed_side(&w->side[1], &params.side[1]) ||
      !share_strides(w->table, 2, &of_tables) || !share_strides(w->grad_table, 2, &of_grads)) {
    return false;
  }
  const int64_t row_bytes = ROPE_APPLY_FIXED_DIM * (int64_t)rg_dtype_size(w->payload);
  const rg_cuda_device *device = rg_cuda_device_of(call);
  const rope_apply_sizes sizes = {.multiprocessors = device->multiprocessors,
                                  .batches = w->batches,
                                  .seq_len = w->seq_len,
                                  .heads = w->heads,
                                  .bulk = device->compute_capability >= BULK_COPIES_FROM &&
                                          suits_bulk(&w->side[0], row_bytes) && suits_bulk(&w->side[1], row_bytes),
                                  .plain = w->plain,
                                  .is_16_bit = w->payload != RG_F32};
  const rope_apply_shape shape = rope_apply_tune(&sizes);
  const int kernel = find_fixed(w->payload, w->tables, w->plain, shape);
  if (kernel < 0) return false;
  if (!w->plain && w->heads > (int64_t)ROPE_APPLY_HEADS_PER_SUM * shape.groups) return false;
  params.tiles = tiles_of(w->seq_len, shape.tiles);
  if (w->table[0] != NULL) {
    params.cosine = w->table[0]->data;
    params.sine = w->table[1]->data;
  }
  params.table_batch = (uint32_t)of_tables.batch;
  params.table_position = (uint32_t)of_tables.position;
  params.grad_table_batch = (uint32_t)of_grads.batch;
  params.grad_table_position = (uint32_t)of_grads.position;
  for (int i = 0; i < 2; ++i) params.grad_table[i] = w->grad_table[i] != NULL ? w->grad_table[i]->data : NULL;
  const uint32_t threads = (uint32_t)(shape.rows * shape.groups * ROPE_APPLY_FIXED_DIM / ROPE_APPLY_LANE);
  const uint32_t for_sums = w->plain ? 0 : threads * 2 * ROPE_APPLY_LANE * (uint32_t)sizeof(float);
  const uint32_t head_bytes = (uint32_t)(shape.rows * row_bytes * (w->plain ? 1 : 2));
  const uint32_t for_copies = shape.pipeline ? head_bytes * (uint32_t)(shape.groups * shape.depth) : 0;
  const rg_cuda_launch launch = {.kernel = kernel,
                                 .blocks = w->batches * params.tiles.count.divisor,
                                 .threads = threads,
                                 .shared_bytes = for_sums > for_copies ? for_sums : for_copies};
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

#endif
