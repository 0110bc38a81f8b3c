/* The forward pass of rope_2d on the CPU, built once per level. Bound by memory: 8 bytes an element in the suite's
 * dtypes, against one sine and cosine. */
#include "ops/rope_2d/rope_2d_walk.h"
#include "src/simd/tables.h"

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

/* The dtype of the wanted tables. */
static rg_dtype table_dtype(const rg_problem *problem) {
  return problem->tensor[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype;
}

static void do_contiguous(const walk *w, const int64_t *at, int64_t n) {
  const rg_problem *problem = w->problem;
  const rg_tensor *t = problem->tensor;
  const rg_real *theta = rg_element(&t[FORWARD_IDX_THETA], at[FORWARD_IDX_THETA]);
  const rg_tables to = {
      .cosine = rg_given(problem, FORWARD_COS) ? rg_element(&t[FORWARD_COS], at[FORWARD_COS]) : NULL,
      .sine = rg_given(problem, FORWARD_SIN) ? rg_element(&t[FORWARD_SIN], at[FORWARD_SIN]) : NULL,
  };
  RG_WITH_DTYPE(table_dtype(problem), T, do_row(T, theta, to, n, w->stream));
}

static void do_staged(const walk *w, const int64_t *at, int64_t d, int64_t n) {
  const rg_tensor *t = w->problem->tensor;
  rg_real theta[STAGE], table[NUM_FORWARD_TENSORS][STAGE];
  const rg_tensor *from = &t[FORWARD_IDX_THETA];
  rg_row_gather(RG_REAL_DTYPE, from->data, at[FORWARD_IDX_THETA] + d * from->stride[2], from->stride[2], theta, n);
  do_row(RG_REAL_DTYPE, theta, (rg_tables){.cosine = table[FORWARD_COS], .sine = table[FORWARD_SIN]}, n, false);
  for (int k = FORWARD_COS; k <= FORWARD_SIN; ++k) {
    if (!rg_given(w->problem, k)) continue;
    rg_row_scatter(t[k].dtype, t[k].data, at[k] + d * t[k].stride[2], t[k].stride[2], table[k], n);
  }
}

RG_CPU_KERNEL(rg_rope_2d_forward) {
  walk_all(&(walk){.problem = problem, .do_contiguous = do_contiguous, .do_staged = do_staged}, resources);
}
