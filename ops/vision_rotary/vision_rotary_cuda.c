/* vision_rotary on CUDA: which kernel, launched how. */
#include "ops/vision_rotary/vision_rotary_cuda.h"
#include "ops/vision_rotary/vision_rotary_spec.h"
#include "ops/vision_rotary/vision_rotary_tune.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_vision_rotary_image[], rg_vision_rotary_image_end[];
extern const rg_cuda_operator rg_vision_rotary_backward_cuda;

#define DENSE(first, dtype)                                                              \
  [first + VISION_ROTARY_CLUSTER16] = "vision_rotary_" dtype "__d72_cluster16",          \
           [first + VISION_ROTARY_CLUSTER24] = "vision_rotary_" dtype "__d72_cluster24", \
           [first + VISION_ROTARY_CLUSTER48] = "vision_rotary_" dtype "__d72_cluster48", \
           [first + VISION_ROTARY_BLOCKS16] = "vision_rotary_" dtype "__d72_blocks16",   \
           [first + VISION_ROTARY_BLOCKS24] = "vision_rotary_" dtype "__d72_blocks24",   \
           [first + VISION_ROTARY_BLOCKS32] = "vision_rotary_" dtype "__d72_blocks32",   \
           [first + VISION_ROTARY_BLOCKS64] = "vision_rotary_" dtype "__d72_blocks64",   \
           [first + VISION_ROTARY_BLOCKS96] = "vision_rotary_" dtype "__d72_blocks96",   \
           [first + VISION_ROTARY_MANY] = "vision_rotary_" dtype "__d72_many",           \
           [first + VISION_ROTARY_ROWS] = "vision_rotary_" dtype "__rows"

enum {
  F32_DENSE,
  BF16_DENSE = F32_DENSE + VISION_ROTARY_DENSE_KERNELS,
  F16_DENSE = BF16_DENSE + VISION_ROTARY_DENSE_KERNELS,
  ANY_GENERAL = F16_DENSE + VISION_ROTARY_DENSE_KERNELS,
  F64_GENERAL
};
static const char *const kernels[] = {
    DENSE(F32_DENSE, "f32"),
    DENSE(BF16_DENSE, "bf16"),
    DENSE(F16_DENSE, "f16"),
    [ANY_GENERAL] = "vision_rotary_any__general",
    [F64_GENERAL] = "vision_rotary_f64__general",
    NULL,
};

enum {
  WARP = 32,
  TUNED_COLUMNS = 72,
  MAX_VECTOR = 4,
  MIN_ROWS_QUARTER = 8, /* below, a block of the rows kernel has too few threads */
  MAX_ROWS_QUARTER = 64 /* 16 rows of 64 lanes are the most threads that a block has */
};

/* ---- dense tensors ---- */

/* Rows of contiguous columns, each aligned to the longest vector, whose step fits 32 bits. */
static bool has_vector_rows(const rg_tensor *t) {
  const int64_t stride = t->stride[0];
  return t->stride[1] == 1 && stride % MAX_VECTOR == 0 && stride <= INT32_MAX && stride >= INT32_MIN &&
         (uintptr_t)t->data % (MAX_VECTOR * rg_dtype_size(t->dtype)) == 0;
}

/* What the kernels for rows of contiguous columns ask. */
static bool takes_rows(const rg_problem *problem) {
  const rg_tensor *t = problem->tensor;
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  return t[EMB].dtype == RG_F32 && P <= INT32_MAX / 2 && has_vector_rows(&t[GRAD_COS]) &&
         has_vector_rows(&t[GRAD_SIN]) && has_vector_rows(&t[EMB]) && t[POS_IDS].stride[1] == 1 &&
         t[POS_IDS].stride[0] % POSITION_AXES == 0 && t[POS_IDS].stride[0] <= INT32_MAX &&
         t[POS_IDS].stride[0] >= INT32_MIN && (uintptr_t)t[POS_IDS].data % (POSITION_AXES * sizeof(int64_t)) == 0 &&
         (Q == 1 || t[GRAD_INV_FREQ].stride[0] == 1);
}

/* What the tuned ones ask besides: offsets in 32 bits, rows without a gap. */
static bool is_packed(const rg_problem *problem) {
  const rg_tensor *t = problem->tensor;
  return problem->dim[DIM_D] == TUNED_COLUMNS && problem->dim[DIM_P] <= INT32_MAX / TUNED_COLUMNS &&
         t[GRAD_COS].stride[0] == TUNED_COLUMNS && t[GRAD_SIN].stride[0] == TUNED_COLUMNS &&
         t[EMB].stride[0] == TUNED_COLUMNS && t[POS_IDS].stride[0] == POSITION_AXES;
}

static rg_status run_dense(const rg_problem *problem, const vision_rotary_shape *shape, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t P = problem->dim[DIM_P], D = problem->dim[DIM_D];
  const vision_rotary_dense_params params = {.grad_cos = t[GRAD_COS].data,
                                             .grad_sin = t[GRAD_SIN].data,
                                             .emb = t[EMB].data,
                                             .pos_ids = t[POS_IDS].data,
                                             .grad_inv_freq = t[GRAD_INV_FREQ].data,
                                             .cells = rg_cuda_workspace(call),
                                             .patches = (int32_t)P,
                                             .block_rows = (int32_t)rg_divide_up(P, shape->blocks),
                                             .quarter = (int32_t)(D / QUARTERS),
                                             .poll_delay = shape->poll_delay,
                                             .grad_cos_stride = (int32_t)t[GRAD_COS].stride[0],
                                             .grad_sin_stride = (int32_t)t[GRAD_SIN].stride[0],
                                             .emb_stride = (int32_t)t[EMB].stride[0],
                                             .pos_ids_stride = (int32_t)t[POS_IDS].stride[0]};
  const rg_dtype dtype = t[GRAD_COS].dtype;
  const int first = dtype == RG_BF16 ? BF16_DENSE : dtype == RG_F16 ? F16_DENSE : F32_DENSE;
  const rg_cuda_launch launch = {.kernel = first + (int)shape->kernel,
                                 .blocks = shape->blocks,
                                 .threads = (uint32_t)(rg_divide_up(shape->slots * D / shape->vector, WARP) * WARP),
                                 .shared_bytes = (uint32_t)((size_t)shape->slots * (size_t)D * sizeof(float)),
                                 .cluster = shape->clustered ? VISION_ROTARY_CLUSTER : 0};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

/* ---- everything else ---- */

enum { TILE_COLUMNS = 32, MIN_LANE_ROWS = 8, MAX_CHUNKS = 128, MAX_WORKERS = 1024 };
enum { MAX_CELLS = RG_CUDA_WORKSPACE_BYTES / VISION_ROTARY_CELL_BYTES };

/* By the sizes alone, as the order of the sums depends on it. */
static int64_t chunks_of(int64_t P, int64_t Q, int64_t tiles, int64_t rows) {
  int64_t chunks = rg_divide_up(P, rows * MIN_LANE_ROWS);
  if (chunks > MAX_CHUNKS) chunks = MAX_CHUNKS;
  if (chunks > MAX_WORKERS / tiles) chunks = MAX_WORKERS / tiles;
  if (chunks > MAX_CELLS / Q) chunks = MAX_CELLS / Q;
  return chunks < 1 ? 1 : chunks;
}

static rg_status run_general(const rg_problem *problem, const rg_cuda_call *call) {
  const rg_tensor *t = problem->tensor;
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  int32_t columns = 1;
  while (columns < TILE_COLUMNS && columns < Q) columns *= 2;
  const int64_t tiles = rg_divide_up(Q, columns);
  const int64_t chunks = chunks_of(P, Q, tiles, VISION_ROTARY_GENERAL_THREADS / columns);
  const vision_rotary_general_params params = {.grad_cos = rg_device_tensor_of(&t[GRAD_COS]),
                                               .grad_sin = rg_device_tensor_of(&t[GRAD_SIN]),
                                               .emb = rg_device_tensor_of(&t[EMB]),
                                               .pos_ids = rg_device_tensor_of(&t[POS_IDS]),
                                               .grad_inv_freq = rg_device_tensor_of(&t[GRAD_INV_FREQ]),
                                               .cells = rg_cuda_workspace(call),
                                               .patches = P,
                                               .quarter = Q,
                                               .chunks = chunks,
                                               .chunk_rows = rg_divide_up(P, chunks),
                                               .tiles = tiles,
                                               .tile_columns = columns};
  const int64_t collectors = chunks > 1 ? rg_divide_up(Q, VISION_ROTARY_GENERAL_THREADS / WARP) : 0;
  const rg_cuda_launch launch = {.kernel = t[EMB].dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = chunks * tiles + collectors,
                                 .threads = VISION_ROTARY_GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  if (call->general || !takes_rows(problem)) return run_general(problem, call);
  if (is_packed(problem)) {
    const rg_cuda_device *device = rg_cuda_device_of(call);
    const vision_rotary_shape shape = vision_rotary_tune(device->compute_capability, device->multiprocessors, P);
    return run_dense(problem, &shape, call);
  }
  if (Q < MIN_ROWS_QUARTER || Q > MAX_ROWS_QUARTER) return run_general(problem, call);
  const vision_rotary_shape shape = vision_rotary_tune_rows(P);
  return run_dense(problem, &shape, call);
}

const rg_cuda_operator rg_vision_rotary_backward_cuda = {
    .image = rg_vision_rotary_image, .image_end = rg_vision_rotary_image_end, .kernels = kernels, .run = run};
