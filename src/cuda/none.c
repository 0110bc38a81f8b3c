/* A build without CUDA. */
#include "src/cuda/backend.h"

rg_status rg_cuda_status(rg_error *error) {
  return rg_fail(error, RG_ERR_NOT_BUILT,
                 "this build has no CUDA: ROPEGRAD_CUDA was OFF, or nvcc not found, when it was configured");
}

rg_status rg_cuda_context_create(rg_cuda_context **cuda, int device, const rg_cuda_operator *const *operators,
                                 const rg_allocator *allocator, rg_error *error) {
  (void)device;
  (void)operators;
  (void)allocator;
  *cuda = NULL;
  return rg_cuda_status(error);
}

void rg_cuda_context_destroy(rg_cuda_context *cuda, const rg_allocator *allocator) {
  (void)cuda;
  (void)allocator;
}

void rg_cuda_context_set_stream(rg_cuda_context *cuda, void *stream) {
  (void)cuda;
  (void)stream;
}

void *rg_cuda_context_stream(const rg_cuda_context *cuda) {
  (void)cuda;
  return NULL;
}

void *rg_cuda_context_primary(const rg_cuda_context *cuda) {
  (void)cuda;
  return NULL;
}

rg_status rg_cuda_context_check(rg_cuda_context *cuda, rg_error *error) {
  (void)cuda;
  return rg_cuda_status(error);
}
