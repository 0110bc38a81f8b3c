/* From a public function to the kernel that runs. */
#ifndef ROPEGRAD_SRC_CORE_DISPATCH_H
#define ROPEGRAD_SRC_CORE_DISPATCH_H

#include "src/core/context.h"

/* Checks the call and runs it as `variant`. */
rg_status rg_dispatch(rg_context *context, const rg_operator *op, const rg_variant *variant, const void *args);

#endif
