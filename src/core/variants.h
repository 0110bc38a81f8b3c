/* The variants an operator can run as: the reference, the CPU levels and CUDA, each with whether this build and this
 * machine have it. */
#ifndef ROPEGRAD_SRC_CORE_VARIANTS_H
#define ROPEGRAD_SRC_CORE_VARIANTS_H

#include "src/spec/operator.h"

typedef struct rg_variant {
  const char *name;
  DLDeviceType device;
  bool is_reference;
  bool general;       /* CUDA: the general kernels alone */
  rg_cpu_level level; /* meaningless for the reference and for CUDA */
  bool built;
  bool (*runs_here)(void); /* CPU; CUDA says for itself */
  const char *needs;       /* CPU: what the machine must have */
} rg_variant;

int rg_variant_find(const char *name); /* an index, or -1 */
const rg_variant *rg_variant_at(int index);
/* RG_OK, RG_ERR_NOT_BUILT or RG_ERR_HARDWARE; `error` says why not and may be NULL. */
rg_status rg_variant_status(const rg_variant *variant, rg_error *error);
/* The fastest that runs here on `device`; the first of the device where none does. */
int rg_variant_best(DLDeviceType device);

#endif
