/* What ops.def lists: each operator's contracts and kernels. */
#ifndef ROPEGRAD_SRC_CORE_REGISTRY_H
#define ROPEGRAD_SRC_CORE_REGISTRY_H

#include "src/spec/operator.h"

/* The operator's kernel at `level`; NULL where it has none. */
rg_cpu_kernel rg_registry_cpu_kernel(const rg_operator *op, rg_cpu_level level);

/* True for the very objects that rg_dev_operator hands out. */
bool rg_registry_has(const rg_operator *op);

#endif
