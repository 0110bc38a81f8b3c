/* kv_cache_update on CUDA: which kernels, launched how. */
#include "ops/kv_cache_update/kv_cache_update_cuda.h"

#include "ops/kv_cache_update/kv_cache_update_launch.h"
#include "ops/kv_cache_update/kv_cache_update_spec.h"
#include "ops/kv_cache_update/kv_cache_update_tune.h"

extern const unsigned char rg_kv_cache_update_image[], rg_kv_cache_update_image_end[];
extern const rg_cuda_operator rg_kv_cache_update_backward_cuda;

/* Of each dtype the tuned kernels in the order of kv_cache_update_how, then the general ones. */
enum {
  F32_TUNED = 0,
  BF16_TUNED = F32_TUNED + KV_CACHE_UPDATE_NUM_HOWS,
  F16_TUNED = BF16_TUNED + KV_CACHE_UPDATE_NUM_HOWS,
  ANY_GATHER = F16_TUNED + KV_CACHE_UPDATE_NUM_HOWS,
  ANY_SUM,
  ANY_CLEAR,
  F64_GATHER,
  F64_SUM
};
/* clang-format off */
#define TUNED(first, dtype)                                                                             \
  [(first) + KV_CACHE_UPDATE_IN_PLACE_1] = "kv_cache_update_" dtype "__in_place_1",                     \
  [(first) + KV_CACHE_UPDATE_IN_PLACE_2] = "kv_cache_update_" dtype "__in_place_2",                     \
  [(first) + KV_CACHE_UPDATE_IN_PLACE_4] = "kv_cache_update_" dtype "__in_place_4",                     \
  [(first) + KV_CACHE_UPDATE_IN_PLACE_TILES] = "kv_cache_update_" dtype "__in_place_tiles",             \
  [(first) + KV_CACHE_UPDATE_OUT_OF_PLACE_2] = "kv_cache_update_" dtype "__out_of_place_2",             \
  [(first) + KV_CACHE_UPDATE_OUT_OF_PLACE_4] = "kv_cache_update_" dtype "__out_of_place_4",             \
  [(first) + KV_CACHE_UPDATE_IN_PLACE_ANY_SIZE] = "kv_cache_update_" dtype "__in_place_any_size",       \
  [(first) + KV_CACHE_UPDATE_OUT_OF_PLACE_ANY_SIZE] = "kv_cache_update_" dtype "__out_of_place_any_size"
/* clang-format on */
static const char *const kernels[] = {
    TUNED(F32_TUNED, "f32"),
    TUNED(BF16_TUNED, "bf16"),
    TUNED(F16_TUNED, "f16"),
    [ANY_GATHER] = "kv_cache_update_any__gather",
    [ANY_SUM] = "kv_cache_update_any__sum",
    [ANY_CLEAR] = "kv_cache_update_any__clear",
    [F64_GATHER] = "kv_cache_update_f64__gather",
    [F64_SUM] = "kv_cache_update_f64__sum",
    NULL,
};

/* ---- general ---- */

static rg_status launch_general(const rg_cuda_call *call, int kernel, int64_t blocks,
                                const kv_cache_update_general_params *params) {
  const rg_cuda_launch launch = {
      .kernel = kernel, .blocks = rg_cuda_cap_blocks(call, blocks), .threads = GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, params);
}

static rg_status run_general(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_kv_cache_update_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  const int64_t *dim = problem->dim;
  const bool eager = args->rounding == RG_ROUNDING_EAGER;
  const bool wants_sums = rg_given(problem, GRAD_COS) || rg_given(problem, GRAD_SIN);
  const rg_tensor *table_gradient = rg_given(problem, GRAD_COS) ? &t[GRAD_COS] : &t[GRAD_SIN];
  kv_cache_update_general_params params = {
      .key_states = rg_device_tensor_of(&t[KEY_STATES]),
      .cos = rg_device_tensor_of(&t[COS]),
      .sin = rg_device_tensor_of(&t[SIN]),
      .grad_cos = rg_device_tensor_of(&t[GRAD_COS]),
      .grad_sin = rg_device_tensor_of(&t[GRAD_SIN]),
      .cache_position = rg_device_tensor_of(&t[CACHE_POSITION]),
      .error = rg_cuda_error_word_of(call),
      .batches = dim[DIM_B],
      .heads = dim[DIM_H],
      .new_rows = dim[DIM_N],
      .cache_rows = dim[DIM_M],
      .head_dim = dim[DIM_D],
      .rotary_dim = dim[DIM_R],
      .table_batches = wants_sums ? table_gradient->shape[0] : 0,
      .interleaved = args->style == RG_STYLE_INTERLEAVED,
      .in_place = args->in_place,
      .table_product = eager ? rg_kv_cache_update_promote(t[GRAD_KEY_CACHE].dtype, t[COS].dtype) : RG_DTYPE_NONE,
      .key_product = eager ? t[KEY_STATES].dtype : RG_DTYPE_NONE,
  };
  for (int kind = 0; kind < 2; ++kind) {
    params.grad_cache[kind] = rg_device_tensor_of(&t[GRAD_KEY_CACHE + kind]);
    params.grad_states[kind] = rg_device_tensor_of(&t[GRAD_KEY_STATES + kind]);
    params.grad_cache_input[kind] = rg_device_tensor_of(&t[GRAD_KEY_CACHE_INPUT + kind]);
  }
  const bool is_f64 = t[GRAD_KEY_CACHE].dtype == RG_F64 || t[GRAD_VALUE_CACHE].dtype == RG_F64;
  const int64_t rows = dim[DIM_B] * dim[DIM_H] * dim[DIM_D];
  const int64_t named = rg_divide_up(rows * dim[DIM_N], GENERAL_THREADS);
  const int64_t passing = args->in_place ? 0 : rg_divide_up(rows * dim[DIM_M], GENERAL_THREADS);
  /* One block at least wherever there are entries of cache_position, which it checks. */
  rg_status status = launch_general(call, is_f64 ? F64_GATHER : ANY_GATHER,
                                    named + passing > 0 ? named + passing : dim[DIM_N] > 0, &params);
  if (status == RG_OK && wants_sums) {
    const int64_t pairs = rg_divide_up(dim[DIM_R] / 2, KV_CACHE_UPDATE_SUM_PAIRS);
    status = launch_general(call, is_f64 ? F64_SUM : ANY_SUM, params.table_batches * dim[DIM_N] * pairs, &params);
  }
  if (status == RG_OK && (rg_given(problem, GRAD_KEY_CACHE_INPUT) || rg_given(problem, GRAD_VALUE_CACHE_INPUT))) {
    status = launch_general(call, ANY_CLEAR, named, &params);
  }
  return status;
}

/* ---- tuned ---- */

static bool find_all_strides(const rg_problem *problem, kv_cache_update_dense_params *params) {
  return find_common_strides(problem, GRAD_KEY_CACHE, GRAD_VALUE_CACHE, &params->grad_cache_at) &&
         find_common_strides(problem, GRAD_KEY_CACHE_INPUT, GRAD_VALUE_CACHE_INPUT, &params->grad_cache_input_at) &&
         find_common_strides(problem, KEY_STATES, KEY_STATES, &params->key_states_at) &&
         find_common_strides(problem, GRAD_KEY_STATES, GRAD_VALUE_STATES, &params->grad_states_at) &&
         find_common_strides(problem, COS, SIN, &params->table_at) &&
         find_common_strides(problem, GRAD_COS, GRAD_SIN, &params->grad_table_at);
}

/* The one dtype of all tensors, if it has tuned kernels and the options are theirs; else RG_DTYPE_NONE. */
static rg_dtype tuned_dtype(const rg_problem *problem) {
  const rg_kv_cache_update_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  const int64_t *dim = problem->dim;
  const rg_dtype dtype = common_dtype(problem, CACHE_POSITION);
  /* A table's gradient that sums over the batches would have blocks wait for each other. */
  for (int k = GRAD_COS; k <= GRAD_SIN; ++k) {
    if (rg_given(problem, k) && t[k].shape[0] != dim[DIM_B]) return RG_DTYPE_NONE;
  }
  const bool has_rows = dim[DIM_B] > 0 && dim[DIM_H] > 0 && dim[DIM_N] > 0;
  const bool is_counted = dim[DIM_B] <= INT32_MAX && dim[DIM_M] <= INT32_MAX && dim[DIM_N] <= MOST_NEW_ROWS &&
                          dim[DIM_H] <= KV_CACHE_UPDATE_MOST_HEADS;
  const bool in_order = dim[DIM_N] <= 1 || t[CACHE_POSITION].stride[0] == 1;
  const bool in_lanes = dim[DIM_D] % (2 * VECTOR_BYTES / (int64_t)sizeof(uint16_t)) == 0 &&
                        dim[DIM_D] <= 2 * KV_CACHE_UPDATE_VECTOR * KV_CACHE_UPDATE_MOST_LANES;
  return args->rounding == RG_ROUNDING_ONCE && args->style == RG_STYLE_ROTATE_HALF && dim[DIM_R] == dim[DIM_D] &&
                 has_rows && is_counted && in_order && in_lanes && dtype != RG_F64
             ? dtype
             : RG_DTYPE_NONE;
}

/* From this compute capability on there are bulk copies. */
enum { BULK_COPIES_FROM = 90 };

/* Rows of a head that follow each other: bulk copies take several at a time. */
static bool suits_bulk(const kv_cache_update_dense_params *params, int64_t row_bytes) {
  const kv_cache_update_strides *rows[] = {&params->grad_cache_at, &params->grad_cache_input_at, &params->key_states_at,
                                           &params->grad_states_at};
  for (int i = 0; i < (int)(sizeof rows / sizeof *rows); ++i) {
    if (rows[i]->row != 0 && rows[i]->row != row_bytes) return false;
  }
  return true;
}

/* False: more blocks than the kernel can count. */
static bool count_blocks(const kv_cache_update_sizes *sizes, const kv_cache_update_shape *shape,
                         kv_cache_update_dense_params *params, int64_t *blocks) {
  const int64_t row_groups = rg_divide_up(sizes->new_rows, shape->rows);
  const int64_t gather = row_groups * rg_divide_up(sizes->batches, shape->gather_batches);
  const int64_t passing = sizes->in_place ? 0 : sizes->cache_rows - shape->owns_rows * sizes->new_rows;
  const int64_t pass_groups = passing > 0 ? rg_divide_up(passing, shape->pass_rows) : 1;
  const int64_t head_groups = rg_divide_up(sizes->heads, shape->pass_heads);
  const int64_t pass = passing > 0 ? pass_groups * head_groups * sizes->batches : 0;
  if (!is_divided(gather, row_groups) || !is_divided(pass, pass_groups) ||
      !is_divided(head_groups * sizes->batches, head_groups)) {
    return false;
  }
  params->row_groups = divider_of(row_groups);
  params->pass_groups = divider_of(pass_groups);
  params->head_groups = divider_of(head_groups);
  params->gather_batches = shape->gather_batches;
  params->pass_heads = shape->pass_heads;
  params->gather_blocks = (uint32_t)gather;
  *blocks = gather + pass;
  return true;
}

static int kernel_of(rg_dtype dtype, kv_cache_update_how how) {
  return (dtype == RG_F32 ? F32_TUNED : dtype == RG_BF16 ? BF16_TUNED : F16_TUNED) + (int)how;
}

/* False: not for the tuned kernels. */
static bool run_tuned(const rg_problem *problem, const rg_cuda_call *call, rg_status *status) {
  const rg_kv_cache_update_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  const int64_t *dim = problem->dim;
  const rg_dtype dtype = tuned_dtype(problem);
  kv_cache_update_dense_params params = {
      .key_states = rg_data_of(&t[KEY_STATES]),
      .cos = rg_data_of(&t[COS]),
      .sin = rg_data_of(&t[SIN]),
      .cache_position = rg_data_of(&t[CACHE_POSITION]),
      .grad_cos = rg_data_of(&t[GRAD_COS]),
      .grad_sin = rg_data_of(&t[GRAD_SIN]),
      .error = rg_cuda_error_word_of(call),
      .batches = (uint32_t)dim[DIM_B],
      .heads = (uint32_t)dim[DIM_H],
      .new_rows = (uint32_t)dim[DIM_N],
      .cache_rows = (uint32_t)dim[DIM_M],
      .positions_are_32 = t[CACHE_POSITION].dtype == RG_I32,
      .positions_in_pairs = t[CACHE_POSITION].dtype == RG_I64 && (uintptr_t)t[CACHE_POSITION].data % VECTOR_BYTES == 0,
  };
  bool all_wanted = true;
  for (int kind = 0; kind < 2; ++kind) {
    params.grad_cache[kind] = rg_data_of(&t[GRAD_KEY_CACHE + kind]);
    params.grad_states[kind] = rg_data_of(&t[GRAD_KEY_STATES + kind]);
    params.grad_cache_input[kind] = rg_data_of(&t[GRAD_KEY_CACHE_INPUT + kind]);
  }
  for (int k = GRAD_KEY_STATES; k <= GRAD_VALUE_CACHE_INPUT; ++k) all_wanted = all_wanted && rg_given(problem, k);
  if (dtype == RG_DTYPE_NONE || !find_all_strides(problem, &params)) return false;
  const rg_cuda_device *device = rg_cuda_device_of(call);
  const int64_t row_bytes = dim[DIM_D] * (int64_t)rg_dtype_size(dtype);
  const kv_cache_update_sizes sizes = {
      .batches = dim[DIM_B],
      .heads = dim[DIM_H],
      .new_rows = dim[DIM_N],
      .cache_rows = dim[DIM_M],
      .head_dim = dim[DIM_D],
      .row_bytes = row_bytes,
      .in_place =
          args->in_place || (!rg_given(problem, GRAD_KEY_CACHE_INPUT) && !rg_given(problem, GRAD_VALUE_CACHE_INPUT)),
      .all_wanted = all_wanted,
      .bulk = device->compute_capability >= BULK_COPIES_FROM && suits_bulk(&params, row_bytes)};
  const kv_cache_update_shape shape = kv_cache_update_tune(device->multiprocessors, &sizes);
  params.lanes = (uint32_t)dim[DIM_D] / (2 * KV_CACHE_UPDATE_VECTOR);
  rg_cuda_launch launch = {.kernel = kernel_of(dtype, shape.how), .threads = shape.threads};
  if (!count_blocks(&sizes, &shape, &params, &launch.blocks)) return false;
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  rg_status status;
  if (!call->general && run_tuned(problem, call, &status)) return status;
  return run_general(problem, call);
}

const rg_cuda_operator rg_kv_cache_update_backward_cuda = {
    .image = rg_kv_cache_update_image, .image_end = rg_kv_cache_update_image_end, .kernels = kernels, .run = run};
