/* descriptor.h: a caller's DLPack tensors, read one by one. */
#ifndef ROPEGRAD_SRC_SPEC_DESCRIPTOR_H
#define ROPEGRAD_SRC_SPEC_DESCRIPTOR_H

#include "src/spec/operator.h"

/* Every message about an argument begins with the call and its name; where this stands there are `op` and `error`. */
#define RG_FAIL_ARGUMENT(status, tensor_name, format, ...) \
  rg_fail(error, status, "%s: %s: " format, op->function, tensor_name, __VA_ARGS__)

/* Fills problem->tensor from the tensors that are given, and *wanted with the outputs among them, as RG_BITs. Checks what
 * a descriptor says by itself: rank, dtype, device, and sizes and strides that the address space holds. */
rg_status rg_read_descriptors(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem,
                              uint32_t *wanted, rg_error *error);

#endif
