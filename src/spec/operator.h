/* What an operator's kernels are given besides the problem, and how they are declared. The contract itself (tensors,
 * dims, options, cost, reference) is `struct rg_operator` in ropegrad_dev.h. */
#ifndef ROPEGRAD_SRC_SPEC_OPERATOR_H
#define ROPEGRAD_SRC_SPEC_OPERATOR_H

#include "ropegrad/ropegrad_dev.h"
#include "src/base/error.h"

/* The context's share in a call on the CPU. */
typedef struct rg_cpu_resources {
  int threads;
  void *workspace; /* RG_WORKSPACE_BYTES, aligned to 64 */
} rg_cpu_resources;
enum { RG_WORKSPACE_BYTES = 256 * 1024 };

/* A kernel gets a problem that rg_resolve accepted and whose values were checked: it cannot fail. */
typedef void (*rg_cpu_kernel)(const rg_problem *problem, const rg_cpu_resources *resources);

/* The levels that the bodies ops/<op>/<op>_cpu.c and <op>_forward_cpu.c are compiled for. `float64` serves float64
 * tensors at every level. */
typedef enum rg_cpu_level {
  RG_CPU_SCALAR,
  RG_CPU_AVX2,
  RG_CPU_AVX512,
  RG_CPU_NEON,
  RG_CPU_FLOAT64,
  RG_NUM_CPU_LEVELS
} rg_cpu_level;

/* rg_<op>_<direction>_cpu_<level>: RG_DECLARE_CPU_KERNEL(rg_<op>_<direction>, <level>); */
#define RG_DECLARE_CPU_KERNEL(name, level) \
  void name##_cpu_##level(const rg_problem *problem, const rg_cpu_resources *resources)

/* Axis helpers for the operators' tensor tables. */
#define RG_AXIS(dim) \
  { dim, 1 }
#define RG_AXIS_OVER(dim, divisor) \
  { dim, divisor }
#define RG_AXIS_SIZE(size) \
  { RG_AXIS_FIXED, size }

static inline bool rg_given(const rg_problem *problem, int tensor) {
  return problem->tensor[tensor].dtype != RG_DTYPE_NONE;
}

/* The address of the element `offset` elements after [0, ..., 0]. */
static inline void *rg_element(const rg_tensor *tensor, int64_t offset) {
  /* By number: an empty tensor may have no memory, and no offset may be added to a NULL pointer, not even 0. */
  return (void *)((uintptr_t)tensor->data + (uintptr_t)(offset * (int64_t)rg_dtype_size(tensor->dtype)));
}

/* Row-major without gaps: the elements lie in one contiguous run. */
bool rg_tensor_is_dense(const rg_tensor *tensor);

/* Bytes of the distinct elements: a stride-0 axis repeats the same ones. 0 for a tensor that is not given. */
int64_t rg_tensor_distinct_bytes(const rg_tensor *tensor);

#endif
