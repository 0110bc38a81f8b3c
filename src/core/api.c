/* The public function of every operator, one row of ops.def each. */
#include "ropegrad/operators.h"
#include "src/core/dispatch.h"

#define RG_OP(name)                                                                                                 \
  rg_status rg_##name##_backward(rg_context *context, const rg_##name##_backward_args *args) {                      \
    if (context == NULL) return RG_ERR_NULL;                                                                        \
    return rg_dispatch(context, rg_dev_operator(RG_OP_##name, RG_BACKWARD), rg_variant_at(context->variant), args); \
  }
#include "ropegrad/ops.def"
#undef RG_OP
