/* How a kernel body is declared, and how it goes from a runtime dtype to code compiled for it. */
#ifndef ROPEGRAD_SRC_SIMD_KERNEL_H
#define ROPEGRAD_SRC_SIMD_KERNEL_H

#include "src/simd/level.h"
#include "src/spec/operator.h"

/* Heads the definition of rg_<op>_<direction>_cpu_<level>, given rg_<op>_<direction>. */
#define RG_CPU_KERNEL(name)                                                                   \
  void RG_AT_LEVEL(name##_cpu)(const rg_problem *problem, const rg_cpu_resources *resources); \
  void RG_AT_LEVEL(name##_cpu)(const rg_problem *problem, const rg_cpu_resources *resources)

/* Runs the statements with T, a constant that the optimiser sees, set to the floating dtype `dtype`. The float64 level
 * sees float64 tensors alone, the other levels never. */
#if RG_LEVEL == RG_LEVEL_FLOAT64
#define RG_WITH_DTYPE(dtype, T, ...) \
  do {                               \
    (void)(dtype);                   \
    const rg_dtype T = RG_F64;       \
    __VA_ARGS__;                     \
  } while (0)
#else
#define RG_WITH_DTYPE(dtype, T, ...) \
  do {                               \
    if ((dtype) == RG_F32) {         \
      const rg_dtype T = RG_F32;     \
      __VA_ARGS__;                   \
    } else if ((dtype) == RG_BF16) { \
      const rg_dtype T = RG_BF16;    \
      __VA_ARGS__;                   \
    } else {                         \
      const rg_dtype T = RG_F16;     \
      __VA_ARGS__;                   \
    }                                \
  } while (0)
#endif

/* The dtype of rg_real itself: what staged rows hold. */
#if RG_LEVEL == RG_LEVEL_FLOAT64
#define RG_REAL_DTYPE RG_F64
#else
#define RG_REAL_DTYPE RG_F32
#endif

#endif
