/* rope_2d on CUDA: which kernel, launched how. */
#include "src/cuda/launch.h"

extern const unsigned char rg_rope_2d_image[], rg_rope_2d_image_end[];
extern const rg_cuda_operator rg_rope_2d_backward_cuda;

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  return rg_fail(call->error, RG_ERR_NOT_BUILT, "%s has no kernels for CUDA yet", problem->op->name);
}

static const char *const kernels[] = {NULL};

const rg_cuda_operator rg_rope_2d_backward_cuda = {
    .image = rg_rope_2d_image, .image_end = rg_rope_2d_image_end, .kernels = kernels, .run = run};
