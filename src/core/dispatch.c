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

static rg_status run_on_cuda(rg_context *context, int op, const rg_variant *variant, const rg_problem *problem) {
  const rg_cuda_operator *code = rg_registry_cuda_operators()[op];
  const rg_cuda_call call = {.cuda = context->cuda, .op = op, .general = variant->general, .error = &context->error};
  return code->run(problem, &call);
}

rg_status rg_dispatch(rg_context *context, const rg_operator *op, const rg_variant *variant, const void *args) {
  rg_error *error = &context->error;
  error->text[0] = '\0';
  const int index = rg_registry_index(op);
  if (index < 0) return rg_fail(error, RG_ERR_INTERNAL, "%s is not an operator of this library", op->name);
  rg_problem problem;
  const rg_status status = rg_resolve(op, args, context->device, &problem, error);
  if (status != RG_OK) return status;
  if (context->cuda != NULL) return run_on_cuda(context, index, variant, &problem);
  if (variant->is_reference) return rg_run_reference(&problem, &context->allocator, error);
  const rg_cpu_level level = is_float64(&problem) ? RG_CPU_FLOAT64 : variant->level;
  const rg_cpu_kernel kernel = rg_registry_cpu_kernel(index, level);
  if (kernel == NULL) return rg_fail(error, RG_ERR_NOT_BUILT, "%s has no kernel for %s", op->name, variant->name);
  kernel(&problem, &context->cpu);
  return RG_OK;
}

rg_status rg_dev_resolve(rg_context *context, const rg_operator *op, const void *args, rg_problem *problem) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  return rg_resolve(op, args, context->device, problem, &context->error);
}

rg_status rg_dev_bind(rg_context *context, const rg_operator *op, const void *args, rg_problem *problem) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  return rg_bind(op, args, context->device, problem, &context->error);
}

rg_status rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args) {
  if (context == NULL) return RG_ERR_NULL;
  /* The context's own variant was found to run here when it was made; asking again would cost every call microseconds
   * on a virtual machine, where CPUID traps. */
  if (variant == NULL) return rg_dispatch(context, op, rg_variant_at(context->variant), args);
  const int index = rg_variant_find(variant);
  if (index < 0) return rg_fail(&context->error, RG_ERR_VARIANT, "there is no variant named %s", variant);
  if (rg_variant_at(index)->device != context->device.device_type) {
    return rg_fail(&context->error, RG_ERR_VARIANT, "%s is a variant of another device than the context's", variant);
  }
  rg_error why;
  const rg_status status = rg_variant_status(rg_variant_at(index), &why);
  if (status != RG_OK) return rg_fail(&context->error, status, "%s cannot run here: %.400s", variant, why.text);
  return rg_dispatch(context, op, rg_variant_at(index), args);
}
