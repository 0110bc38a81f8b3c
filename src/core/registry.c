#include "src/core/registry.h"

#include <string.h>

#define RG_OP(name)                                       \
  extern const rg_operator rg_##name##_backward_contract; \
  extern const rg_operator rg_##name##_forward_contract;
#include "ropegrad/ops.def"
#undef RG_OP

static const rg_operator *const operators[RG_NUM_OPS][RG_NUM_DIRECTIONS] = {
#define RG_OP(name) {&rg_##name##_backward_contract, &rg_##name##_forward_contract},
#include "ropegrad/ops.def"
#undef RG_OP
};

#if RG_HAVE_CUDA
#define RG_OP(name) extern const rg_cuda_operator rg_##name##_backward_cuda;
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

#define RG_OP(name)                                    \
  RG_DECLARE_CPU_KERNEL(rg_##name##_backward, scalar); \
  DECLARE_AVX2(rg_##name##_backward)                   \
  DECLARE_AVX512(rg_##name##_backward)                 \
  DECLARE_NEON(rg_##name##_backward)                   \
  RG_DECLARE_CPU_KERNEL(rg_##name##_backward, float64);
#include "ropegrad/ops.def"
#undef RG_OP

static const rg_cpu_kernel backward_kernels[RG_NUM_OPS][RG_NUM_CPU_LEVELS] = {
#define RG_OP(name)                                                    \
  {[RG_CPU_SCALAR] = rg_##name##_backward_cpu_scalar,                  \
   ENTRY_AVX2(rg_##name##_backward) ENTRY_AVX512(rg_##name##_backward) \
       ENTRY_NEON(rg_##name##_backward)[RG_CPU_FLOAT64] = rg_##name##_backward_cpu_float64},
#include "ropegrad/ops.def"
#undef RG_OP
};

static const rg_cuda_operator *const cuda_operators[RG_NUM_OPS] = {
#if RG_HAVE_CUDA
#define RG_OP(name) &rg_##name##_backward_cuda,
#include "ropegrad/ops.def"
#undef RG_OP
#else
    NULL,
#endif
};

const rg_operator *rg_dev_operator(rg_op_id id, rg_direction direction) { return operators[id][direction]; }

int rg_dev_find_operator(const char *name) {
  for (int id = 0; id < RG_NUM_OPS; ++id) {
    if (strcmp(name, operators[id][RG_BACKWARD]->name) == 0) return id;
  }
  return -1;
}

int rg_registry_id(const rg_operator *op) {
  const int id = rg_dev_find_operator(op->name);
  return id >= 0 && operators[id][op->direction] == op ? id : -1;
}

rg_cpu_kernel rg_registry_cpu_kernel(rg_op_id id, rg_direction direction, rg_cpu_level level) {
  return direction == RG_BACKWARD ? backward_kernels[id][level] : NULL;
}

const rg_cuda_operator *const *rg_registry_cuda_operators(void) { return cuda_operators; }

void rg_dev_cuda_image(rg_op_id id, const void **image, size_t *bytes) {
  const rg_cuda_operator *op = cuda_operators[id];
  *image = op != NULL ? op->image : NULL;
  *bytes = op != NULL ? (size_t)(op->image_end - op->image) : 0;
}
