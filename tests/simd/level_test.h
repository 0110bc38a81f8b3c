/* Shared by the tests of src/simd, each of which is built once per level as <test>_<level>. */
#ifndef ROPEGRAD_TESTS_SIMD_LEVEL_TEST_H
#define ROPEGRAD_TESTS_SIMD_LEVEL_TEST_H

#include <math.h>
#include <stdio.h>

#include "src/hw/cpu.h"
#include "src/simd/kernel.h"
#include "src/simd/vec.h"
#include "tests/testing.h"

/* Can this CPU run the level? If not, says what it lacks. */
static inline bool level_runs_here(void) {
#if RG_LEVEL == RG_LEVEL_AVX2
  if (rg_cpu_has_avx2()) return true;
  printf("skipped: this CPU lacks AVX2, FMA or F16C\n");
  return false;
#elif RG_LEVEL == RG_LEVEL_AVX512
  if (rg_cpu_has_avx512()) return true;
  printf("skipped: this CPU lacks AVX-512 F, BW, VL or DQ\n");
  return false;
#else
  return true;
#endif
}

/* The dtypes that the level's loads and stores know. */
#if RG_LEVEL == RG_LEVEL_FLOAT64
static const rg_dtype level_dtypes[] = {RG_F64};
#else
static const rg_dtype level_dtypes[] = {RG_F32, RG_BF16, RG_F16};
#endif
enum { NUM_LEVEL_DTYPES = sizeof level_dtypes / sizeof *level_dtypes };

/* A fixed sequence (splitmix64), so that a failure comes back. */
static inline uint64_t next_random(uint64_t *state) {
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

/* Uniform in [-1, 1), a multiple of 2^-23. */
static inline rg_real random_real(uint64_t *state) {
  return (rg_real)((double)(next_random(state) >> 40) * 0x1p-23 - 1.0);
}

/* A float of any bits: each exponent is as likely as any other, infinity and NaN included. */
static inline float random_bits_float(uint64_t *state) {
  const uint32_t bits = (uint32_t)(next_random(state) >> 32);
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

/* The same value and sign of zero; any NaN equals any other. */
static inline bool same_value(double a, double b) {
  return isnan(a) ? isnan(b) != 0 : a == b && !signbit(a) == !signbit(b);
}

#define assert_same_value(a, b)                              \
  do {                                                       \
    if (!same_value(a, b)) fail_msg("%a, not %a", (a), (b)); \
  } while (0)

/* Vectors of a level as arrays of lanes. */
static inline rg_vf from_lanes(const rg_real *lanes) { return rg_vf_load(RG_REAL_DTYPE, lanes); }
static inline void to_lanes(rg_real *lanes, rg_vf v) { rg_vf_store(RG_REAL_DTYPE, lanes, v); }

#endif
