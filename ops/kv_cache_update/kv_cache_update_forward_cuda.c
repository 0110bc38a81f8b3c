/* kv_cache_update_forward on CUDA: which kernels, launched how. */
#include "ops/kv_cache_update/kv_cache_update_forward_cuda.h"

#include "ops/kv_cache_update/kv_cache_update_forward_tune.h"
#include "ops/kv_cache_update/kv_cache_update_launch.h"
#include "ops/kv_cache_update/kv_cache_update_spec.h"

extern const unsigned char rg_kv_cache_update_forward_image[], rg_kv_cache_update_forward_image_end[];
extern const rg_cuda_operator rg_kv_cache_update_forward_cuda;

/* Of each dtype the tuned kernels in the order of kv_cache_update_forward_how, then the general ones. */
enum {
  F32_TUNED = 0,
  BF16_TUNED = F32_TUNED + KV_CACHE_UPDATE_FORWARD_NUM_HOWS,
  F16_TUNED = BF16_TUNED + KV_CACHE_UPDATE_FORWARD_NUM_HOWS,
  ANY_COPY = F16_TUNED + KV_CACHE_UPDATE_FORWARD_NUM_HOWS,
  ANY_MARK,
  ANY_UNMARK,
  ANY_PUT,
  F64_PUT
};
/* clang-format off */
#define TUNED(first, dtype)                                                                                           \
  [(first) + KV_CACHE_UPDATE_FORWARD_IN_PLACE] = "kv_cache_update_forward_" dtype "__in_place",                       \
  [(first) + KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE] = "kv_cache_update_forward_" dtype "__out_of_place",               \
  [(first) + KV_CACHE_UPDATE_FORWARD_IN_PLACE_ANY_SIZE] = "kv_cache_update_forward_" dtype "__in_place_any_size",     \
  [(first) + KV_CACHE_UPDATE_FORWARD_OUT_OF_PLACE_ANY_SIZE] =                                                         \
      "kv_cache_update_forward_" dtype "__out_of_place_any_size"
/* clang-format on */
static const char *const kernels[] = {
    TUNED(F32_TUNED, "f32"),
    TUNED(BF16_TUNED, "bf16"),
    TUNED(F16_TUNED, "f16"),
    [ANY_COPY] = "kv_cache_update_forward_any__copy",
    [ANY_MARK] = "kv_cache_update_forward_any__mark",
    [ANY_UNMARK] = "kv_cache_update_forward_any__unmark",
    [ANY_PUT] = "kv_cache_update_forward_any__put",
    [F64_PUT] = "kv_cache_update_forward_f64__put",
    NULL,
};

/* ---- general ---- */

typedef kv_cache_update_forward_general_params general_params;

static rg_status launch_general(const rg_cuda_call *call, int kernel, int64_t items, const general_params *params) {
  const rg_cuda_launch launch = {.kernel = kernel,
                                 .blocks = rg_cuda_cap_blocks(call, rg_divide_up(items, GENERAL_THREADS)),
                                 .threads = GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, params);
}

/* The new rows that may each look through those after it: in fewer steps than two launches take time. */
enum { FEW_NEW_ROWS = 32 };

/* The cache rows that the workspace has an entry for. */
enum { MARKED_ROWS = RG_CUDA_WORKSPACE_BYTES / (int)sizeof(unsigned long long) };

/* Writes the new rows. One thread at least wherever there are entries of cache_position, which it checks. */
static rg_status put(const rg_cuda_call *call, int kernel, general_params *params) {
  const int64_t N = params->new_rows, M = params->cache_rows;
  const int64_t elements = params->batches * params->heads * N * params->head_dim, items = elements > 0 ? elements : N;
  if (N <= FEW_NEW_ROWS || M == 0) {
    params->rows = M;
    return launch_general(call, kernel, items, params);
  }
  rg_status status = RG_OK;
  params->last = rg_cuda_workspace(call);
  for (int64_t begin = 0; begin < M && status == RG_OK; begin += MARKED_ROWS) {
    params->first_row = begin;
    params->rows = M - begin < MARKED_ROWS ? M - begin : MARKED_ROWS;
    status = launch_general(call, ANY_MARK, N, params);
    if (status == RG_OK) status = launch_general(call, kernel, items, params);
    if (status == RG_OK) status = launch_general(call, ANY_UNMARK, N, params);
  }
  return status;
}

static rg_status run_general(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_kv_cache_update_forward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  const int64_t *dim = problem->dim;
  general_params params = {
      .cos = rg_device_tensor_of(&t[FORWARD_COS]),
      .sin = rg_device_tensor_of(&t[FORWARD_SIN]),
      .cache_position = rg_device_tensor_of(&t[FORWARD_CACHE_POSITION]),
      .error = rg_cuda_error_word_of(call),
      .batches = dim[DIM_B],
      .heads = dim[DIM_H],
      .new_rows = dim[DIM_N],
      .cache_rows = dim[DIM_M],
      .head_dim = dim[DIM_D],
      .rotary_dim = dim[DIM_R],
      .interleaved = args->style == RG_STYLE_INTERLEAVED,
  };
  bool is_f64 = false;
  for (int kind = 0; kind < 2; ++kind) {
    params.cache_input[kind] = rg_device_tensor_of(&t[FORWARD_KEY_CACHE_INPUT + kind]);
    params.states[kind] = rg_device_tensor_of(&t[FORWARD_KEY_STATES + kind]);
    params.cache[kind] = rg_device_tensor_of(&t[FORWARD_KEY_CACHE + kind]);
    is_f64 = is_f64 || t[FORWARD_KEY_CACHE + kind].dtype == RG_F64;
  }
  rg_status status = RG_OK;
  if (!args->in_place) {
    status = launch_general(call, ANY_COPY, dim[DIM_B] * dim[DIM_H] * dim[DIM_M] * dim[DIM_D], &params);
  }
  return status == RG_OK ? put(call, is_f64 ? F64_PUT : ANY_PUT, &params) : status;
}

/* ---- tuned ---- */

typedef kv_cache_update_forward_dense_params dense_params;

static bool find_all_strides(const rg_problem *problem, dense_params *params) {
  kv_cache_update_strides *input_at = &params->cache_input_at;
  return find_common_strides(problem, FORWARD_KEY_CACHE_INPUT, FORWARD_VALUE_CACHE_INPUT, input_at) &&
         find_common_strides(problem, FORWARD_KEY_CACHE, FORWARD_VALUE_CACHE, &params->cache_at) &&
         find_common_strides(problem, FORWARD_KEY_STATES, FORWARD_VALUE_STATES, &params->states_at) &&
         find_common_strides(problem, FORWARD_COS, FORWARD_SIN, &params->table_at);
}

/* The one dtype of all tensors, if it has tuned kernels and the options are theirs; else RG_DTYPE_NONE. */
static rg_dtype tuned_dtype(const rg_problem *problem) {
  const rg_kv_cache_update_forward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  const int64_t *dim = problem->dim;
  const rg_dtype dtype = common_dtype(problem, FORWARD_CACHE_POSITION);
  if (dtype == RG_DTYPE_NONE || dtype == RG_F64) return RG_DTYPE_NONE;
  const bool has_rows = dim[DIM_B] > 0 && dim[DIM_H] > 0 && dim[DIM_N] > 0 && dim[DIM_M] > 0;
  const bool is_counted =
      dim[DIM_B] <= INT32_MAX && dim[DIM_H] <= INT32_MAX && dim[DIM_M] <= INT32_MAX && dim[DIM_N] <= MOST_NEW_ROWS;
  const bool in_order = dim[DIM_N] <= 1 || t[FORWARD_CACHE_POSITION].stride[0] == 1;
  const int64_t widest_columns = 2 * VECTOR_BYTES / (int64_t)rg_dtype_size(dtype); /* of a lane, in both halves */
  const bool in_lanes = dim[DIM_D] % widest_columns == 0 && dim[DIM_D] <= widest_columns * KV_CACHE_UPDATE_MOST_LANES;
  return args->style == RG_STYLE_ROTATE_HALF && dim[DIM_R] == dim[DIM_D] && has_rows && is_counted && in_order &&
                 in_lanes
             ? dtype
             : RG_DTYPE_NONE;
}

/* False: more blocks than the kernels can count. */
static bool count_blocks(const kv_cache_update_forward_sizes *sizes, const kv_cache_update_forward_shape *shape,
                         dense_params *params, rg_cuda_launch *launch) {
  const uint32_t rows = sizes->in_place ? shape->rows : shape->threads / params->lanes;
  const int64_t row_groups = rg_divide_up(sizes->in_place ? sizes->new_rows : sizes->cache_rows, rows);
  const int64_t head_groups = sizes->in_place ? 1 : rg_divide_up(sizes->heads, shape->block_heads);
  const int64_t others =
      sizes->in_place ? rg_divide_up(sizes->batches, shape->block_batches) : head_groups * sizes->batches;
  launch->threads = params->lanes * rows * (sizes->in_place ? shape->parts : 1);
  launch->blocks = row_groups * others;
  params->row_groups = divider_of(row_groups);
  params->head_groups = divider_of(head_groups);
  params->block_batches = shape->block_batches;
  params->block_heads = shape->block_heads;
  return is_divided(others, head_groups) && is_divided(launch->blocks, row_groups);
}

static int kernel_of(rg_dtype dtype, kv_cache_update_forward_how how) {
  return (dtype == RG_F32 ? F32_TUNED : dtype == RG_BF16 ? BF16_TUNED : F16_TUNED) + (int)how;
}

/* False: not for the tuned kernels. */
static bool run_tuned(const rg_problem *problem, const rg_cuda_call *call, rg_status *status) {
  const rg_kv_cache_update_forward_args *args = problem->args;
  const rg_tensor *t = problem->tensor, *positions = &t[FORWARD_CACHE_POSITION];
  const int64_t *dim = problem->dim;
  const rg_dtype dtype = tuned_dtype(problem);
  dense_params params = {
      .cos = rg_data_of(&t[FORWARD_COS]),
      .sin = rg_data_of(&t[FORWARD_SIN]),
      .cache_position = rg_data_of(positions),
      .error = rg_cuda_error_word_of(call),
      .batches = (uint32_t)dim[DIM_B],
      .heads = (uint32_t)dim[DIM_H],
      .new_rows = (uint32_t)dim[DIM_N],
      .cache_rows = (uint32_t)dim[DIM_M],
      .positions_are_32 = positions->dtype == RG_I32,
      .positions_in_pairs = positions->dtype == RG_I64 && (uintptr_t)positions->data % VECTOR_BYTES == 0,
  };
  if (dtype == RG_DTYPE_NONE || !find_all_strides(problem, &params)) return false;
  for (int kind = 0; kind < 2; ++kind) {
    params.cache_input[kind] = rg_data_of(&t[FORWARD_KEY_CACHE_INPUT + kind]);
    params.states[kind] = rg_data_of(&t[FORWARD_KEY_STATES + kind]);
    params.cache[kind] = rg_data_of(&t[FORWARD_KEY_CACHE + kind]);
  }
  const kv_cache_update_forward_sizes sizes = {
      .batches = dim[DIM_B],
      .heads = dim[DIM_H],
      .new_rows = dim[DIM_N],
      .cache_rows = dim[DIM_M],
      .head_dim = dim[DIM_D],
      .element_bytes = (int)rg_dtype_size(dtype),
      .in_place = args->in_place,
      .both_wanted = rg_given(problem, FORWARD_KEY_CACHE) && rg_given(problem, FORWARD_VALUE_CACHE)};
  const kv_cache_update_forward_shape shape = kv_cache_update_forward_tune(&sizes);
  params.lanes = (uint32_t)dim[DIM_D] / (2 * shape.vector);
  rg_cuda_launch launch = {.kernel = kernel_of(dtype, shape.how)};
  if (!count_blocks(&sizes, &shape, &params, &launch)) return false;
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  rg_status status;
  if (!call->general && run_tuned(problem, call, &status)) return status;
  return run_general(problem, call);
}

const rg_cuda_operator rg_kv_cache_update_forward_cuda = {.image = rg_kv_cache_update_forward_image,
                                                          .image_end = rg_kv_cache_update_forward_image_end,
                                                          .kernels = kernels,
                                                          .run = run};
