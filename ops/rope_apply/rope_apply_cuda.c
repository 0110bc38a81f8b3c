/* rope_apply on CUDA: which kernel, launched how. */
#include "ops/rope_apply/rope_apply_fixed_launch.h"

extern const unsigned char rg_rope_apply_image[], rg_rope_apply_image_end[];
extern const rg_cuda_operator rg_rope_apply_backward_cuda;

/* ---- rows in vectors ---- */

static bool is_short(const rg_tensor *tensor) { return tensor == NULL || has_short_strides(tensor); }

static bool suits_vectors(const work *w, bool sums_batch) {
  if (w->head_dim % ROPE_APPLY_LANE != 0 || w->rotary_dim % ROPE_APPLY_LANE != 0) return false;
  if (w->batches > RG_CUDA_MAX_BLOCKS_YZ || w->head_dim > RG_CUDA_MAX_BLOCKS_YZ) return false;
  for (int i = 0; i < 2; ++i) {
    const side_tensors *side = &w->side[i];
    if (side->heads > 0 && !(is_short(side->grad_y) && is_short(side->x) && is_short(side->grad_x))) return false;
    if (!is_short(w->table[i]) || !is_short(w->grad_table[i])) return false;
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
  return tensor == NULL ? (rg_device_tensor){0} : rg_device_tensor_of(tensor);
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

/* A tensor that is given is made of vectors. */
static bool suits(const rg_tensor *tensor) {
  return tensor == NULL || has_vectors(tensor, ROPE_APPLY_VECTOR, INT64_MAX);
}

static rg_status run(const rg_problem *problem, const rg_cuda_call *call) {
  const work w = work_of(problem);
  const bool fits = w.heads > 0 && w.heads <= INT32_MAX && w.seq_len > 0 && w.seq_len <= INT32_MAX && w.batches > 0 &&
                    w.batches <= INT32_MAX / w.seq_len;
  bool vectors = fits && !call->general && w.payload != RG_DTYPE_NONE;
  for (int i = 0; i < 2 && vectors; ++i) {
    const side_tensors *side = &w.side[i];
    if (side->heads > 0) vectors = suits(side->grad_y) && suits(side->x) && suits(side->grad_x);
    vectors = vectors && suits(w.table[i]) && suits(w.grad_table[i]);
  }
  rg_status status = RG_OK;
  if (vectors && (run_fixed(&w, call, &status) || run_vectors(&w, call, &status))) return status;
  return run_general(&w, call);
}

const rg_cuda_operator rg_rope_apply_backward_cuda = {
    .image = rg_rope_apply_image, .image_end = rg_rope_apply_image_end, .kernels = kernels, .run = run};
