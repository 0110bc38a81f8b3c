/* The forward pass of rotary_embedding on CUDA: which kernel, launched how. */
#include "ops/rotary_embedding/rotary_embedding_forward_cuda.h"
#include "ops/rotary_embedding/rotary_embedding_forward_tune.h"
#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rotary_embedding_forward_image[], rg_rotary_embedding_forward_image_end[];
extern const rg_cuda_operator rg_rotary_embedding_forward_cuda;

/* Of each dtype of the tables. */
enum { D128, ANY_D, KERNELS_A_DTYPE };
enum { F32, BF16 = KERNELS_A_DTYPE, F16 = 2 * KERNELS_A_DTYPE, ANY_GENERAL = 3 * KERNELS_A_DTYPE, F64_GENERAL };
static const char *const kernels[] = {
    [F32 + D128] = "rotary_embedding_forward_f32__d128",
    [F32 + ANY_D] = "rotary_embedding_forward_f32__any_d",
    [BF16 + D128] = "rotary_embedding_forward_bf16__d128",
    [BF16 + ANY_D] = "rotary_embedding_forward_bf16__any_d",
    [F16 + D128] = "rotary_embedding_forward_f16__d128",
    [F16 + ANY_D] = "rotary_embedding_forward_f16__any_d",
    [ANY_GENERAL] = "rotary_embedding_forward_any__general",
    [F64_GENERAL] = "rotary_embedding_forward_f64__general",
    NULL,
};

/* Threads of a block of the kernels that are not tuned, at most. */
enum { THREADS = 256, PACKET = ROTARY_EMBEDDING_FORWARD_PACKET };

/* Whether every packet that begins at a multiple of PACKET elements is aligned to its size. */
static bool packets_aligned(const rg_tensor *tensor) {
  return (uintptr_t)tensor->data % (PACKET * rg_dtype_size(tensor->dtype)) == 0;
}

/* Whether the kernels for rows without gaps can take the problem. */
static bool takes_rows(const rg_problem *problem) {
  const rg_tensor *t = problem->tensor;
  const int64_t B = problem->dim[DIM_B], S = problem->dim[DIM_S], half = problem->dim[DIM_D] / 2;
  const rg_tensor *inv_freq = &t[FORWARD_INV_FREQ];
  if (inv_freq->dtype != RG_F32 || half % PACKET != 0 || half / PACKET > THREADS) return false;
  if (B >= (1 << 30) || S >= (1 << 30) || B * S >= (1 << 30)) return false;
  if (inv_freq->stride[1] != 1 || !packets_aligned(inv_freq) || (B > 1 && inv_freq->stride[0] % PACKET != 0)) {
    return false;
  }
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    if (rg_given(problem, k) && !(rg_tensor_is_dense(&t[k]) && packets_aligned(&t[k]))) return false;
  }
  return true;
}

static rg_status run_rows(const rg_problem *problem, float scaling, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t S = problem->dim[DIM_S], rows = problem->dim[DIM_B] * S, half = problem->dim[DIM_D] / 2;
  /* row * multiplier >> shift is row / S for every row below 2^31: shift is 31 + log2 S, rounded up, and the
   * multiplier 2^shift / S, rounded up. */
  uint32_t shift = 31;
  while ((INT64_C(1) << (shift - 31)) < S) ++shift;
  const rotary_embedding_forward_rows_params params = {
      .position_ids = rg_device_tensor_of(&t[FORWARD_POSITION_IDS]),
      .inv_freq = t[FORWARD_INV_FREQ].data,
      .inv_freq_stride = t[FORWARD_INV_FREQ].stride[0],
      .emb = rg_data_of(&t[FORWARD_EMB]),
      .cos = rg_data_of(&t[FORWARD_COS]),
      .sin = rg_data_of(&t[FORWARD_SIN]),
      .rows = (uint32_t)rows,
      .seq_len = (uint32_t)S,
      .batch_multiplier = (uint32_t)(((UINT64_C(1) << shift) - 1) / (uint64_t)S + 1),
      .batch_shift = shift,
      .half = (uint32_t)half,
      .scaling = scaling};
  const rg_dtype dtype = t[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype;
  const uint32_t lanes = (uint32_t)half / PACKET;
  const bool fixed = half == ROTARY_EMBEDDING_FORWARD_HALF;
  const uint32_t threads = fixed ? rotary_embedding_forward_tune_threads(rg_cuda_device_of(call)->multiprocessors, rows)
                                 : THREADS / lanes * lanes;
  const rg_cuda_launch launch = {.kernel = (dtype == RG_BF16  ? BF16
                                            : dtype == RG_F16 ? F16
                                                              : F32) +
                                           (fixed ? D128 : ANY_D),
                                 .blocks = rg_divide_up(rows, threads / lanes),
                                 .threads = threads};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run_general(const rg_problem *problem, double scaling, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t half = problem->dim[DIM_D] / 2, angles = problem->dim[DIM_B] * problem->dim[DIM_S] * half;
  const rotary_embedding_forward_general_params params = {.position_ids = rg_device_tensor_of(&t[FORWARD_POSITION_IDS]),
                                                          .inv_freq = rg_device_tensor_of(&t[FORWARD_INV_FREQ]),
                                                          .emb = rg_device_tensor_of(&t[FORWARD_EMB]),
                                                          .cos = rg_device_tensor_of(&t[FORWARD_COS]),
                                                          .sin = rg_device_tensor_of(&t[FORWARD_SIN]),
                                                          .angles = angles,
                                                          .seq_len = problem->dim[DIM_S],
                                                          .half = half,
                                                          .scaling = scaling};
  const rg_cuda_launch launch = {.kernel = t[FORWARD_INV_FREQ].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(angles, THREADS)),
                                 .threads = THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_rotary_embedding_forward_args *args = problem->args;
  const rg_dtype angle = problem->tensor[FORWARD_INV_FREQ].dtype;
  const double scaling = rg_rotary_embedding_scaling(args->attention_scaling, angle);
  if (problem->dim[DIM_B] == 0 || problem->dim[DIM_S] == 0) return RG_OK;
  return !call->general && takes_rows(problem) ? run_rows(problem, (float)scaling, call)
                                               : run_general(problem, scaling, call);
}

const rg_cuda_operator rg_rotary_embedding_forward_cuda = {.image = rg_rotary_embedding_forward_image,
                                                           .image_end = rg_rotary_embedding_forward_image_end,
                                                           .kernels = kernels,
                                                           .run = run};
