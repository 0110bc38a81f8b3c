/* What ops.def lists: each operator's contracts and kernels. */
#ifndef ROPEGRAD_SRC_CORE_REGISTRY_H
#define ROPEGRAD_SRC_CORE_REGISTRY_H

#include "src/cuda/backend.h"
#include "src/spec/operator.h"

/* The operator's number, for the very objects that rg_dev_operator_at hands out; -1 for any other. */
int rg_registry_index(const rg_operator *op);

/* The kernel of operator number `index` at `level`; NULL where there is none. */
rg_cpu_kernel rg_registry_cpu_kernel(int index, rg_cpu_level level);

/* The device code of each operator, by number; NULL where this build has none. */
const rg_cuda_operator *const *rg_registry_cuda_operators(void);

#endif
