/* level.h: the instruction-set level that a file is built for.
 *
 * The body of an operator is one C file, built once per level with -DRG_LEVEL=RG_LEVEL_x and the compiler flags below.
 * Nothing in it but the names of its entry points says which level it is: RG_AT_LEVEL(name) is `name_avx2`, and so on.
 *
 *   level    lanes      arithmetic  compiler flags
 *   SCALAR   1          float       none: the baseline of any CPU
 *   AVX2     8          float       -mavx2 -mfma -mf16c
 *   AVX512   16         float       -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma -mf16c
 *   NEON     4          float       none: the baseline of AArch64
 *   FLOAT64  1          double      none; serves the float64 tensors of every machine
 *
 * All are built with -ffp-contract=off: a product and a sum become one rounding only where the source says rg_vf_fma.
 */
#ifndef ROPEGRAD_SRC_SIMD_LEVEL_H
#define ROPEGRAD_SRC_SIMD_LEVEL_H

#define RG_LEVEL_SCALAR 1
#define RG_LEVEL_AVX2 2
#define RG_LEVEL_AVX512 3
#define RG_LEVEL_NEON 4
#define RG_LEVEL_FLOAT64 5

#ifndef RG_LEVEL
#error "RG_LEVEL is not set: build with -DRG_LEVEL=RG_LEVEL_SCALAR, _AVX2, _AVX512, _NEON or _FLOAT64"
#endif

#if RG_LEVEL == RG_LEVEL_SCALAR
#define RG_LEVEL_SUFFIX _scalar
#elif RG_LEVEL == RG_LEVEL_AVX2
#define RG_LEVEL_SUFFIX _avx2
#elif RG_LEVEL == RG_LEVEL_AVX512
#define RG_LEVEL_SUFFIX _avx512
#elif RG_LEVEL == RG_LEVEL_NEON
#define RG_LEVEL_SUFFIX _neon
#elif RG_LEVEL == RG_LEVEL_FLOAT64
#define RG_LEVEL_SUFFIX _float64
#else
#error "RG_LEVEL has an unknown value"
#endif

#define RG_JOIN_TOKENS(a, b) a##b
#define RG_JOIN(a, b) RG_JOIN_TOKENS(a, b)
#define RG_AT_LEVEL(name) RG_JOIN(name, RG_LEVEL_SUFFIX)

/* Always inlined, so that a dtype given as a constant selects its branch at compile time and vectors stay in registers
 * at every optimisation level. */
#define RG_INLINE static inline __attribute__((always_inline))

#endif
