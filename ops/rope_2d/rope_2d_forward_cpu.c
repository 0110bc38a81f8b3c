/* The forward pass of rope_2d on the CPU, built once per level. Bound by memory: 8 bytes an element in the suite's
 * dtypes, against one sine and cosine. Dense tensors are one long row cut among the threads; other layouts go row by
 * row, through small buffers where the last dimension is not contiguous. */
#include "ops/rope_2d/rope_2d_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/stream.h"
#include "src/simd/tables.h"

/* Elements staged at a time: three buffers of them stay in the first-level cache. */
enum { STAGE = 512 };

/* n elements of contiguous rows, n < RG_VF_WIDTH. */
RG_INLINE void do_part(rg_dtype T, const rg_real *theta, rg_tables to, int64_t i, int64_t n) {
  if (n == 0) return;
  rg_tables_store(T, to, i, rg_table_vectors_of(to, rg_vf_load_part(RG_REAL_DTYPE, theta + i, n)), n);
}

RG_INLINE void do_row(rg_dtype T, const rg_real *theta, rg_tables to, int64_t n, bool stream) {
  int64_t i = 0;
  if (stream) {
    i = rg_stream_head(T, to.cosine ? to.cosine : to.sine, n);
    do_part(T, theta, to, 0, i);
    if (rg_tables_aligned(T, rg_tables_from(T, to, i))) {
      for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
        rg_tables_stream(T, to, i, rg_table_vectors_of(to, rg_vf_load(RG_REAL_DTYPE, theta + i)));
      }
    }
  }
  for (; i + RG_VF_WIDTH <= n; i += RG_VF_WIDTH) {
    rg_tables_store(T, to, i, rg_table_vectors_of(to, rg_vf_load(RG_REAL_DTYPE, theta + i)), RG_VF_WIDTH);
  }
  do_part(T, theta, to, i, n - i);
}

typedef struct task {
  const rg_problem *problem;
  rg_dtype dtype; /* of the tables */
  bool stream;
  bool contiguous_rows;
} task;

/* The places of the wanted tables, so many elements after their first. */
RG_INLINE rg_tables tables_at(const rg_tensor *t, int64_t in_cos, int64_t in_sin) {
  return (rg_tables){.cosine = t[FORWARD_COS].dtype == RG_DTYPE_NONE ? NULL : rg_element(&t[FORWARD_COS], in_cos),
                     .sine = t[FORWARD_SIN].dtype == RG_DTYPE_NONE ? NULL : rg_element(&t[FORWARD_SIN], in_sin)};
}

/* Elements [begin, end) of dense tensors. */
static void dense_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_tensor *t = job->problem->tensor;
  const rg_real *theta = rg_element(&t[FORWARD_IDX_THETA], begin);
  const rg_tables to = tables_at(t, begin, begin);
  RG_WITH_DTYPE(job->dtype, T, do_row(T, theta, to, end - begin, job->stream));
  rg_stream_fence();
}

/* n elements from column d on of the rows that begin at `at`, through contiguous buffers. */
static void do_staged(const task *job, const int64_t *at, int64_t d, int64_t n) {
  const rg_tensor *t = job->problem->tensor;
  rg_real theta[STAGE], table[NUM_FORWARD_TENSORS][STAGE];
  const rg_tensor *from = &t[FORWARD_IDX_THETA];
  rg_row_gather(RG_REAL_DTYPE, from->data, at[FORWARD_IDX_THETA] + d * from->stride[2], from->stride[2], theta, n);
  do_row(RG_REAL_DTYPE, theta, (rg_tables){.cosine = table[FORWARD_COS], .sine = table[FORWARD_SIN]}, n, false);
  for (int k = FORWARD_COS; k <= FORWARD_SIN; ++k) {
    if (!rg_given(job->problem, k)) continue;
    rg_row_scatter(job->dtype, t[k].data, at[k] + d * t[k].stride[2], t[k].stride[2], table[k], n);
  }
}

/* Rows [begin, end) of the B*S rows. */
static void row_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_tensor *t = job->problem->tensor;
  const int64_t S = job->problem->dim[DIM_S], D = job->problem->dim[DIM_D];
  for (int64_t r = begin; r < end; ++r) {
    int64_t at[NUM_FORWARD_TENSORS];
    for (int k = 0; k < NUM_FORWARD_TENSORS; ++k) at[k] = r / S * t[k].stride[0] + r % S * t[k].stride[1];
    if (job->contiguous_rows) {
      const rg_real *theta = rg_element(&t[FORWARD_IDX_THETA], at[FORWARD_IDX_THETA]);
      const rg_tables to = tables_at(t, at[FORWARD_COS], at[FORWARD_SIN]);
      RG_WITH_DTYPE(job->dtype, T, do_row(T, theta, to, D, job->stream));
    } else {
      for (int64_t d = 0; d < D; d += STAGE) do_staged(job, at, d, D - d < STAGE ? D - d : STAGE);
    }
  }
  rg_stream_fence();
}

RG_CPU_KERNEL(rg_rope_2d_forward) {
  const rg_tensor *t = problem->tensor;
  const int64_t elements = rg_tensor_elements(&t[FORWARD_IDX_THETA]);
  rg_cost cost;
  problem->op->cost(problem, &cost);
  const int64_t bytes = cost.read_bytes + cost.write_bytes;
  task job = {.problem = problem,
              .dtype = t[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype,
              .stream = rg_stream_pays(cost.write_bytes),
              .contiguous_rows = true};
  bool dense = true;
  for (int k = 0; k < NUM_FORWARD_TENSORS; ++k) {
    if (!rg_given(problem, k)) continue;
    dense = dense && rg_tensor_is_dense(&t[k]);
    job.contiguous_rows = job.contiguous_rows && t[k].stride[2] == 1;
  }
  if (dense) {
    rg_parallel_ranges(resources->threads, elements, bytes, dense_range, &job);
  } else {
    rg_parallel_ranges(resources->threads, elements / problem->dim[DIM_D], bytes, row_range, &job);
  }
}
