/* backend.h: CUDA as src/core sees it. none.c answers for a build without CUDA, so that nothing above asks which build
 * it is in. */
#ifndef ROPEGRAD_SRC_CUDA_BACKEND_H
#define ROPEGRAD_SRC_CUDA_BACKEND_H

#include "src/spec/operator.h"

/* One device as one rg_context uses it: its primary context, a stream, a little memory, the loaded kernels. */
typedef struct rg_cuda_context rg_cuda_context;

typedef struct rg_cuda_call rg_cuda_call;

/* An operator's device code, defined by ops/<op>/<op>_cuda.c as rg_<op>_backward_cuda and by
 * <op>_forward_cuda.c as rg_<op>_forward_cuda. */
typedef struct rg_cuda_operator {
  const unsigned char *image; /* a fat binary */
  const unsigned char *image_end;
  const char *const *kernels; /* names, in the order of the operator's own enum; then NULL */
  /* Chooses a kernel and launches it; the problem is checked. Nothing here waits for the device or allocates, so that a
   * call can be captured in a CUDA graph. */
  rg_status (*run)(const rg_problem *problem, const rg_cuda_call *call);
} rg_cuda_operator;

/* A call in progress. */
struct rg_cuda_call {
  rg_cuda_context *cuda;
  int op;       /* its number */
  bool general; /* take the general kernel, whatever the layout */
  rg_error *error;
};

/* RG_OK, RG_ERR_NOT_BUILT or RG_ERR_HARDWARE: whether a context can be made for any device here. `error` says why not
 * and may be NULL. */
rg_status rg_cuda_status(rg_error *error);

/* Loads every operator's kernels, so that no call has to. RG_ERR_NOT_BUILT; RG_ERR_HARDWARE: no driver, no such device,
 * or one that the images do not serve; RG_ERR_ALLOC; RG_ERR_CUDA. On failure nothing is left behind. */
rg_status rg_cuda_context_create(rg_cuda_context **cuda, int device, const rg_cuda_operator *const *operators,
                                 const rg_allocator *allocator, rg_error *error);
/* Waits for the stream. */
void rg_cuda_context_destroy(rg_cuda_context *cuda, const rg_allocator *allocator);

void rg_cuda_context_set_stream(rg_cuda_context *cuda, void *stream);
void *rg_cuda_context_stream(const rg_cuda_context *cuda);
void *rg_cuda_context_primary(const rg_cuda_context *cuda); /* a CUcontext */

/* Waits for the stream, then tells and forgets what its calls have left behind: RG_ERR_RANGE, RG_ERR_CUDA. */
rg_status rg_cuda_context_check(rg_cuda_context *cuda, rg_error *error);

#endif
