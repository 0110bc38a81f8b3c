/* rope_2d on the CPU, built once per level. Bound by memory: 12 bytes an element in the suite's dtypes, against one
 * sine and cosine. */
#include "ops/rope_2d/rope_2d_walk.h"
#include "src/simd/rows.h"
#include "src/simd/sincos.h"
#include "src/simd/vec.h"

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

static void do_contiguous(const walk *w, const int64_t *at, int64_t n) {
  const rg_tensor *t = w->problem->tensor;
  const row_pointers row = {rg_element(&t[GRAD_COS], at[GRAD_COS]), rg_element(&t[GRAD_SIN], at[GRAD_SIN]),
                            rg_element(&t[IDX_THETA], at[IDX_THETA]),
                            rg_element(&t[GRAD_IDX_THETA], at[GRAD_IDX_THETA])};
  RG_WITH_DTYPE(t[GRAD_COS].dtype, T, do_row(T, row, n, w->stream));
}

static void gather(const rg_tensor *tensor, int64_t at, int64_t d, rg_real *to, int64_t n) {
  rg_row_gather(tensor->dtype, tensor->data, at + d * tensor->stride[2], tensor->stride[2], to, n);
}

static void do_staged(const walk *w, const int64_t *at, int64_t d, int64_t n) {
  rg_real grad_cos[STAGE], grad_sin[STAGE], theta[STAGE], out[STAGE];
  const rg_tensor *t = w->problem->tensor, *to = &t[GRAD_IDX_THETA];
  gather(&t[GRAD_COS], at[GRAD_COS], d, grad_cos, n);
  gather(&t[GRAD_SIN], at[GRAD_SIN], d, grad_sin, n);
  gather(&t[IDX_THETA], at[IDX_THETA], d, theta, n);
  do_row(RG_REAL_DTYPE, (row_pointers){grad_cos, grad_sin, theta, out}, n, false);
  rg_row_scatter(RG_REAL_DTYPE, to->data, at[GRAD_IDX_THETA] + d * to->stride[2], to->stride[2], out, n);
}

RG_CPU_KERNEL(rg_rope_2d_backward) {
  walk_all(&(walk){.problem = problem, .do_contiguous = do_contiguous, .do_staged = do_staged}, resources);
}
