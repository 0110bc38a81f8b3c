#include "src/core/dispatch.h"

#include "src/core/registry.h"
#include "src/core/run_reference.h"
#include "src/spec/resolve.h"

static bool is_float64(const rg_problem *problem) {
  for (int t = 0; t < problem->op->num_tensors; ++t) {
    if (problem->tensor[t].dtype == RG_F64) return true;
  }
  return false;
}

rg_status rg_dispatch(rg_context *context, const rg_operator *op, const rg_variant *variant, const void *args) {
  rg_error *error = &context->error;
  error->text[0] = '\0';
  if (!rg_registry_has(op)) return rg_fail(error, RG_ERR_INTERNAL, "%s is not an operator of this library", op->name);
  rg_problem problem;
  const rg_status status = rg_resolve(op, args, context->device, &problem, error);
  if (status != RG_OK) return status;
  if (variant->is_reference) return rg_run_reference(&problem, &context->allocator, error);
  const rg_cpu_level level = is_float64(&problem) ? RG_CPU_FLOAT64 : variant->level;
  const rg_cpu_kernel kernel = rg_registry_cpu_kernel(op, level);
  if (kernel == NULL) return rg_fail(error, RG_ERR_NOT_BUILT, "%s has no kernel for %s", op->name, variant->name);
  kernel(&problem, &context->cpu);
  return RG_OK;
}

rg_status rg_dev_resolve(rg_context *context, const rg_operator *op, const void *args, rg_problem *problem) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  return rg_resolve(op, args, context->device, problem, &context->error);
}

rg_status rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args) {
  if (context == NULL) return RG_ERR_NULL;
  /* The context's own variant was found to run here when it was made; asking again would cost every call microseconds
   * on a virtual machine, where CPUID traps. */
  if (variant == NULL) return rg_dispatch(context, op, rg_variant_at(context->variant), args);
  const int index = rg_variant_find(variant);
  if (index < 0) return rg_fail(&context->error, RG_ERR_VARIANT, "there is no variant named %s", variant);
  const rg_status status = rg_variant_status(rg_variant_at(index));
  if (status != RG_OK) {
    return rg_fail(&context->error, status, "%s: %s", variant, rg_status_string(status));
  }
  return rg_dispatch(context, op, rg_variant_at(index), args);
}
