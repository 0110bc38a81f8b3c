/* The float64 reference as a variant of its own: slow, but it takes every call that the kernels take. */
#ifndef ROPEGRAD_SRC_CORE_RUN_REFERENCE_H
#define ROPEGRAD_SRC_CORE_RUN_REFERENCE_H

#include "src/spec/operator.h"

/* Computes in float64 and rounds once to the outputs' dtypes. RG_ERR_ALLOC: no room for the float64 results. */
rg_status rg_run_reference(const rg_problem *problem, const rg_allocator *allocator, rg_error *error);

#endif
