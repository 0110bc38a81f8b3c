/* The forward pass of rope_2d on CUDA: which kernel, launched how. */
#include "ops/rope_2d/rope_2d_forward_cuda.h"
#include "ops/rope_2d/rope_2d_forward_tune.h"
#include "ops/rope_2d/rope_2d_spec.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rope_2d_forward_image[], rg_rope_2d_forward_image_end[];
extern const rg_cuda_operator rg_rope_2d_forward_cuda;

/* Of each dtype of the tables. */
enum { DENSE, DENSE_ONCE, KERNELS_A_DTYPE };
enum { F32, BF16 = KERNELS_A_DTYPE, F16 = 2 * KERNELS_A_DTYPE, ANY_GENERAL = 3 * KERNELS_A_DTYPE, F64_GENERAL };
static const char *const kernels[] = {
    [F32 + DENSE] = "rope_2d_forward_f32__dense",
    [F32 + DENSE_ONCE] = "rope_2d_forward_f32__dense_once",
    [BF16 + DENSE] = "rope_2d_forward_bf16__dense",
    [BF16 + DENSE_ONCE] = "rope_2d_forward_bf16__dense_once",
    [F16 + DENSE] = "rope_2d_forward_f16__dense",
    [F16 + DENSE_ONCE] = "rope_2d_forward_f16__dense_once",
    [ANY_GENERAL] = "rope_2d_forward_any__general",
    [F64_GENERAL] = "rope_2d_forward_f64__general",
    NULL,
};

enum { GENERAL_THREADS = 256 };

/* Not given; or dense, and each packet aligned to its size. */
static bool takes_packets(const rg_tensor *tensor) {
  return tensor->dtype == RG_DTYPE_NONE ||
         (rg_tensor_is_dense(tensor) &&
          (uintptr_t)tensor->data % (ROPE_2D_FORWARD_PACKET * rg_dtype_size(tensor->dtype)) == 0);
}

static rg_status run_dense(const rg_problem *problem, int64_t elements, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const rope_2d_forward_shape shape = rope_2d_forward_tune(elements);
  const rg_dtype dtype = t[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype;
  const int first = dtype == RG_BF16 ? BF16 : dtype == RG_F16 ? F16 : F32;
  const rope_2d_forward_dense_params params = {.idx_theta = t[FORWARD_IDX_THETA].data,
                                               .cos = rg_data_of(&t[FORWARD_COS]),
                                               .sin = rg_data_of(&t[FORWARD_SIN]),
                                               .elements = elements};
  const rg_cuda_launch launch = {.kernel = first + (shape.used_once ? DENSE_ONCE : DENSE),
                                 .blocks = rg_divide_up(elements, (int64_t)ROPE_2D_FORWARD_PACKET * shape.threads),
                                 .threads = shape.threads};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run_general(const rg_problem *problem, int64_t elements, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const rope_2d_forward_general_params params = {.idx_theta = rg_device_tensor_of(&t[FORWARD_IDX_THETA]),
                                                 .cos = rg_device_tensor_of(&t[FORWARD_COS]),
                                                 .sin = rg_device_tensor_of(&t[FORWARD_SIN]),
                                                 .elements = elements,
                                                 .seq_len = problem->dim[DIM_S],
                                                 .head_dim = problem->dim[DIM_D]};
  const rg_cuda_launch launch = {.kernel = t[FORWARD_IDX_THETA].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(elements, GENERAL_THREADS)),
                                 .threads = GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t elements = rg_tensor_elements(&t[FORWARD_IDX_THETA]);
  bool dense = !call->general && t[FORWARD_IDX_THETA].dtype == RG_F32;
  for (int k = 0; k < NUM_FORWARD_TENSORS; ++k) dense = dense && takes_packets(&t[k]);
  return dense ? run_dense(problem, elements, call) : run_general(problem, elements, call);
}

const rg_cuda_operator rg_rope_2d_forward_cuda = {
    .image = rg_rope_2d_forward_image, .image_end = rg_rope_2d_forward_image_end, .kernels = kernels, .run = run};
