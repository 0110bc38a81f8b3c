/* The forward pass of vision_rotary on CUDA: which kernel, launched how. */
#include "ops/vision_rotary/vision_rotary_forward_cuda.h"
#include "ops/vision_rotary/vision_rotary_forward_tune.h"
#include "ops/vision_rotary/vision_rotary_spec.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_vision_rotary_forward_image[], rg_vision_rotary_forward_image_end[];
extern const rg_cuda_operator rg_vision_rotary_forward_cuda;

/* Of each dtype of the tables. */
enum { D72, ANY_D, KERNELS_A_DTYPE };
enum { F32, BF16 = KERNELS_A_DTYPE, F16 = 2 * KERNELS_A_DTYPE, ANY_GENERAL = 3 * KERNELS_A_DTYPE, F64_GENERAL };
static const char *const kernels[] = {
    [F32 + D72] = "vision_rotary_forward_f32__d72",
    [F32 + ANY_D] = "vision_rotary_forward_f32__any_d",
    [BF16 + D72] = "vision_rotary_forward_bf16__d72",
    [BF16 + ANY_D] = "vision_rotary_forward_bf16__any_d",
    [F16 + D72] = "vision_rotary_forward_f16__d72",
    [F16 + ANY_D] = "vision_rotary_forward_f16__any_d",
    [ANY_GENERAL] = "vision_rotary_forward_any__general",
    [F64_GENERAL] = "vision_rotary_forward_f64__general",
    NULL,
};

/* Threads of a block of the kernels that are not tuned. */
enum { THREADS = 256, PACKET = VISION_ROTARY_FORWARD_PACKET };

/* Whether the kernels for rows without gaps can take the problem. */
static bool takes_packets(const rg_problem *problem) {
  const rg_tensor *t = problem->tensor, *pos_ids = &t[FORWARD_POS_IDS];
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  if (t[FORWARD_INV_FREQ].dtype != RG_F32 || P >= (1 << 30) || Q >= (1 << 28) || P * Q >= INT32_MAX) return false;
  if (!rg_tensor_is_dense(&t[FORWARD_INV_FREQ])) return false;
  /* 16 bytes a patch. */
  if (pos_ids->stride[1] != 1 || (uintptr_t)pos_ids->data % (POSITION_AXES * sizeof(int64_t)) != 0) return false;
  if (P > 1 && pos_ids->stride[0] % POSITION_AXES != 0) return false;
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    if (!rg_given(problem, k)) continue;
    if (!rg_tensor_is_dense(&t[k]) || (uintptr_t)t[k].data % (PACKET * rg_dtype_size(t[k].dtype)) != 0) return false;
  }
  return true;
}

static rg_status run_packets(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  const bool fixed = Q == VISION_ROTARY_FORWARD_QUARTER;
  const uint32_t threads = fixed ? VISION_ROTARY_FORWARD_THREADS : THREADS;
  const int64_t packets = P * Q;
  const vision_rotary_forward_dense_params params = {.inv_freq = t[FORWARD_INV_FREQ].data,
                                                     .pos_ids = t[FORWARD_POS_IDS].data,
                                                     .pos_ids_stride = t[FORWARD_POS_IDS].stride[0],
                                                     .emb = rg_data_of(&t[FORWARD_EMB]),
                                                     .cos = rg_data_of(&t[FORWARD_COS]),
                                                     .sin = rg_data_of(&t[FORWARD_SIN]),
                                                     .packets = (uint32_t)packets,
                                                     .quarter = (uint32_t)Q};
  const rg_dtype dtype = t[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype;
  const rg_cuda_launch launch = {.kernel = (dtype == RG_BF16  ? BF16
                                            : dtype == RG_F16 ? F16
                                                              : F32) +
                                           (fixed ? D72 : ANY_D),
                                 .blocks = rg_divide_up(packets, threads),
                                 .threads = threads};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run_general(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t Q = problem->dim[DIM_D] / QUARTERS, angles = problem->dim[DIM_P] * POSITION_AXES * Q;
  const vision_rotary_forward_general_params params = {.inv_freq = rg_device_tensor_of(&t[FORWARD_INV_FREQ]),
                                                       .pos_ids = rg_device_tensor_of(&t[FORWARD_POS_IDS]),
                                                       .emb = rg_device_tensor_of(&t[FORWARD_EMB]),
                                                       .cos = rg_device_tensor_of(&t[FORWARD_COS]),
                                                       .sin = rg_device_tensor_of(&t[FORWARD_SIN]),
                                                       .angles = angles,
                                                       .quarter = Q};
  const rg_cuda_launch launch = {.kernel = t[FORWARD_INV_FREQ].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(angles, THREADS)),
                                 .threads = THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  if (problem->dim[DIM_P] == 0) return RG_OK;
  return !call->general && takes_packets(problem) ? run_packets(problem, call) : run_general(problem, call);
}

const rg_cuda_operator rg_vision_rotary_forward_cuda = {.image = rg_vision_rotary_forward_image,
                                                        .image_end = rg_vision_rotary_forward_image_end,
                                                        .kernels = kernels,
                                                        .run = run};
