/* rope_2d on the CPU, built once per level. Bound by memory: 12 bytes an element in the suite's dtypes, against one
 * sine and cosine. Dense tensors are one long row cut among the threads; other layouts go row by row, through small
 * buffers where the last dimension is not contiguous. */
#include "ops/rope_2d/rope_2d_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/rows.h"
#include "src/simd/sincos.h"
#include "src/simd/stream.h"
#include "src/simd/vec.h"

/* Elements staged at a time: four buffers of them stay in the first-level cache. */
enum { STAGE = 512 };

/* Contiguous rows; the gradients are of the dtype T that goes with them. */
typedef struct row_pointers {
  const void *grad_cos, *grad_sin;
  const rg_real *idx_theta;
  rg_real *grad_idx_theta;
} row_pointers;

RG_INLINE rg_vf vector_at(rg_dtype T, row_pointers row, int64_t i) {
  return rg_vf_grad_angle(rg_vf_load(T, rg_at_const(T, row.grad_cos, i)),
                          rg_vf_load(T, rg_at_const(T, row.grad_sin, i)), rg_vf_load(RG_REAL_DTYPE, row.idx_theta + i));
}

/* Fewer elements than a vector has. */
RG_INLINE void do_part(rg_dtype T, row_pointers row, int64_t i, int64_t n) {
  if (n == 0) return;
  const rg_vf v = rg_vf_grad_angle(rg_vf_load_part(T, rg_at_const(T, row.grad_cos, i), n),
                                   rg_vf_load_part(T, rg_at_const(T, row.grad_sin, i), n),
                                   rg_vf_load_part(RG_REAL_DTYPE, row.idx_theta + i, n));
  rg_vf_store_part(RG_REAL_DTYPE, row.grad_idx_theta + i, v, n);
}

RG_INLINE void do_row(rg_dtype T, row_pointers row, int64_t n, bool stream) {
  int64_t i = 0;
  if (stream) {
    i = rg_stream_head(RG_REAL_DTYPE, row.grad_idx_theta, n);
    do_part(T, row, 0, i);
    for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
      rg_vf_stream(RG_REAL_DTYPE, row.grad_idx_theta + i, vector_at(T, row, i));
    }
  }
  for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
    rg_vf_store(RG_REAL_DTYPE, row.grad_idx_theta + i, vector_at(T, row, i));
  }
  do_part(T, row, i, n - i);
}

/* n elements of row (b, s) from column d on, through contiguous buffers. */
static void do_staged(const rg_tensor *t, row_pointers row, int64_t d, int64_t n) {
  rg_real grad_cos[STAGE], grad_sin[STAGE], theta[STAGE], out[STAGE];
  const rg_dtype dtype = t[GRAD_COS].dtype;
  rg_row_gather(dtype, row.grad_cos, d * t[GRAD_COS].stride[2], t[GRAD_COS].stride[2], grad_cos, n);
  rg_row_gather(dtype, row.grad_sin, d * t[GRAD_SIN].stride[2], t[GRAD_SIN].stride[2], grad_sin, n);
  rg_row_gather(RG_REAL_DTYPE, row.idx_theta, d * t[IDX_THETA].stride[2], t[IDX_THETA].stride[2], theta, n);
  do_row(RG_REAL_DTYPE, (row_pointers){grad_cos, grad_sin, theta, out}, n, false);
  rg_row_scatter(RG_REAL_DTYPE, row.grad_idx_theta, d * t[GRAD_IDX_THETA].stride[2], t[GRAD_IDX_THETA].stride[2], out,
                 n);
}

typedef struct task {
  const rg_problem *problem;
  bool stream;
  bool contiguous_rows;
} task;

/* Elements [begin, end) of dense tensors. */
static void dense_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_tensor *t = job->problem->tensor;
  const row_pointers row = {rg_element(&t[GRAD_COS], begin), rg_element(&t[GRAD_SIN], begin),
                            rg_element(&t[IDX_THETA], begin), rg_element(&t[GRAD_IDX_THETA], begin)};
  RG_WITH_DTYPE(t[GRAD_COS].dtype, T, do_row(T, row, end - begin, job->stream));
  rg_stream_fence();
}

/* Rows [begin, end) of the B*S rows. */
static void row_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_tensor *t = job->problem->tensor;
  const int64_t S = job->problem->dim[DIM_S], D = job->problem->dim[DIM_D];
  for (int64_t r = begin; r < end; ++r) {
    int64_t at[NUM_BACKWARD_TENSORS];
    for (int k = 0; k < NUM_BACKWARD_TENSORS; ++k) at[k] = r / S * t[k].stride[0] + r % S * t[k].stride[1];
    const row_pointers row = {rg_element(&t[GRAD_COS], at[GRAD_COS]), rg_element(&t[GRAD_SIN], at[GRAD_SIN]),
                              rg_element(&t[IDX_THETA], at[IDX_THETA]),
                              rg_element(&t[GRAD_IDX_THETA], at[GRAD_IDX_THETA])};
    if (job->contiguous_rows) {
      RG_WITH_DTYPE(t[GRAD_COS].dtype, T, do_row(T, row, D, job->stream));
    } else {
      for (int64_t d = 0; d < D; d += STAGE) do_staged(t, row, d, D - d < STAGE ? D - d : STAGE);
    }
  }
  rg_stream_fence();
}

RG_CPU_KERNEL(rg_rope_2d_backward) {
  const rg_tensor *t = problem->tensor;
  const int64_t elements = rg_tensor_elements(&t[GRAD_IDX_THETA]);
  rg_cost cost;
  problem->op->cost(problem, &cost);
  const int64_t bytes = cost.read_bytes + cost.write_bytes;
  task job = {.problem = problem, .stream = rg_stream_pays(cost.write_bytes), .contiguous_rows = true};
  bool dense = true;
  for (int k = 0; k < NUM_BACKWARD_TENSORS; ++k) {
    dense = dense && rg_tensor_is_dense(&t[k]);
    job.contiguous_rows = job.contiguous_rows && t[k].stride[2] == 1;
  }
  if (dense) {
    rg_parallel_ranges(resources->threads, elements, bytes, dense_range, &job);
  } else {
    rg_parallel_ranges(resources->threads, elements / problem->dim[DIM_D], bytes, row_range, &job);
  }
}
