/* rope_apply on CUDA: which kernel, launched how. */
#include <string.h>

#include "ops/rope_apply/rope_apply_cuda.h"
#include "ops/rope_apply/rope_apply_shapes.h"
#include "ops/rope_apply/rope_apply_spec.h"
#include "ops/rope_apply/rope_apply_tune.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rope_apply_image[], rg_rope_apply_image_end[];
extern const rg_cuda_operator rg_rope_apply_backward_cuda;

/* ---- the kernels ---- */

/* The dtypes that the tuned kernels are compiled for, of q and k and of the tables. */
#define DTYPES_f32 RG_F32
#define DTYPES_bf16 RG_BF16
#define DTYPES_f16 RG_F16
#define VECTORS_DTYPES(X) X(f32, f32) X(bf16, bf16) X(bf16, f32) X(f16, f16) X(f16, f32)

/* A kernel for rows in vectors comes in every rope_apply_how, each in both styles. */
enum { STYLES = 2 };

enum {
  ANY_GENERAL,
  F64_GENERAL,
#define X(payload, table) \
  VECTORS_##payload##_##table, LAST_##payload##_##table = VECTORS_##payload##_##table + STYLES * ROPE_APPLY_HOWS - 1,
  VECTORS_DTYPES(X)
#undef X
      FIRST_FIXED /* then those of rope_apply_shapes.h */
};

static const char *const kernels[] = {
    [ANY_GENERAL] = "rope_apply_any__general",
    [F64_GENERAL] = "rope_apply_f64__general",
#define STYLED(payload, table, how) \
  "rope_apply_" #payload "_" #table "__vectors" #how, "rope_apply_" #payload "_" #table "__vectors" #how "_interleaved",
#define X(payload, table) STYLED(payload, table, ) STYLED(payload, table, _long) STYLED(payload, table, _plain)
    VECTORS_DTYPES(X)
#undef X
#undef STYLED
#define NAME(payload, table, how, plain, rows, groups, depth, once) \
  "rope_apply_" #payload "_" #table "__" how #plain "_" #rows "x" #groups "x" #depth "x" #once,
#define DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  NAME(payload, table, "direct", plain, rows, groups, depth, loads_once)
#define PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  NAME(payload, table, "pipeline", plain, rows, groups, depth, loads_once)
        ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)
#undef DIRECT
#undef PIPELINE
            NULL,
};

typedef struct fixed_kernel {
  rg_dtype payload, table;
  bool plain;
  rope_apply_shape shape;
} fixed_kernel;

static const fixed_kernel fixed_kernels[] = {
#define ROW(payload, table, is_pipeline, is_plain, row_count, group_count, how_deep, once) \
  {DTYPES_##payload,                                                                       \
   DTYPES_##table,                                                                         \
   is_plain,                                                                               \
   {.pipeline = is_pipeline, .rows = row_count, .groups = group_count, .depth = how_deep, .loads_once = once}},
#define DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  ROW(payload, table, false, plain, rows, groups, depth, loads_once)
#define PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  ROW(payload, table, true, plain, rows, groups, depth, loads_once)
    ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)};

/* -1: there is none. */
static int find_fixed(rg_dtype payload, rg_dtype table, bool plain, rope_apply_shape shape) {
  for (int k = 0; k < (int)(sizeof fixed_kernels / sizeof *fixed_kernels); ++k) {
    const fixed_kernel *kernel = &fixed_kernels[k];
    if (kernel->payload == payload && kernel->table == table && kernel->plain == plain &&
        kernel->shape.pipeline == shape.pipeline && kernel->shape.rows == shape.rows &&
        kernel->shape.groups == shape.groups && kernel->shape.depth == shape.depth &&
        kernel->shape.loads_once == shape.loads_once) {
      return FIRST_FIXED + k;
    }
  }
  return -1;
}

/* ---- what a call asks for ---- */

/* q's side or k's. What is not given, or not read, is NULL. */
typedef struct side_tensors {
  const rg_tensor *grad_y, *x, *grad_x;
  int64_t heads; /* 0 where the side has no part in what is wanted */
} side_tensors;

typedef struct work {
  const rg_problem *problem;
  side_tensors side[2];
  const rg_tensor *table[2];      /* cos, sin; NULL where no grad_x is wanted */
  const rg_tensor *grad_table[2]; /* NULL: not wanted */
  rg_dtype payload, tables;       /* payload: RG_DTYPE_NONE where q and k differ */
  bool plain;                     /* no gradient of a table is wanted */
  bool sums_batch[2];
  bool interleaved, same_half;
  int64_t batches, seq_len, heads; /* heads: of both sides */
  int64_t head_dim, rotary_dim;
} work;

static side_tensors side_of(const rg_problem *problem, int grad_y, int x, int grad_x, int dim, bool plain) {
  const rg_tensor *t = problem->tensor;
  if (plain && !rg_given(problem, grad_x)) return (side_tensors){0};
  return (side_tensors){.grad_y = &t[grad_y],
                        .x = plain ? NULL : &t[x],
                        .grad_x = rg_given(problem, grad_x) ? &t[grad_x] : NULL,
                        .heads = problem->dim[dim]};
}

static work work_of(const rg_problem *problem) {
  const rg_rope_apply_backward_args *args = problem->args;
  const rg_tensor *t = problem->tensor;
  work w = {.problem = problem,
            .plain = !rg_given(problem, GRAD_COS) && !rg_given(problem, GRAD_SIN),
            .sums_batch = {rope_apply_sums_batch(problem, GRAD_COS), rope_apply_sums_batch(problem, GRAD_SIN)},
            .interleaved = args->style == RG_STYLE_INTERLEAVED,
            .same_half = args->sin_pairing == RG_SIN_SAME_HALF,
            .batches = problem->dim[DIM_B],
            .seq_len = problem->dim[DIM_S],
            .head_dim = problem->dim[DIM_D],
            .rotary_dim = problem->dim[DIM_R]};
  w.side[0] = side_of(problem, GRAD_Q_EMBED, Q, GRAD_Q, DIM_HQ, w.plain);
  w.side[1] = side_of(problem, GRAD_K_EMBED, K, GRAD_K, DIM_HK, w.plain);
  w.heads = w.side[0].heads + w.side[1].heads;
  const rg_dtype of_q = w.side[0].heads > 0 ? w.side[0].grad_y->dtype : RG_DTYPE_NONE;
  const rg_dtype of_k = w.side[1].heads > 0 ? w.side[1].grad_y->dtype : RG_DTYPE_NONE;
  if (of_q == of_k || of_k == RG_DTYPE_NONE) w.payload = of_q;
  if (of_q == RG_DTYPE_NONE) w.payload = of_k;
  if (w.side[0].grad_x != NULL || w.side[1].grad_x != NULL) {
    w.table[0] = &t[COS];
    w.table[1] = &t[SIN];
    w.tables = t[COS].dtype;
  }
  for (int i = 0; i < 2; ++i) {
    if (!rg_given(problem, GRAD_COS + i)) continue;
    w.grad_table[i] = &t[GRAD_COS + i];
    w.tables = t[GRAD_COS + i].dtype;
  }
  return w;
}

/* An axis of one element, or none, has no stride to speak of. */
static int64_t stride_of(const rg_tensor *tensor, int axis) {
  return tensor->shape[axis] > 1 ? tensor->stride[axis] : 0;
}

/* Rows of elements one after the other, each vector aligned to its size. */
static bool has_vectors(const rg_tensor *tensor) {
  if (tensor == NULL) return true;
  const int last = tensor->rank - 1;
  if (tensor->stride[last] != 1) return false;
  if ((uintptr_t)tensor->data % (ROPE_APPLY_VECTOR * rg_dtype_size(tensor->dtype)) != 0) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (stride_of(tensor, axis) % ROPE_APPLY_VECTOR != 0) return false;
  }
  return true;
}

static rope_apply_tiles tiles_of(int64_t seq_len, int64_t count) {
  return (rope_apply_tiles){
      .count = rg_divider_of(count), .rows = (uint32_t)(seq_len / count), .longer = (uint32_t)(seq_len % count)};
}

/* ---- everything fixed ---- */

/* A tensor's strides in bytes. */
typedef struct byte_strides {
  int64_t batch, head, position;
} byte_strides;

static byte_strides strides_of(const rg_tensor *tensor) {
  const int64_t size = (int64_t)rg_dtype_size(tensor->dtype);
  const bool has_heads = tensor->rank == 4;
  return (byte_strides){.batch = size * stride_of(tensor, 0),
                        .head = has_heads ? size * stride_of(tensor, 1) : 0,
                        .position = size * stride_of(tensor, has_heads ? 2 : 1)};
}

/* Sets `strides` to those that the given tensors share, unless they differ, or offsets are negative or do not fit into
 * 32 bits. */
static bool share_strides(const rg_tensor *const *tensors, int count, byte_strides *strides) {
  *strides = (byte_strides){0};
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (tensors[i] == NULL) continue;
    const byte_strides these = strides_of(tensors[i]);
    if (any && memcmp(&these, strides, sizeof these) != 0) return false;
    if (these.batch < 0 || these.head < 0 || these.position < 0) return false;
    int64_t end = 0;
    for (int axis = 0; axis < tensors[i]->rank; ++axis) {
      end += (tensors[i]->shape[axis] - 1) * tensors[i]->stride[axis];
    }
    if ((end + 1) * (int64_t)rg_dtype_size(tensors[i]->dtype) > UINT32_MAX) return false;
    *strides = these;
    any = true;
  }
  return true;
}

static bool set_fixed_side(const side_tensors *side, rope_apply_fixed_side *set) {
  *set = (rope_apply_fixed_side){0};
  if (side->heads == 0) return true;
  byte_strides strides;
  if (!share_strides((const rg_tensor *const[]){side->grad_y, side->x, side->grad_x}, 3, &strides)) return false;
  set->grad_y = side->grad_y->data;
  if (side->x != NULL) set->x = side->x->data;
  if (side->grad_x != NULL) set->grad_x = side->grad_x->data;
  set->batch = (uint32_t)strides.batch;
  set->head = (uint32_t)strides.head;
  set->position = (uint32_t)strides.position;
  return true;
}

/* Bulk copies take 16 bytes at a time, and positions that follow each other. */
static bool suits_bulk(const side_tensors *side, int64_t row_bytes) {
  enum { UNIT = 16 };
  if (side->heads == 0) return true;
  const rg_tensor *tensors[] = {side->grad_y, side->x};
  for (int i = 0; i < 2; ++i) {
    if (tensors[i] == NULL) continue;
    const byte_strides strides = strides_of(tensors[i]);
    if ((uintptr_t)tensors[i]->data % UNIT != 0 || strides.batch % UNIT != 0 || strides.head % UNIT != 0) return false;
    if (tensors[i]->shape[2] > 1 && strides.position != row_bytes) return false;
  }
  return true;
}

/* From this compute capability on there are bulk copies. */
enum { BULK_COPIES_FROM = 90 };

/* Whether one of the fixed kernels serves; it is launched then. */
static bool run_fixed(const work *w, const rg_cuda_call *call, rg_status *status) {
  if (w->head_dim != ROPE_APPLY_FIXED_DIM || w->rotary_dim != w->head_dim || w->interleaved) return false;
  if (w->sums_batch[0] || w->sums_batch[1]) return false;
  if (w->payload != RG_F32 && (w->plain || w->batches * w->seq_len < ROPE_APPLY_FIXED_16_BIT_FROM)) return false;
  rope_apply_fixed_params params = {
      .heads_of_q = (uint32_t)w->side[0].heads, .heads = (uint32_t)w->heads, .same_half = w->same_half};
  byte_strides of_tables, of_grads;
  if (!set_fixed_side(&w->side[0], &params.side[0]) || !set_fixed_side(&w->side[1], &params.side[1]) ||
      !share_strides(w->table, 2, &of_tables) || !share_strides(w->grad_table, 2, &of_grads)) {
    return false;
  }
  const int64_t row_bytes = ROPE_APPLY_FIXED_DIM * (int64_t)rg_dtype_size(w->payload);
  const rg_cuda_device *device = rg_cuda_device_of(call);
  const rope_apply_sizes sizes = {.multiprocessors = device->multiprocessors,
                                  .batches = w->batches,
                                  .seq_len = w->seq_len,
                                  .heads = w->heads,
                                  .bulk = device->compute_capability >= BULK_COPIES_FROM &&
                                          suits_bulk(&w->side[0], row_bytes) && suits_bulk(&w->side[1], row_bytes),
                                  .plain = w->plain,
                                  .is_16_bit = w->payload != RG_F32};
  const rope_apply_shape shape = rope_apply_tune(&sizes);
  const int kernel = find_fixed(w->payload, w->tables, w->plain, shape);
  if (kernel < 0) return false;
  if (!w->plain && w->heads > (int64_t)ROPE_APPLY_HEADS_PER_SUM * shape.groups) return false;
  params.tiles = tiles_of(w->seq_len, shape.tiles);
  if (w->table[0] != NULL) {
    params.cosine = w->table[0]->data;
    params.sine = w->table[1]->data;
  }
  params.table_batch = (uint32_t)of_tables.batch;
  params.table_position = (uint32_t)of_tables.position;
  params.grad_table_batch = (uint32_t)of_grads.batch;
  params.grad_table_position = (uint32_t)of_grads.position;
  for (int i = 0; i < 2; ++i) params.grad_table[i] = w->grad_table[i] != NULL ? w->grad_table[i]->data : NULL;
  const uint32_t threads = (uint32_t)(shape.rows * shape.groups * ROPE_APPLY_FIXED_DIM / ROPE_APPLY_LANE);
  const uint32_t for_sums = w->plain ? 0 : threads * 2 * ROPE_APPLY_LANE * (uint32_t)sizeof(float);
  const uint32_t head_bytes = (uint32_t)(shape.rows * row_bytes * (w->plain ? 1 : 2));
  const uint32_t for_copies = shape.pipeline ? head_bytes * (uint32_t)(shape.groups * shape.depth) : 0;
  const rg_cuda_launch launch = {.kernel = kernel,
                                 .blocks = w->batches * params.tiles.count.divisor,
                                 .threads = threads,
                                 .shared_bytes = for_sums > for_copies ? for_sums : for_copies};
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

/* ---- rows in vectors ---- */

/* A batch of a tensor is within reach of offsets of 32 bits. NULL: of course. */
static bool has_short_strides(const rg_tensor *tensor) {
  if (tensor == NULL) return true;
  int64_t last = 0;
  for (int axis = 1; axis < tensor->rank; ++axis) {
    if (stride_of(tensor, axis) < 0) return false;
    last += (tensor->shape[axis] - 1) * tensor->stride[axis];
  }
  return (last + 1) * (int64_t)rg_dtype_size(tensor->dtype) <= UINT32_MAX;
}

static rope_apply_rows rows_of(const rg_tensor *tensor) {
  if (tensor == NULL) return (rope_apply_rows){0};
  const byte_strides strides = strides_of(tensor);
  return (rope_apply_rows){.data = tensor->data,
                           .batch = strides.batch,
                           .head = (uint32_t)strides.head,
                           .position = (uint32_t)strides.position};
}

/* -1: none is compiled for these dtypes. */
static int vectors_kernel(rg_dtype payload, rg_dtype table, bool interleaved, rope_apply_how how) {
#define X(of_payload, of_table)                                                 \
  if (payload == DTYPES_##of_payload && table == DTYPES_##of_table) {           \
    return VECTORS_##of_payload##_##of_table + STYLES * (int)how + interleaved; \
  }
  VECTORS_DTYPES(X)
#undef X
  return -1;
}

/* Of a grid along y and z. */
enum { MOST_BLOCKS = 65535 };

static bool suits_vectors(const work *w, bool sums_batch) {
  if (w->head_dim % ROPE_APPLY_LANE != 0 || w->rotary_dim % ROPE_APPLY_LANE != 0) return false;
  if (w->batches > MOST_BLOCKS || w->head_dim > MOST_BLOCKS) return false;
  for (int i = 0; i < 2; ++i) {
    const side_tensors *side = &w->side[i];
    if (side->heads > 0 &&
        !(has_short_strides(side->grad_y) && has_short_strides(side->x) && has_short_strides(side->grad_x))) {
      return false;
    }
    if (!has_short_strides(w->table[i]) || !has_short_strides(w->grad_table[i])) return false;
    if (!sums_batch) continue;
    if (w->grad_table[i] != NULL && !w->sums_batch[i]) return false;
    if (w->table[i] != NULL && w->table[i]->shape[0] > 1) return false;
  }
  return true;
}

static bool run_vectors(const work *w, const rg_cuda_call *call, rg_status *status) {
  const bool sums_batch = w->sums_batch[0] || w->sums_batch[1];
  if (!suits_vectors(w, sums_batch)) return false;
  const int64_t blocks_z = sums_batch ? 1 : w->batches;
  const rope_apply_vectors_sizes sizes = {
      .multiprocessors = rg_cuda_device_of(call)->multiprocessors,
      .positions = blocks_z * w->seq_len,
      .seq_len = w->seq_len,
      .heads = {w->side[0].heads, w->side[1].heads},
      .lanes = (w->table[0] != NULL ? w->head_dim : w->rotary_dim) / ROPE_APPLY_LANE,
      .sums_batch = sums_batch,
      .plain = w->plain};
  const rope_apply_vectors_shape shape = rope_apply_tune_vectors(&sizes);
  const int kernel = vectors_kernel(w->payload, w->tables, w->interleaved, shape.how);
  if (kernel < 0) return false;
  rope_apply_vectors_params params = {.seq_len = (uint32_t)w->seq_len,
                                      .lanes = (uint32_t)sizes.lanes,
                                      .pair_lanes = (uint32_t)(w->rotary_dim / ROPE_APPLY_LANE),
                                      .groups_of_q = (uint32_t)shape.groups[0],
                                      .batches = (uint32_t)(sums_batch ? w->batches : 1),
                                      .same_half = w->same_half};
  for (int i = 0; i < 2; ++i) {
    params.table[i] = rows_of(w->table[i]);
    params.grad_table[i] = rows_of(w->grad_table[i]);
    params.side[i] = (rope_apply_side){.grad_y = rows_of(w->side[i].grad_y),
                                       .x = rows_of(w->side[i].x),
                                       .grad_x = rows_of(w->side[i].grad_x),
                                       .heads = (uint32_t)w->side[i].heads,
                                       .groups = (uint32_t)shape.groups[i]};
  }
  const uint32_t groups = (uint32_t)(shape.groups[0] + shape.groups[1]);
  const uint32_t threads = (uint32_t)(shape.lanes * shape.rows) * groups;
  const size_t sum_bytes = shape.how == ROPE_APPLY_LONG ? sizeof(double) : sizeof(float);
  const rg_cuda_launch launch = {.kernel = kernel,
                                 .blocks = rg_divide_up(w->seq_len, shape.rows),
                                 .blocks_y = (uint32_t)rg_divide_up(sizes.lanes, shape.lanes),
                                 .blocks_z = (uint32_t)blocks_z,
                                 .threads = (uint32_t)shape.lanes,
                                 .threads_y = (uint32_t)shape.rows,
                                 .threads_z = groups,
                                 .shared_bytes = w->plain ? 0 : threads * 2 * ROPE_APPLY_LANE * (uint32_t)sum_bytes};
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

/* ---- anything ---- */

enum { GENERAL_LANES = 32 };

static rg_device_tensor device_tensor_of(const rg_tensor *tensor) {
  if (tensor == NULL) return (rg_device_tensor){0};
  rg_device_tensor made = rg_device_tensor_of(tensor);
  if (tensor->shape[0] == 1) made.stride[0] = 0; /* one table for every batch */
  return made;
}

static rg_status run_general(const work *w, const rg_cuda_call *call) {
  const int64_t pairs = w->rotary_dim / 2;
  const bool sums_batch = w->sums_batch[0] || w->sums_batch[1];
  rope_apply_general_params params = {.positions = (sums_batch ? 1 : w->batches) * w->seq_len,
                                      .batches = sums_batch ? w->batches : 1,
                                      .seq_len = w->seq_len,
                                      .rotary_dim = w->rotary_dim,
                                      .head_dim = w->head_dim,
                                      .lanes = GENERAL_LANES,
                                      .interleaved = w->interleaved,
                                      .same_half = w->same_half};
  while (params.lanes / 2 >= pairs) params.lanes /= 2;
  params.pair_chunks = rg_divide_up(pairs, params.lanes);
  if (w->table[0] != NULL) params.pass_chunks = rg_divide_up(w->head_dim - w->rotary_dim, params.lanes);
  for (int i = 0; i < 2; ++i) {
    params.side[i] = (rope_apply_general_side){.grad_y = device_tensor_of(w->side[i].grad_y),
                                               .x = device_tensor_of(w->side[i].x),
                                               .grad_x = device_tensor_of(w->side[i].grad_x),
                                               .heads = w->side[i].heads};
    params.table[i] = device_tensor_of(w->table[i]);
    params.grad_table[i] = device_tensor_of(w->grad_table[i]);
    params.sums_batch[i] = w->sums_batch[i];
  }
  const int64_t tasks = params.positions * (params.pair_chunks + params.pass_chunks);
  const rg_cuda_launch launch = {.kernel = w->payload == RG_F64 || w->tables == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, tasks),
                                 .threads = ROPE_APPLY_GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const work w = work_of(problem);
  const bool fits = w.heads > 0 && w.heads <= INT32_MAX && w.seq_len > 0 && w.seq_len <= INT32_MAX && w.batches > 0 &&
                    w.batches <= INT32_MAX / w.seq_len;
  bool vectors = fits && !call->general && w.payload != RG_DTYPE_NONE;
  for (int i = 0; i < 2 && vectors; ++i) {
    const side_tensors *side = &w.side[i];
    if (side->heads > 0) vectors = has_vectors(side->grad_y) && has_vectors(side->x) && has_vectors(side->grad_x);
    vectors = vectors && has_vectors(w.table[i]) && has_vectors(w.grad_table[i]);
  }
  rg_status status = RG_OK;
  if (vectors && (run_fixed(&w, call, &status) || run_vectors(&w, call, &status))) return status;
  return run_general(&w, call);
}

const rg_cuda_operator rg_rope_apply_backward_cuda = {
    .image = rg_rope_apply_image, .image_end = rg_rope_apply_image_end, .kernels = kernels, .run = run};
