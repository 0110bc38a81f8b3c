#include "src/core/variants.h"

#include <string.h>

#include "src/hw/cpu.h"

static bool always(void) { return true; }

/* In rising order of speed: the last one that runs here is the default. */
static const rg_variant variants[] = {
    {"ref", kDLCPU, true, RG_CPU_SCALAR, true, always, ""},
    {"cpu.scalar", kDLCPU, false, RG_CPU_SCALAR, true, always, ""},
    {"cpu.avx2", kDLCPU, false, RG_CPU_AVX2, RG_HAVE_AVX2, rg_cpu_has_avx2, "AVX2, FMA and F16C"},
    {"cpu.avx512", kDLCPU, false, RG_CPU_AVX512, RG_HAVE_AVX512, rg_cpu_has_avx512, "AVX-512 F, BW, VL and DQ"},
    {"cpu.neon", kDLCPU, false, RG_CPU_NEON, RG_HAVE_NEON, always, "AArch64"},
};
enum { NUM_VARIANTS = sizeof variants / sizeof variants[0] };

int rg_variant_find(const char *name) {
  for (int v = 0; v < NUM_VARIANTS; ++v) {
    if (strcmp(name, variants[v].name) == 0) return v;
  }
  return -1;
}

const rg_variant *rg_variant_at(int index) { return &variants[index]; }

rg_status rg_variant_status(const rg_variant *variant) {
  if (!variant->built) return RG_ERR_NOT_BUILT;
  return variant->runs_here() ? RG_OK : RG_ERR_HARDWARE;
}

int rg_variant_best(DLDeviceType device) {
  int best = 0;
  for (int v = 0; v < NUM_VARIANTS; ++v) {
    if (variants[v].device == device && rg_variant_status(&variants[v]) == RG_OK) best = v;
  }
  return best;
}

int rg_dev_num_variants(void) { return NUM_VARIANTS; }

void rg_dev_variant(int index, rg_variant_info *info) {
  const rg_variant *variant = &variants[index];
  const rg_status status = rg_variant_status(variant);
  *info = (rg_variant_info){.name = variant->name, .device = variant->device, .status = status, .reason = ""};
  if (status == RG_ERR_NOT_BUILT) info->reason = "left out of this build: it is for another processor";
  if (status == RG_ERR_HARDWARE) info->reason = variant->needs;
}
