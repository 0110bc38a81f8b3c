#include "src/core/context.h"

#include <stdio.h>
#include <stdlib.h>

#include "src/base/parallel.h"
#include "src/core/registry.h"

enum { CACHE_LINE_BYTES = 64, MAX_THREADS = 1024 };

static void *default_allocate(void *user, size_t bytes) {
  (void)user;
  return malloc(bytes);
}

static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static rg_status choose_variant(const char *name, DLDevice device, int *variant, rg_error *error) {
  if (name == NULL) {
    *variant = rg_variant_best(device.device_type);
    return RG_OK;
  }
  *variant = rg_variant_find(name);
  if (*variant < 0 || rg_variant_at(*variant)->device != device.device_type) {
    return rg_fail(error, RG_ERR_VARIANT, "the device has no variant named %s", name);
  }
  return rg_variant_status(rg_variant_at(*variant), error);
}

static rg_status check_options(DLDevice device, const rg_context_options *options, rg_error *error) {
  if (options->threads < 0 || options->threads > MAX_THREADS) {
    return rg_fail(error, RG_ERR_RANGE, "threads: expected 0 to %d, got %d", MAX_THREADS, options->threads);
  }
  const rg_allocator *allocator = &options->allocator;
  if ((allocator->allocate == NULL) != (allocator->release == NULL)) {
    return rg_fail(error, RG_ERR_RANGE, "the allocator has only one of its two functions");
  }
  const bool is_cpu = device.device_type == kDLCPU && device.device_id == 0;
  if (is_cpu || device.device_type == kDLCUDA) return RG_OK;
  return rg_fail(error, RG_ERR_DEVICE, "DLPack device type %d, index %d is neither the CPU nor a CUDA device",
                 (int)device.device_type, device.device_id);
}

static rg_status create(rg_context **context, DLDevice device, const rg_context_options *options, rg_error *error) {
  rg_status status = check_options(device, options, error);
  if (status != RG_OK) return status;
  rg_allocator allocator = options->allocator;
  if (allocator.allocate == NULL) allocator = (rg_allocator){default_allocate, default_release, NULL};
  rg_cuda_context *cuda = NULL;
  if (device.device_type == kDLCUDA) {
    status = rg_cuda_context_create(&cuda, device.device_id, rg_registry_cuda_operators(), &allocator, error);
    if (status != RG_OK) return status;
  }
  int variant;
  status = choose_variant(options->variant, device, &variant, error);
  /* One block: the context, then the workspace at the next cache line. */
  rg_context *made = NULL;
  if (status == RG_OK) {
    made = allocator.allocate(allocator.user, sizeof *made + CACHE_LINE_BYTES + RG_WORKSPACE_BYTES);
    if (made == NULL) status = rg_fail(error, RG_ERR_ALLOC, "no memory for a context");
  }
  if (status != RG_OK) {
    rg_cuda_context_destroy(cuda, &allocator);
    return status;
  }
  const uintptr_t after = (uintptr_t)(made + 1) + CACHE_LINE_BYTES - 1;
  *made = (rg_context){
      .device = device,
      .variant = variant,
      .allocator = allocator,
      .cpu = {.threads = options->threads > 0 ? options->threads : rg_parallel_max_threads(),
              .workspace = (void *)(after - after % CACHE_LINE_BYTES)},
      .cuda = cuda,
  };
  *context = made;
  return RG_OK;
}

static const rg_context_options default_options;

rg_status rg_context_create(rg_context **context, DLDevice device, const rg_context_options *options) {
  if (context == NULL) return RG_ERR_NULL;
  *context = NULL;
  return create(context, device, options != NULL ? options : &default_options, NULL);
}

rg_status rg_device_status(DLDevice device, char *why, size_t why_bytes) {
  rg_error error = {.text = ""};
  rg_context *context = NULL;
  const rg_status status = create(&context, device, &default_options, &error);
  rg_context_destroy(context);
  if (why != NULL && why_bytes > 0) snprintf(why, why_bytes, "%s", error.text);
  return status;
}

void rg_context_destroy(rg_context *context) {
  if (context == NULL) return;
  const rg_allocator allocator = context->allocator;
  rg_cuda_context_destroy(context->cuda, &allocator);
  allocator.release(allocator.user, context);
}

rg_status rg_context_set_stream(rg_context *context, void *stream) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  if (context->cuda == NULL) return rg_fail(&context->error, RG_ERR_DEVICE, "a context of the CPU has no stream");
  rg_cuda_context_set_stream(context->cuda, stream);
  return RG_OK;
}

rg_status rg_context_check(rg_context *context) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  return context->cuda == NULL ? RG_OK : rg_cuda_context_check(context->cuda, &context->error);
}

const char *rg_last_error(const rg_context *context) {
  return context == NULL ? "there is no context: it is NULL" : context->error.text;
}

const char *rg_dev_default_variant(const rg_context *context) { return rg_variant_at(context->variant)->name; }

void *rg_dev_cuda_primary_context(const rg_context *context) {
  return context->cuda == NULL ? NULL : rg_cuda_context_primary(context->cuda);
}

void *rg_dev_cuda_stream(const rg_context *context) {
  return context->cuda == NULL ? NULL : rg_cuda_context_stream(context->cuda);
}
