/* What the launchers of both directions share: which tensors the tuned kernels take, and how sizes are handed over. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_LAUNCH_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_LAUNCH_H

#include "ops/kv_cache_update/kv_cache_update_cuda.h"
#include "src/cuda/launch.h"

/* A block of the general kernels. */
enum { GENERAL_THREADS = 256 };

/* The dtype of all given tensors but the cache positions; RG_DTYPE_NONE: they have several. */
static inline rg_dtype common_dtype(const rg_problem *problem, int cache_position) {
  rg_dtype dtype = RG_DTYPE_NONE;
  for (int k = 0; k < problem->op->num_tensors; ++k) {
    if (k == cache_position || !rg_given(problem, k)) continue;
    if (dtype != RG_DTYPE_NONE && problem->tensor[k].dtype != dtype) return RG_DTYPE_NONE;
    dtype = problem->tensor[k].dtype;
  }
  return dtype;
}

/* What a 16-byte access moves, and what the addresses of its tensors are multiples of. */
enum { VECTOR_BYTES = 16 };

/* The strides of a tensor in bytes. An axis of one element is not stepped along. False: some stride is negative, too
 * long, or breaks the alignment. */
static inline bool find_strides(const rg_tensor *t, kv_cache_update_strides *found) {
  const int64_t size = (int64_t)rg_dtype_size(t->dtype);
  int64_t stride[RG_MAX_RANK] = {0};
  for (int axis = 0; axis < t->rank; ++axis) {
    if (t->shape[axis] == 1) continue;
    stride[axis] = t->stride[axis];
    if (axis == t->rank - 1) continue;
    if (stride[axis] < 0 || stride[axis] > UINT32_MAX / size || stride[axis] * size % VECTOR_BYTES != 0) return false;
  }
  *found = (kv_cache_update_strides){.batch = (uint32_t)(stride[0] * size),
                                     .head = t->rank == 4 ? (uint32_t)(stride[1] * size) : 0,
                                     .row = (uint32_t)(stride[t->rank - 2] * size)};
  return stride[t->rank - 1] == 1 && (uintptr_t)t->data % VECTOR_BYTES == 0;
}

static inline bool same_strides(const kv_cache_update_strides *a, const kv_cache_update_strides *b) {
  return a->batch == b->batch && a->head == b->head && a->row == b->row;
}

/* The strides of two tensors, where each that is given must have the same. */
static inline bool find_common_strides(const rg_problem *problem, int first, int second,
                                       kv_cache_update_strides *found) {
  kv_cache_update_strides other;
  *found = (kv_cache_update_strides){0};
  if (rg_given(problem, first) && !find_strides(&problem->tensor[first], found)) return false;
  if (!rg_given(problem, second)) return true;
  if (!find_strides(&problem->tensor[second], &other)) return false;
  if (rg_given(problem, first)) return same_strides(found, &other);
  *found = other;
  return true;
}

static inline kv_cache_update_divider divider_of(int64_t divisor) {
  return (kv_cache_update_divider){
      .divisor = (uint32_t)divisor,
      .factor = divisor == 1 ? 0 : (uint32_t)(((uint64_t)1 << 32) / (uint64_t)divisor + 1)};
}

/* Below 2^32, which the dividers need. */
static inline bool is_divided(int64_t blocks, int64_t divisor) { return blocks <= UINT32_MAX / divisor; }

/* The sizes that the tuned kernels count in 32 bits; and a block looks through all of cache_position. */
enum { MOST_NEW_ROWS = 32768 };

#endif
