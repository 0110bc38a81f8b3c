/* From a caller's arguments to a checked problem. */
#ifndef ROPEGRAD_SRC_SPEC_RESOLVE_H
#define ROPEGRAD_SRC_SPEC_RESOLVE_H

#include "src/spec/operator.h"

/* Checks every argument of a call on `device` and fills `problem`. Order of the checks: NULL, rank, dtype, device,
 * shape, options, address, overlap, values; the first that fails is reported. */
rg_status rg_resolve(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem, rg_error *error);

/* The same for a call of which some tensors may be missing: fills problem->tensor of those that are given, and
 * problem->dim as far as they and the options decide it. Checks ranks, dtypes, the device and the options alone. */
rg_status rg_bind(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem, rg_error *error);

#endif
