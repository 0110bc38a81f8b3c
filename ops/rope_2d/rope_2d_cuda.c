/* rope_2d on CUDA: which kernel, launched how. */
#include "ops/rope_2d/rope_2d_cuda.h"
#include "ops/rope_2d/rope_2d_spec.h"
#include "ops/rope_2d/rope_2d_tune.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rope_2d_image[], rg_rope_2d_image_end[];
extern const rg_cuda_operator rg_rope_2d_backward_cuda;

enum { F32_DENSE, F32_DENSE_ONCE, BF16_DENSE, BF16_DENSE_ONCE, F16_DENSE, F16_DENSE_ONCE, ANY_GENERAL, F64_GENERAL };
static const char *const kernels[] = {
    [F32_DENSE] = "rope_2d_f32__dense",
    [F32_DENSE_ONCE] = "rope_2d_f32__dense_once",
    [BF16_DENSE] = "rope_2d_bf16__dense",
    [BF16_DENSE_ONCE] = "rope_2d_bf16__dense_once",
    [F16_DENSE] = "rope_2d_f16__dense",
    [F16_DENSE_ONCE] = "rope_2d_f16__dense_once",
    [ANY_GENERAL] = "rope_2d_any__general",
    [F64_GENERAL] = "rope_2d_f64__general",
    NULL,
};

enum { GENERAL_THREADS = 256 };

/* Dense, and each vector of ROPE_2D_VECTOR elements aligned to its size. */
static bool takes_vectors(const rg_tensor *tensor) {
  return rg_tensor_is_dense(tensor) && (uintptr_t)tensor->data % (ROPE_2D_VECTOR * rg_dtype_size(tensor->dtype)) == 0;
}

static rg_status run_dense(const rg_tensor *t, int64_t elements, const rg_cuda_call *call) {
  const rope_2d_shape shape = rope_2d_tune(elements);
  const rg_dtype dtype = t[GRAD_COS].dtype;
  const int kernel = dtype == RG_BF16 ? BF16_DENSE : dtype == RG_F16 ? F16_DENSE : F32_DENSE;
  const rope_2d_dense_params params = {.grad_cos = t[GRAD_COS].data,
                                       .grad_sin = t[GRAD_SIN].data,
                                       .idx_theta = t[IDX_THETA].data,
                                       .grad_idx_theta = t[GRAD_IDX_THETA].data,
                                       .elements = elements};
  const rg_cuda_launch launch = {.kernel = kernel + shape.used_once,
                                 .blocks = rg_divide_up(elements, (int64_t)ROPE_2D_VECTOR * shape.threads),
                                 .threads = shape.threads};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run_general(const rg_problem *problem, int64_t elements, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const rope_2d_general_params params = {.grad_cos = rg_device_tensor_of(&t[GRAD_COS]),
                                         .grad_sin = rg_device_tensor_of(&t[GRAD_SIN]),
                                         .idx_theta = rg_device_tensor_of(&t[IDX_THETA]),
                                         .grad_idx_theta = rg_device_tensor_of(&t[GRAD_IDX_THETA]),
                                         .elements = elements,
                                         .seq_len = problem->dim[DIM_S],
                                         .head_dim = problem->dim[DIM_D]};
  const rg_cuda_launch launch = {.kernel = t[IDX_THETA].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(elements, GENERAL_THREADS)),
                                 .threads = GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t elements = rg_tensor_elements(&t[GRAD_IDX_THETA]);
  bool dense = !call->general && t[IDX_THETA].dtype == RG_F32;
  for (int k = 0; k < NUM_BACKWARD_TENSORS; ++k) dense = dense && takes_vectors(&t[k]);
  return dense ? run_dense(t, elements, call) : run_general(problem, elements, call);
}

const rg_cuda_operator rg_rope_2d_backward_cuda = {
    .image = rg_rope_2d_image, .image_end = rg_rope_2d_image_end, .kernels = kernels, .run = run};
