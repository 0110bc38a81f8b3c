/* The public functions of the operators, two for each row of ops.def. */
#include "ropegrad/operators.h"
#include "src/core/dispatch.h"

static rg_status call(rg_context *context, const rg_operator *op, const void *args) {
  if (context == NULL) return RG_ERR_NULL;
  return rg_dispatch(context, op, rg_variant_at(context->variant), args);
}

#define RG_OP(name)                                                                            \
  rg_status rg_##name##_backward(rg_context *context, const rg_##name##_backward_args *args) { \
    return call(context, rg_dev_operator(RG_OP_##name, RG_BACKWARD), args);                    \
  }                                                                                            \
  rg_status rg_##name##_forward(rg_context *context, const rg_##name##_forward_args *args) {   \
    return call(context, rg_dev_operator(RG_OP_##name, RG_FORWARD), args);                     \
  }
#include "ropegrad/ops.def"
#undef RG_OP
