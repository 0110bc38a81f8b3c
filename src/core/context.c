#include "src/core/context.h"

#include <stdlib.h>

#include "src/base/parallel.h"

enum { CACHE_LINE_BYTES = 64, MAX_THREADS = 1024 };

static void *default_allocate(void *user, size_t bytes) {
  (void)user;
  return malloc(bytes);
}

static void default_release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static rg_status choose_variant(const char *name, DLDevice device, int *variant) {
  if (name == NULL) {
    *variant = rg_variant_best(device.device_type);
    return RG_OK;
  }
  *variant = rg_variant_find(name);
  if (*variant < 0) return RG_ERR_VARIANT;
  if (rg_variant_at(*variant)->device != device.device_type) return RG_ERR_VARIANT;
  return rg_variant_status(rg_variant_at(*variant));
}

rg_status rg_context_create(rg_context **context, DLDevice device, const rg_context_options *options) {
  if (context == NULL) return RG_ERR_NULL;
  *context = NULL;
  static const rg_context_options defaults;
  if (options == NULL) options = &defaults;
  rg_allocator allocator = options->allocator;
  if (options->threads < 0 || options->threads > MAX_THREADS) return RG_ERR_RANGE;
  if ((allocator.allocate == NULL) != (allocator.release == NULL)) return RG_ERR_RANGE;
  if (allocator.allocate == NULL) allocator = (rg_allocator){default_allocate, default_release, NULL};

  if (device.device_type == kDLCUDA) return RG_ERR_NOT_BUILT;
  if (device.device_type != kDLCPU || device.device_id != 0) return RG_ERR_DEVICE;
  int variant;
  const rg_status status = choose_variant(options->variant, device, &variant);
  if (status != RG_OK) return status;

  /* One block: the context, then the workspace at the next cache line. */
  rg_context *made = allocator.allocate(allocator.user, sizeof *made + CACHE_LINE_BYTES + RG_WORKSPACE_BYTES);
  if (made == NULL) return RG_ERR_ALLOC;
  const uintptr_t after = (uintptr_t)(made + 1) + CACHE_LINE_BYTES - 1;
  *made = (rg_context){
      .device = device,
      .variant = variant,
      .allocator = allocator,
      .cpu = {.threads = options->threads > 0 ? options->threads : rg_parallel_max_threads(),
              .workspace = (void *)(after - after % CACHE_LINE_BYTES)},
  };
  *context = made;
  return RG_OK;
}

void rg_context_destroy(rg_context *context) {
  if (context == NULL) return;
  const rg_allocator allocator = context->allocator;
  allocator.release(allocator.user, context);
}

rg_status rg_context_check(rg_context *context) {
  if (context == NULL) return RG_ERR_NULL;
  context->error.text[0] = '\0';
  return RG_OK;
}

const char *rg_last_error(const rg_context *context) {
  return context == NULL ? "there is no context: it is NULL" : context->error.text;
}

const char *rg_dev_default_variant(const rg_context *context) { return rg_variant_at(context->variant)->name; }
