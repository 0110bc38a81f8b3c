#include "src/hw/cpu.h"

#if defined(__x86_64__)

#include <cpuid.h>

/* The compilers' name for the F16C test differs; the bit itself does not (leaf 1, ECX bit 29). */
static bool has_f16c(void) {
  unsigned eax, ebx, ecx, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & (1u << 29));
}

/* __builtin_cpu_supports also asks the operating system whether it saves the wider registers. */
bool rg_cpu_has_avx2(void) { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c(); }

bool rg_cpu_has_avx512(void) {
  return rg_cpu_has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
}

#else

bool rg_cpu_has_avx2(void) { return false; }
bool rg_cpu_has_avx512(void) { return false; }

#endif
