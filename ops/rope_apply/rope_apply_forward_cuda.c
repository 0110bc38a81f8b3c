/* rope_apply's forward pass on CUDA: which kernel, launched how. */
#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "ops/rope_apply/rope_apply_forward_tune.h"
#include "ops/rope_apply/rope_apply_spec.h"
#include "src/cuda/launch.h"

extern const unsigned char rg_rope_apply_forward_image[], rg_rope_apply_forward_image_end[];
extern const rg_cuda_operator rg_rope_apply_forward_cuda;

/* ---- the kernels ---- */

/* The dtypes that the tuned kernels are compiled for, of q and k and of the tables. */
#define DTYPES_f32 RG_F32
#define DTYPES_bf16 RG_BF16
#define DTYPES_f16 RG_F16
#define WIDE_DTYPES(X) X(f32, f32) X(bf16, bf16) X(bf16, f32) X(f16, f16) X(f16, f32)
#define NARROW_DTYPES(X) X(bf16, bf16) X(bf16, f32) X(f16, f16) X(f16, f32)

enum {
  ANY_GENERAL,
  F64_GENERAL,
#define X(payload, table) WIDE_##payload##_##table, WIDE_INTERLEAVED_##payload##_##table,
  WIDE_DTYPES(X)
#undef X
#define X(payload, table) NARROW_##payload##_##table, NARROW_INTERLEAVED_##payload##_##table,
      NARROW_DTYPES(X)
#undef X
          FIRST_FIXED /* then those of rope_apply_forward_tune.h */
};

static const char *const kernels[] = {
    [ANY_GENERAL] = "rope_apply_forward_any__general",
    [F64_GENERAL] = "rope_apply_forward_f64__general",
#define X(payload, table)                                                          \
  [WIDE_##payload##_##table] = "rope_apply_forward_" #payload "_" #table "__wide", \
  [WIDE_INTERLEAVED_##payload##_##table] = "rope_apply_forward_" #payload "_" #table "__wide_interleaved",
    WIDE_DTYPES(X)
#undef X
#define X(payload, table)                                                              \
  [NARROW_##payload##_##table] = "rope_apply_forward_" #payload "_" #table "__narrow", \
  [NARROW_INTERLEAVED_##payload##_##table] = "rope_apply_forward_" #payload "_" #table "__narrow_interleaved",
        NARROW_DTYPES(X)
#undef X
#define X(payload, table, rows, groups, unroll, once) \
  "rope_apply_forward_" #payload "_" #table "__fixed_" #rows "x" #groups "x" #unroll "x" #once,
            ROPE_APPLY_FORWARD_FIXED_KERNELS(X)
#undef X
                NULL,
};

static const struct {
  rg_dtype payload, table;
  rope_apply_forward_shape shape;
} fixed_kernels[] = {
#define X(payload, table, row_count, group_count, how_many, used_once) \
  {DTYPES_##payload, DTYPES_##table, {.rows = row_count, .groups = group_count, .unroll = how_many, .once = used_once}},
    ROPE_APPLY_FORWARD_FIXED_KERNELS(X)
#undef X
};

/* -1: there is none. */
static int fixed_kernel(rg_dtype payload, rg_dtype table, rope_apply_forward_shape shape) {
  for (int k = 0; k < (int)(sizeof fixed_kernels / sizeof *fixed_kernels); ++k) {
    const rope_apply_forward_shape *has = &fixed_kernels[k].shape;
    if (fixed_kernels[k].payload == payload && fixed_kernels[k].table == table && has->rows == shape.rows &&
        has->groups == shape.groups && has->unroll == shape.unroll && has->once == shape.once) {
      return FIRST_FIXED + k;
    }
  }
  return -1;
}

/* -1: none is compiled for these dtypes. */
static int vectors_kernel(rg_dtype payload, rg_dtype table, bool narrow, bool interleaved) {
#define X(of_payload, of_table)                                                                       \
  if (!narrow && payload == DTYPES_##of_payload && table == DTYPES_##of_table) {                      \
    return interleaved ? WIDE_INTERLEAVED_##of_payload##_##of_table : WIDE_##of_payload##_##of_table; \
  }
  WIDE_DTYPES(X)
#undef X
#define X(of_payload, of_table)                                                                           \
  if (narrow && payload == DTYPES_##of_payload && table == DTYPES_##of_table) {                           \
    return interleaved ? NARROW_INTERLEAVED_##of_payload##_##of_table : NARROW_##of_payload##_##of_table; \
  }
  NARROW_DTYPES(X)
#undef X
  return -1;
}

/* ---- what a call asks for ---- */

/* q's side or k's. */
typedef struct side_tensors {
  const rg_tensor *x, *y;
  int64_t heads; /* 0 where it is not wanted */
} side_tensors;

typedef struct work {
  side_tensors side[2];
  const rg_tensor *cosine, *sine;
  int64_t batches, seq_len;
  int64_t columns; /* of a row that are written: head_dim, or in place rotary_dim */
  int64_t rotary_dim;
  bool interleaved;
} work;

static side_tensors side_of(const rg_problem *problem, int x, int y, int heads) {
  if (!rg_given(problem, y)) return (side_tensors){0};
  return (side_tensors){.x = &problem->tensor[x], .y = &problem->tensor[y], .heads = problem->dim[heads]};
}

static work work_of(const rg_problem *problem) {
  const rg_rope_apply_forward_args *args = problem->args;
  return (work){.side = {side_of(problem, FORWARD_Q, FORWARD_Q_EMBED, DIM_HQ),
                         side_of(problem, FORWARD_K, FORWARD_K_EMBED, DIM_HK)},
                .cosine = &problem->tensor[FORWARD_COS],
                .sine = &problem->tensor[FORWARD_SIN],
                .batches = problem->dim[DIM_B],
                .seq_len = problem->dim[DIM_S],
                .columns = problem->dim[args->in_place ? DIM_R : DIM_D],
                .rotary_dim = problem->dim[DIM_R],
                .interleaved = args->style == RG_STYLE_INTERLEAVED};
}

/* An axis of one element, or none, has no stride to speak of. */
static int64_t stride_of(const rg_tensor *tensor, int axis) {
  return tensor->shape[axis] > 1 ? tensor->stride[axis] : 0;
}

/* ---- rows in vectors ---- */

/* Are its rows vectors of `elements` one after the other, aligned to their size or to 16 bytes? */
static bool has_vectors(const rg_tensor *tensor, int64_t elements) {
  const int last = tensor->rank - 1;
  const int64_t bytes = elements * (int64_t)rg_dtype_size(tensor->dtype);
  const int64_t alignment = bytes < ROPE_APPLY_FORWARD_VECTOR_BYTES ? bytes : ROPE_APPLY_FORWARD_VECTOR_BYTES;
  if (tensor->stride[last] != 1 || (int64_t)((uintptr_t)tensor->data % (uintptr_t)alignment) != 0) return false;
  for (int axis = 0; axis < last; ++axis) {
    if (stride_of(tensor, axis) * (int64_t)rg_dtype_size(tensor->dtype) % alignment != 0) return false;
  }
  return true;
}

/* Do vectors of `elements` divide the rows, and all tensors consist of them? */
static bool suits_vectors(const work *w, int64_t elements) {
  if (w->rotary_dim % (2 * elements) != 0 || w->columns % (2 * elements) != 0) return false;
  for (int i = 0; i < 2; ++i) {
    if (w->side[i].heads > 0 && !(has_vectors(w->side[i].x, elements) && has_vectors(w->side[i].y, elements)))
      return false;
  }
  return has_vectors(w->cosine, elements) && has_vectors(w->sine, elements);
}

static rope_apply_forward_rows rows_of(const rg_tensor *tensor) {
  if (tensor == NULL) return (rope_apply_forward_rows){0};
  const int64_t size = (int64_t)rg_dtype_size(tensor->dtype);
  const bool has_heads = tensor->rank == 4;
  return (rope_apply_forward_rows){.data = tensor->data,
                                   .batch = size * stride_of(tensor, 0),
                                   .head = has_heads ? size * stride_of(tensor, 1) : 0,
                                   .position = size * stride_of(tensor, has_heads ? 2 : 1)};
}

/* Do the heads of a position lie closer together than its positions, as in [B, S, H, D]? */
static bool heads_inside(const side_tensors *side) {
  const int64_t head = stride_of(side->x, 1), position = stride_of(side->x, 2);
  return (head < 0 ? -head : head) < (position < 0 ? -position : position);
}

/* Whether one of the kernels for vectors of `elements` serves; it is launched then. The sides have one dtype. */
static bool run_vectors(const work *w, int64_t elements, const rg_cuda_call *call, rg_status *status) {
  if (!suits_vectors(w, elements)) return false;
  const side_tensors *first = &w->side[w->side[0].heads > 0 ? 0 : 1];
  const rg_dtype payload = first->x->dtype, table = w->cosine->dtype;
  const int64_t heads = w->side[0].heads + w->side[1].heads, lanes = w->columns / (2 * elements);
  const bool narrow = elements * (int64_t)rg_dtype_size(payload) < ROPE_APPLY_FORWARD_VECTOR_BYTES;
  int64_t rows, groups, unroll;
  int kernel = -1;
  if (!narrow && !w->interleaved && w->columns == ROPE_APPLY_FORWARD_FIXED_DIM && w->rotary_dim == w->columns) {
    const rope_apply_forward_shape shape = rope_apply_forward_tune(w->batches, w->seq_len, payload != RG_F32);
    rows = shape.rows, groups = shape.groups, unroll = shape.unroll;
    kernel = fixed_kernel(payload, table, shape);
  }
  if (kernel < 0) {
    if (lanes > ROPE_APPLY_FORWARD_THREADS) return false;
    const rope_apply_forward_vectors_shape shape = rope_apply_forward_tune_vectors(
        w->batches * w->seq_len, w->seq_len, heads, lanes, ROPE_APPLY_FORWARD_THREADS, ROPE_APPLY_FORWARD_UNROLL);
    rows = shape.rows, groups = shape.groups, unroll = ROPE_APPLY_FORWARD_UNROLL;
    kernel = vectors_kernel(payload, table, narrow, w->interleaved);
  }
  if (kernel < 0) return false;
  const int64_t tiles = rg_divide_up(w->seq_len, rows), chunks = rg_divide_up(heads, groups * unroll);
  if (tiles * chunks > INT32_MAX / w->batches) return false;
  const bool chunks_inside = heads_inside(first);
  const rope_apply_forward_params params = {
      .side = {{rows_of(w->side[0].x), rows_of(w->side[0].y)}, {rows_of(w->side[1].x), rows_of(w->side[1].y)}},
      .cosine = rows_of(w->cosine),
      .sine = rows_of(w->sine),
      .heads_of_q = (uint32_t)w->side[0].heads,
      .heads = (uint32_t)heads,
      .seq_len = (uint32_t)w->seq_len,
      .inner = rg_divider_of(chunks_inside ? chunks : tiles),
      .outer = rg_divider_of(chunks_inside ? tiles : chunks),
      .chunks_inside = chunks_inside,
      .lanes = rg_divider_of(lanes),
      .rows = rg_divider_of(rows),
      .groups = (uint32_t)groups,
      .pair_lanes = (uint32_t)(w->rotary_dim / (2 * elements))};
  const rg_cuda_launch launch = {
      .kernel = kernel, .blocks = w->batches * tiles * chunks, .threads = (uint32_t)(rows * groups * lanes)};
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

/* ---- anything ---- */

enum { GENERAL_LANES = 32 };

static rg_device_tensor table_of(const rg_tensor *tensor) {
  rg_device_tensor made = rg_device_tensor_of(tensor);
  if (tensor->shape[0] == 1) made.stride[0] = 0; /* one table for every batch */
  return made;
}

static rg_status run_general(const work *w, const side_tensors *side, const rg_cuda_call *call) {
  const int64_t pairs = w->rotary_dim / 2;
  rope_apply_forward_general_params params = {.x = rg_device_tensor_of(side->x),
                                              .y = rg_device_tensor_of(side->y),
                                              .cosine = table_of(w->cosine),
                                              .sine = table_of(w->sine),
                                              .heads = side->heads,
                                              .positions = w->batches * w->seq_len,
                                              .seq_len = w->seq_len,
                                              .rotary_dim = w->rotary_dim,
                                              .head_dim = w->columns,
                                              .lanes = GENERAL_LANES,
                                              .interleaved = w->interleaved};
  while (params.lanes / 2 >= pairs) params.lanes /= 2;
  params.pair_chunks = rg_divide_up(pairs, params.lanes);
  params.pass_chunks = rg_divide_up(w->columns - w->rotary_dim, params.lanes);
  const int64_t tasks = params.positions * (params.pair_chunks + params.pass_chunks);
  const rg_cuda_launch launch = {.kernel = side->x->dtype == RG_F64 ? F64_GENERAL : ANY_GENERAL,
                                 .blocks = rg_cuda_cap_blocks(call, tasks),
                                 .threads = ROPE_APPLY_FORWARD_GENERAL_THREADS};
  return rg_cuda_launch_kernel(call, &launch, &params);
}

/* One or both sides, by the widest vectors that suit. */
static bool run_tuned(const work *w, const rg_cuda_call *call, rg_status *status) {
  const side_tensors *first = &w->side[w->side[0].heads > 0 ? 0 : 1];
  const int64_t wide = ROPE_APPLY_FORWARD_VECTOR_BYTES / (int64_t)rg_dtype_size(first->x->dtype);
  return run_vectors(w, wide, call, status) || run_vectors(w, wide / 2, call, status);
}

static rg_status run_side(const work *w, int which, const rg_cuda_call *call, bool tuned) {
  work alone = *w;
  alone.side[1 - which] = (side_tensors){0};
  rg_status status = RG_OK;
  if (w->side[which].heads == 0 || (tuned && run_tuned(&alone, call, &status))) return status;
  return run_general(&alone, &alone.side[which], call);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const work w = work_of(problem);
  const int64_t heads = w.side[0].heads + w.side[1].heads;
  if (heads == 0 || w.batches == 0 || w.seq_len == 0) return RG_OK;
  const bool tuned = !call->general && heads <= INT32_MAX && w.seq_len <= INT32_MAX && w.batches <= INT32_MAX;
  const bool together = w.side[0].heads > 0 && w.side[1].heads > 0 && w.side[0].x->dtype == w.side[1].x->dtype;
  rg_status status = RG_OK;
  if (tuned && together && run_tuned(&w, call, &status)) return status;
  status = run_side(&w, 0, call, tuned);
  return status != RG_OK ? status : run_side(&w, 1, call, tuned);
}

const rg_cuda_operator rg_rope_apply_forward_cuda = {
    .image = rg_rope_apply_forward_image, .image_end = rg_rope_apply_forward_image_end, .kernels = kernels, .run = run};
