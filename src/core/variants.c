#include "src/core/variants.h"

#include <stdio.h>
#include <string.h>

#include "src/cuda/backend.h"
#include "src/hw/cpu.h"

static bool always(void) { return true; }

/* In rising order of speed: the last one that runs here is the default. The tuned CUDA kernels are tuned on compute
 * capability 9.0 and run from 8.0 on; where a layout is not theirs, the general ones serve. */
static const rg_variant variants[] = {
    {.name = "ref", .device = kDLCPU, .is_reference = true, .built = true, .runs_here = always},
    {.name = "cpu.scalar", .device = kDLCPU, .level = RG_CPU_SCALAR, .built = true, .runs_here = always},
    {.name = "cpu.avx2",
     .device = kDLCPU,
     .level = RG_CPU_AVX2,
     .built = RG_HAVE_AVX2,
     .runs_here = rg_cpu_has_avx2,
     .needs = "AVX2, FMA and F16C"},
    {.name = "cpu.avx512",
     .device = kDLCPU,
     .level = RG_CPU_AVX512,
     .built = RG_HAVE_AVX512,
     .runs_here = rg_cpu_has_avx512,
     .needs = "AVX-512 F, BW, VL and DQ"},
    {.name = "cpu.neon", .device = kDLCPU, .level = RG_CPU_NEON, .built = RG_HAVE_NEON, .runs_here = always},
    {.name = "cuda.generic", .device = kDLCUDA, .general = true, .built = RG_HAVE_CUDA},
    {.name = "cuda.sm90.dense", .device = kDLCUDA, .built = RG_HAVE_CUDA},
};
enum { NUM_VARIANTS = sizeof variants / sizeof variants[0] };

int rg_variant_find(const char *name) {
  for (int v = 0; v < NUM_VARIANTS; ++v) {
    if (strcmp(name, variants[v].name) == 0) return v;
  }
  return -1;
}

const rg_variant *rg_variant_at(int index) { return &variants[index]; }

rg_status rg_variant_status(const rg_variant *variant, rg_error *error) {
  if (variant->device == kDLCUDA) return rg_cuda_status(error);
  if (!variant->built) {
    return rg_fail(error, RG_ERR_NOT_BUILT, "left out of this build, for another processor or by choice");
  }
  if (variant->runs_here()) return RG_OK;
  return rg_fail(error, RG_ERR_HARDWARE, "this machine lacks %s", variant->needs);
}

int rg_variant_best(DLDeviceType device) {
  int best = -1;
  for (int v = 0; v < NUM_VARIANTS; ++v) {
    if (variants[v].device != device) continue;
    if (best < 0 || rg_variant_status(&variants[v], NULL) == RG_OK) best = v;
  }
  return best;
}

int rg_dev_num_variants(void) { return NUM_VARIANTS; }

void rg_dev_variant(int index, rg_variant_info *info) {
  const rg_variant *variant = &variants[index];
  rg_error error = {.text = ""};
  *info =
      (rg_variant_info){.name = variant->name, .device = variant->device, .status = rg_variant_status(variant, &error)};
  snprintf(info->reason, sizeof info->reason, "%.*s", (int)sizeof info->reason - 1, error.text);
}
