/* rope_2d_walk.h: how both passes go over their tensors on the CPU, which all have the shape [B, S, D]. Dense tensors are
 * one long row, cut among the threads; other layouts go row by row, through small buffers where the last dimension is
 * not contiguous. */
#ifndef ROPEGRAD_OPS_ROPE_2D_WALK_H
#define ROPEGRAD_OPS_ROPE_2D_WALK_H

#include "ops/rope_2d/rope_2d_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/stream.h"

/* Elements staged at a time: the buffers of all tensors stay in the first-level cache. */
enum { STAGE = 512 };

/* The pass's own part. Both are given where tensor k's row begins, `at[k]` elements after its first. */
typedef struct walk walk;
struct walk {
  const rg_problem *problem;
  void (*do_contiguous)(const walk *w, const int64_t *at, int64_t n);
  void (*do_staged)(const walk *w, const int64_t *at, int64_t d, int64_t n); /* n <= STAGE elements from column d on */
  bool stream;                                                               /* write past the caches */
  bool contiguous_rows;
};

/* Elements [begin, end) of dense tensors. */
static void dense_range(void *arg, int64_t begin, int64_t end) {
  const walk *w = arg;
  int64_t at[RG_MAX_TENSORS];
  for (int k = 0; k < w->problem->op->num_tensors; ++k) at[k] = begin;
  w->do_contiguous(w, at, end - begin);
  rg_stream_fence();
}

/* Rows [begin, end) of the B*S rows. */
static void row_range(void *arg, int64_t begin, int64_t end) {
  const walk *w = arg;
  const rg_tensor *t = w->problem->tensor;
  const int64_t S = w->problem->dim[DIM_S], D = w->problem->dim[DIM_D];
  for (int64_t r = begin; r < end; ++r) {
    int64_t at[RG_MAX_TENSORS];
    for (int k = 0; k < w->problem->op->num_tensors; ++k) at[k] = r / S * t[k].stride[0] + r % S * t[k].stride[1];
    if (w->contiguous_rows) {
      w->do_contiguous(w, at, D);
    } else {
      for (int64_t d = 0; d < D; d += STAGE) w->do_staged(w, at, d, D - d < STAGE ? D - d : STAGE);
    }
  }
  rg_stream_fence();
}

static inline void walk_all(walk *w, const rg_cpu_resources *resources) {
  const rg_problem *problem = w->problem;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  const int64_t bytes = cost.read_bytes + cost.write_bytes;
  const int64_t rows = problem->dim[DIM_B] * problem->dim[DIM_S];
  bool dense = true;
  w->stream = rg_stream_pays(cost.write_bytes);
  w->contiguous_rows = true;
  for (int k = 0; k < problem->op->num_tensors; ++k) {
    if (!rg_given(problem, k)) continue;
    dense = dense && rg_tensor_is_dense(&problem->tensor[k]);
    w->contiguous_rows = w->contiguous_rows && problem->tensor[k].stride[2] == 1;
  }
  if (dense) {
    rg_parallel_ranges(resources->threads, rows * problem->dim[DIM_D], bytes, dense_range, w);
  } else {
    rg_parallel_ranges(resources->threads, rows, bytes, row_range, w);
  }
}

#endif
