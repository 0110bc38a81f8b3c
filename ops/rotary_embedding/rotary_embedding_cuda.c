/* rotary_embedding on CUDA: which kernel, launched how. */
#include <stdlib.h>

#include "ops/rotary_embedding/rotary_embedding_cuda.h"
#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "ops/rotary_embedding/rotary_embedding_tune.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rotary_embedding_image[], rg_rotary_embedding_image_end[];
extern const rg_cuda_operator rg_rotary_embedding_backward_cuda;

/* Of each dtype of the gradients, in this order. */
enum { D128_LANES16, D128_LANES8, D128_LANES8_LATER, ANY_D_LANES16, ANY_D_LANES4, KERNELS_A_DTYPE };
enum { F32, BF16 = KERNELS_A_DTYPE, F16 = 2 * KERNELS_A_DTYPE, ANY_GENERAL = 3 * KERNELS_A_DTYPE, F64_GENERAL };
static const char *const kernels[] = {
    [F32 + D128_LANES16] = "rotary_embedding_f32__d128_lanes16",
    [F32 + D128_LANES8] = "rotary_embedding_f32__d128_lanes8",
    [F32 + D128_LANES8_LATER] = "rotary_embedding_f32__d128_lanes8_later",
    [F32 + ANY_D_LANES16] = "rotary_embedding_f32__any_d_lanes16",
    [F32 + ANY_D_LANES4] = "rotary_embedding_f32__any_d_lanes4",
    [BF16 + D128_LANES16] = "rotary_embedding_bf16__d128_lanes16",
    [BF16 + D128_LANES8] = "rotary_embedding_bf16__d128_lanes8",
    [BF16 + D128_LANES8_LATER] = "rotary_embedding_bf16__d128_lanes8_later",
    [BF16 + ANY_D_LANES16] = "rotary_embedding_bf16__any_d_lanes16",
    [BF16 + ANY_D_LANES4] = "rotary_embedding_bf16__any_d_lanes4",
    [F16 + D128_LANES16] = "rotary_embedding_f16__d128_lanes16",
    [F16 + D128_LANES8] = "rotary_embedding_f16__d128_lanes8",
    [F16 + D128_LANES8_LATER] = "rotary_embedding_f16__d128_lanes8_later",
    [F16 + ANY_D_LANES16] = "rotary_embedding_f16__any_d_lanes16",
    [F16 + ANY_D_LANES4] = "rotary_embedding_f16__any_d_lanes4",
    [ANY_GENERAL] = "rotary_embedding_any__general",
    [F64_GENERAL] = "rotary_embedding_f64__general",
    NULL,
};

/* Threads of a block of the kernels that are not tuned; blocks a multiprocessor of the general ones, enough to hide
 * the memory's latency. */
enum { THREADS = 256, WARP = 32 };

/* How the rows of a tensor [B, S, ...] follow each other. */
typedef struct spacing {
  bool even; /* row i, of all B * S, lies i * stride elements after row 0 */
  int32_t stride;
} spacing;

static spacing spacing_of(const rg_tensor *tensor, int64_t batches, int64_t seq_len) {
  const int64_t *stride = tensor->stride;
  const int64_t apart = seq_len > 1 ? stride[1] : batches > 1 ? stride[0] : 0;
  const bool even =
      apart >= INT32_MIN && apart <= INT32_MAX && (seq_len <= 1 || batches <= 1 || stride[0] == apart * seq_len);
  return (spacing){.even = even, .stride = even ? (int32_t)apart : 0};
}

/* Whether every vector of so many elements in a tensor with contiguous rows is aligned to its size. */
static bool takes_vectors(const rg_tensor *tensor, int32_t stride, int64_t elements) {
  return (uintptr_t)tensor->data % (uintptr_t)(elements * (int64_t)rg_dtype_size(tensor->dtype)) == 0 &&
         stride % elements == 0;
}

/* Fills the parameters of the kernels for evenly spaced rows and says whether they can take the problem, whatever its
 * alignment. */
static bool fill_rows_params(const rg_problem *problem, double scaling, rotary_embedding_rows_params *params) {
  const rg_tensor *t = problem->tensor;
  const int64_t B = problem->dim[DIM_B], S = problem->dim[DIM_S], half = problem->dim[DIM_D] / 2;
  if (t[EMB].dtype != RG_F32 || B >= (1 << 30) || S >= (1 << 30) || B * S >= (1 << 30) || half > INT32_MAX)
    return false;
  const spacing emb = spacing_of(&t[EMB], B, S), inv_freq = spacing_of(&t[INV_FREQ], B, 1);
  const spacing grad_cos = spacing_of(&t[GRAD_COS], B, S), grad_sin = spacing_of(&t[GRAD_SIN], B, S);
  if (!emb.even || !grad_cos.even || !grad_sin.even || !inv_freq.even || !rg_tensor_is_dense(&t[GRAD_POSITION_IDS])) {
    return false;
  }
  if (t[EMB].stride[2] != 1 || t[GRAD_COS].stride[2] != 1 || t[GRAD_SIN].stride[2] != 1 || t[INV_FREQ].stride[1] != 1) {
    return false;
  }
  /* The place of a frequency is counted in 32 bits. */
  if (llabs(inv_freq.stride) * B + half > INT32_MAX) return false;
  /* row * multiplier >> shift is row / S for every row below 2^31: shift is 31 + log2 S, rounded up, and the
   * multiplier 2^shift / S, rounded up. */
  uint32_t shift = 31;
  while ((INT64_C(1) << (shift - 31)) < S) ++shift;
  *params =
      (rotary_embedding_rows_params){.emb = t[EMB].data,
                                     .grad_cos = t[GRAD_COS].data,
                                     .grad_sin = t[GRAD_SIN].data,
                                     .emb_stride = emb.stride,
                                     .grad_cos_stride = grad_cos.stride,
                                     .grad_sin_stride = grad_sin.stride,
                                     .rows = (int32_t)(B * S),
                                     .batch_multiplier = (uint32_t)(((UINT64_C(1) << shift) - 1) / (uint64_t)S + 1),
                                     .batch_shift = shift,
                                     .inv_freq = t[INV_FREQ].data,
                                     .inv_freq_stride = inv_freq.stride,
                                     .half = (int32_t)half,
                                     .grad_position_ids = t[GRAD_POSITION_IDS].data,
                                     .scaling = (float)scaling};
  return true;
}

static bool all_take_vectors(const rg_tensor *t, const rotary_embedding_rows_params *params, int64_t of_gradients,
                             int64_t of_angles) {
  return takes_vectors(&t[GRAD_COS], params->grad_cos_stride, of_gradients) &&
         takes_vectors(&t[GRAD_SIN], params->grad_sin_stride, of_gradients) &&
         takes_vectors(&t[EMB], params->emb_stride, of_angles) &&
         takes_vectors(&t[INV_FREQ], params->inv_freq_stride, of_angles);
}

/* Rows of 64 frequencies without gaps, vectors of 16 bytes, which the kernels count in 32 bits. */
static bool is_d128(const rg_tensor *t, const rotary_embedding_rows_params *params) {
  return params->half == ROTARY_EMBEDDING_HALF && params->rows < 1 << 27 && rg_tensor_is_dense(&t[GRAD_COS]) &&
         rg_tensor_is_dense(&t[GRAD_SIN]) && rg_tensor_is_dense(&t[EMB]) &&
         all_take_vectors(t, params, 16 / (int64_t)rg_dtype_size(t[GRAD_COS].dtype), 4);
}

static rg_status launch_rows(const rg_cuda_call *call, int kernel, int lanes, uint32_t threads,
                             const rotary_embedding_rows_params *params) {
  const rg_cuda_launch launch = {
      .kernel = kernel, .blocks = rg_divide_up(params->rows, threads / (uint32_t)lanes), .threads = threads};
  return rg_cuda_launch_kernel(call, &launch, params);
}

static rg_status run_general(const rg_problem *problem, double scaling, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t half = problem->dim[DIM_D] / 2, rows = rg_tensor_elements(&t[GRAD_POSITION_IDS]);
  int32_t lanes = 1;
  while (lanes < WARP && lanes < half) lanes *= 2;
  const rotary_embedding_general_params params = {.grad_cos = rg_device_tensor_of(&t[GRAD_COS]),
                                                  .grad_sin = rg_device_tensor_of(&t[GRAD_SIN]),
                                                  .emb = rg_device_tensor_of(&t[EMB]),
                                                  .inv_freq = rg_device_tensor_of(&t[INV_FREQ]),
                                                  .grad_position_ids = rg_device_tensor_of(&t[GRAD_POSITION_IDS]),
                                                  .rows = rows,
                                                  .seq_len = problem->dim[DIM_S],
                                                  .half = half,
                                                  .scaling = scaling,
                                                  .lanes = lanes};
  const rg_cuda_launch launch = {.kernel = t[EMB].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(rows, THREADS / lanes)),
                                 .threads = THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const rg_rotary_embedding_backward_args *args = problem->args;
  const double scaling = rg_rotary_embedding_scaling(args->attention_scaling, t[EMB].dtype);
  if (rg_tensor_elements(&t[GRAD_POSITION_IDS]) == 0) return RG_OK;
  rotary_embedding_rows_params params;
  if (call->general || !fill_rows_params(problem, scaling, &params)) return run_general(problem, scaling, call);

  const rg_dtype dtype = t[GRAD_COS].dtype;
  const int first = dtype == RG_BF16 ? BF16 : dtype == RG_F16 ? F16 : F32;
  if (is_d128(t, &params)) {
    const rotary_embedding_shape shape =
        rotary_embedding_tune(rg_cuda_device_of(call)->multiprocessors, dtype, params.rows);
    const int kernel = shape.lanes == 16 ? D128_LANES16 : shape.gradients_later ? D128_LANES8_LATER : D128_LANES8;
    return launch_rows(call, first + kernel, shape.lanes, shape.threads, &params);
  }
  const int64_t vector = ROTARY_EMBEDDING_VECTOR;
  if (params.half % vector == 0 && all_take_vectors(t, &params, vector, vector)) {
    const bool few = params.half <= 4 * vector;
    return launch_rows(call, first + (few ? ANY_D_LANES4 : ANY_D_LANES16), few ? 4 : 16, THREADS, &params);
  }
  return run_general(problem, scaling, call);
}

const rg_cuda_operator rg_rotary_embedding_backward_cuda = {
    .image = rg_rotary_embedding_image, .image_end = rg_rotary_embedding_image_end, .kernels = kernels, .run = run};
