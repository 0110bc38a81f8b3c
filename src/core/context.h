/* What a rg_context holds. For the files of this folder. */
#ifndef ROPEGRAD_SRC_CORE_CONTEXT_H
#define ROPEGRAD_SRC_CORE_CONTEXT_H

#include "src/core/variants.h"
#include "src/cuda/backend.h"
#include "src/spec/operator.h"

struct rg_context {
  DLDevice device;
  int variant; /* index for rg_variant_at: what a call runs that names none */
  rg_allocator allocator;
  rg_cpu_resources cpu;
  rg_cuda_context *cuda; /* NULL: a context of the CPU */
  rg_error error;
};

#endif
