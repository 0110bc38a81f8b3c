/* rope_apply's forward pass on CUDA: which kernel, launched how. */
#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "ops/rope_apply/rope_apply_forward_tune.h"
#include "ops/rope_apply/rope_apply_layout.h"
#include "ops/rope_apply/rope_apply_spec.h"

extern const unsigned char rg_rope_apply_forward_image[], rg_rope_apply_forward_image_end[];
extern const rg_cuda_operator rg_rope_apply_forward_cuda;

/* ---- the kernels ---- */

/* What the tuned kernels are compiled for: dtypes of q and k and of the tables, bytes of a vector of q or k. */
#define DTYPES_f32 RG_F32
#define DTYPES_bf16 RG_BF16
#define DTYPES_f16 RG_F16
#define VECTORS(X)  \
  X(f32, f32, 16)   \
  X(bf16, bf16, 16) \
  X(bf16, f32, 16) X(f16, f16, 16) X(f16, f32, 16) X(bf16, bf16, 8) X(bf16, f32, 8) X(f16, f16, 8) X(f16, f32, 8)

/* Of each: treated as used once or not, in either style. */
enum { VARIANTS = 4 };

enum {
  ANY_GENERAL,
  F64_GENERAL,
#define X(payload, table, bytes)         \
  VECTORS_##payload##_##table##_##bytes, \
      LAST_##payload##_##table##_##bytes = VECTORS_##payload##_##table##_##bytes + VARIANTS - 1,
  VECTORS(X)
#undef X
};

static const char *const kernels[] = {
    "rope_apply_forward_any__general",
    "rope_apply_forward_f64__general",
#define STYLED(payload, table, how)                    \
  "rope_apply_forward_" #payload "_" #table "__" #how, \
      "rope_apply_forward_" #payload "_" #table "__" #how "_interleaved",
#define X(payload, table, bytes) STYLED(payload, table, bytes##_once) STYLED(payload, table, bytes##_kept)
    VECTORS(X)
#undef X
#undef STYLED
        NULL,
};

/* -1: none is compiled for these dtypes. */
static int vectors_kernel(rg_dtype payload, rg_dtype table, int64_t bytes, bool interleaved, bool once) {
  const int variant = (once ? 0 : 2) + interleaved;
#define X(of_payload, of_table, of_bytes)                                                  \
  if (payload == DTYPES_##of_payload && table == DTYPES_##of_table && bytes == of_bytes) { \
    return VECTORS_##of_payload##_##of_table##_##of_bytes + variant;                       \
  }
  VECTORS(X)
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

/* ---- rows in vectors ---- */

static bool suits(const rg_tensor *tensor, int64_t elements) {
  return has_vectors(tensor, elements, ROPE_APPLY_FORWARD_VECTOR_BYTES) && has_short_strides(tensor);
}

/* Do vectors of `elements` divide the rows, and all tensors consist of them? */
static bool suits_vectors(const work *w, int64_t elements) {
  if (w->rotary_dim % (2 * elements) != 0 || w->columns % (2 * elements) != 0) return false;
  for (int i = 0; i < 2; ++i) {
    if (w->side[i].heads > 0 && !(suits(w->side[i].x, elements) && suits(w->side[i].y, elements))) return false;
  }
  return suits(w->cosine, elements) && suits(w->sine, elements);
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
  const rg_dtype payload = first->x->dtype;
  const int64_t size = (int64_t)rg_dtype_size(payload);
  const rope_apply_forward_sizes sizes = {
      .cache_bytes = rg_cuda_device_of(call)->cache_bytes,
      .written_bytes = w->batches * w->seq_len * (w->side[0].heads + w->side[1].heads) * w->columns * size,
      .seq_len = w->seq_len,
      .lanes = w->columns / (2 * elements)};
  const rope_apply_forward_shape shape = rope_apply_forward_tune(&sizes);
  const int kernel = vectors_kernel(payload, w->cosine->dtype, elements * size, w->interleaved, shape.once);
  const int64_t threads = shape.groups * shape.rows * sizes.lanes;
  if (kernel < 0 || threads > ROPE_APPLY_FORWARD_THREADS) return false;
  rope_apply_forward_params params = {.seq_len = (uint32_t)w->seq_len,
                                      .pair_lanes = (uint32_t)(w->rotary_dim / (2 * elements)),
                                      .cosine = rows_of(w->cosine),
                                      .sine = rows_of(w->sine)};
  for (int i = 0; i < 2; ++i) {
    params.side[i] = (rope_apply_forward_side){.x = rows_of(w->side[i].x),
                                               .y = rows_of(w->side[i].y),
                                               .heads = (uint32_t)w->side[i].heads,
                                               .groups = (uint32_t)rg_divide_up(w->side[i].heads, shape.heads)};
  }
  params.groups_of_q = params.side[0].groups;
  params.groups = params.side[0].groups + params.side[1].groups;
  const int64_t tiles = rg_divide_up(w->seq_len, shape.rows), chunks = rg_divide_up(params.groups, shape.groups);
  params.heads_inside = tiles <= RG_CUDA_MAX_BLOCKS_YZ && (heads_inside(first) || chunks > RG_CUDA_MAX_BLOCKS_YZ);
  if (w->batches > RG_CUDA_MAX_BLOCKS_YZ || (chunks > RG_CUDA_MAX_BLOCKS_YZ && !params.heads_inside)) return false;
  const rg_cuda_launch launch = {.kernel = kernel,
                                 .blocks = params.heads_inside ? chunks : tiles,
                                 .blocks_y = (uint32_t)(params.heads_inside ? tiles : chunks),
                                 .blocks_z = (uint32_t)w->batches,
                                 .threads = (uint32_t)sizes.lanes,
                                 .threads_y = (uint32_t)shape.rows,
                                 .threads_z = (uint32_t)shape.groups};
  *status = rg_cuda_launch_kernel(call, &launch, &params);
  return true;
}

/* ---- anything ---- */

enum { GENERAL_LANES = 32 };

static rg_status run_general(const work *w, const side_tensors *side, const rg_cuda_call *call) {
  const int64_t pairs = w->rotary_dim / 2;
  rope_apply_forward_general_params params = {.x = rg_device_tensor_of(side->x),
                                              .y = rg_device_tensor_of(side->y),
                                              .cosine = rg_device_tensor_of(w->cosine),
                                              .sine = rg_device_tensor_of(w->sine),
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
