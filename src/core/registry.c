#include "src/core/registry.h"

#include <string.h>

/* Operators are numbered as these tables have them: ops.def is read once for each direction. */
#define RG_OP(name)                                       \
  extern const rg_operator rg_##name##_backward_contract; \
  extern const rg_operator rg_##name##_forward_contract;
#include "ropegrad/ops.def"
#undef RG_OP

static const rg_operator *const operators[RG_NUM_OPERATORS] = {
#define RG_OP(name) &rg_##name##_backward_contract,
#include "ropegrad/ops.def"
#undef RG_OP
#define RG_OP(name) &rg_##name##_forward_contract,
#include "ropegrad/ops.def"
#undef RG_OP
};

#if RG_HAVE_CUDA
#define RG_OP(name)                                        \
  extern const rg_cuda_operator rg_##name##_backward_cuda; \
  extern const rg_cuda_operator rg_##name##_forward_cuda;
#include "ropegrad/ops.def"
#undef RG_OP
#endif

/* A level that this build leaves out has neither prototypes nor table entries. */
#if RG_HAVE_AVX2
#define DECLARE_AVX2(name) RG_DECLARE_CPU_KERNEL(name, avx2);
#define ENTRY_AVX2(name) [RG_CPU_AVX2] = name##_cpu_avx2,
#else
#define DECLARE_AVX2(name)
#define ENTRY_AVX2(name)
#endif
#if RG_HAVE_AVX512
#define DECLARE_AVX512(name) RG_DECLARE_CPU_KERNEL(name, avx512);
#define ENTRY_AVX512(name) [RG_CPU_AVX512] = name##_cpu_avx512,
#else
#define DECLARE_AVX512(name)
#define ENTRY_AVX512(name)
#endif
#if RG_HAVE_NEON
#define DECLARE_NEON(name) RG_DECLARE_CPU_KERNEL(name, neon);
#define ENTRY_NEON(name) [RG_CPU_NEON] = name##_cpu_neon,
#else
#define DECLARE_NEON(name)
#define ENTRY_NEON(name)
#endif

#define DECLARE_LEVELS(name)           \
  RG_DECLARE_CPU_KERNEL(name, scalar); \
  DECLARE_AVX2(name)                   \
  DECLARE_AVX512(name)                 \
  DECLARE_NEON(name)                   \
  RG_DECLARE_CPU_KERNEL(name, float64);
#define ENTRIES(name)                   \
  {[RG_CPU_SCALAR] = name##_cpu_scalar, \
   ENTRY_AVX2(name) ENTRY_AVX512(name) ENTRY_NEON(name)[RG_CPU_FLOAT64] = name##_cpu_float64},

#define RG_OP(name) DECLARE_LEVELS(rg_##name##_backward) DECLARE_LEVELS(rg_##name##_forward)
#include "ropegrad/ops.def"
#undef RG_OP

static const rg_cpu_kernel cpu_kernels[RG_NUM_OPERATORS][RG_NUM_CPU_LEVELS] = {
#define RG_OP(name) ENTRIES(rg_##name##_backward)
#include "ropegrad/ops.def"
#undef RG_OP
#define RG_OP(name) ENTRIES(rg_##name##_forward)
#include "ropegrad/ops.def"
#undef RG_OP
};

static const rg_cuda_operator *const cuda_operators[RG_NUM_OPERATORS] = {
#if RG_HAVE_CUDA
#define RG_OP(name) &rg_##name##_backward_cuda,
#include "ropegrad/ops.def"
#undef RG_OP
#define RG_OP(name) &rg_##name##_forward_cuda,
#include "ropegrad/ops.def"
#undef RG_OP
#else
    NULL,
#endif
};

const rg_operator *rg_dev_operator(rg_op_id id, rg_direction direction) {
  return operators[(direction == RG_FORWARD ? RG_NUM_OPS : 0) + (int)id];
}

const rg_operator *rg_dev_operator_at(int index) { return operators[index]; }

int rg_dev_find_operator(const char *name) {
  for (int index = 0; index < RG_NUM_OPERATORS; ++index) {
    if (strcmp(name, operators[index]->name) == 0) return index;
  }
  return -1;
}

int rg_registry_index(const rg_operator *op) {
  for (int index = 0; index < RG_NUM_OPERATORS; ++index) {
    if (operators[index] == op) return index;
  }
  return -1;
}

rg_cpu_kernel rg_registry_cpu_kernel(int index, rg_cpu_level level) { return cpu_kernels[index][level]; }

const rg_cuda_operator *const *rg_registry_cuda_operators(void) { return cuda_operators; }

void rg_dev_cuda_image(int index, const void **image, size_t *bytes) {
  const rg_cuda_operator *op = cuda_operators[index];
  *image = op != NULL ? op->image : NULL;
  *bytes = op != NULL ? (size_t)(op->image_end - op->image) : 0;
}
