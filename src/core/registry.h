/* What ops.def lists: each operator's contracts and kernels. */
#ifndef ROPEGRAD_SRC_CORE_REGISTRY_H
#define ROPEGRAD_SRC_CORE_REGISTRY_H

#include "src/cuda/backend.h"
#include "src/spec/operator.h"

/* The operator's kernel at `level`; NULL where it has none. */
rg_cpu_kernel rg_registry_cpu_kernel(const rg_operator *op, rg_cpu_level level);

/* True for the very objects that rg_dev_operator hands out. */
bool rg_registry_has(const rg_operator *op);

/* The device code of each operator's backward pass, by rg_op_id; NULL where this build has none. */
const rg_cuda_operator *const *rg_registry_cuda_operators(void);

#endif
