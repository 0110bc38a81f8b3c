/* The variants an operator can run as: the reference and the CPU levels, each with whether this build and this machine
 * have it. */
#ifndef ROPEGRAD_SRC_CORE_VARIANTS_H
#define ROPEGRAD_SRC_CORE_VARIANTS_H

#include "src/spec/operator.h"

typedef struct rg_variant {
  const char *name;
  DLDeviceType device;
  bool is_reference;
  rg_cpu_level level; /* meaningless for the reference */
  bool built;
  bool (*runs_here)(void);
  const char *needs; /* what the machine must have */
} rg_variant;

int rg_variant_find(const char *name); /* an index, or -1 */
const rg_variant *rg_variant_at(int index);
/* RG_OK, RG_ERR_NOT_BUILT or RG_ERR_HARDWARE. */
rg_status rg_variant_status(const rg_variant *variant);
/* The fastest that runs here on `device`. */
int rg_variant_best(DLDeviceType device);

#endif
