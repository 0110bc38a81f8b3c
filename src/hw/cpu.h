/* What this CPU can run. */
#ifndef ROPEGRAD_SRC_HW_CPU_H
#define ROPEGRAD_SRC_HW_CPU_H

#include <stdbool.h>

/* True where the CPU and the operating system both support all that the level's code uses. */
bool rg_cpu_has_avx2(void);   /* AVX2, FMA, F16C */
bool rg_cpu_has_avx512(void); /* AVX-512 F, BW, VL, DQ, and all of the above */

#endif
