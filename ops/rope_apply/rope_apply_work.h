/* What a call of the backward pass asks for, as its launchers see it. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_WORK_H
#define ROPEGRAD_OPS_ROPE_APPLY_WORK_H

#include "ops/rope_apply/rope_apply_spec.h"

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

static inline side_tensors side_of(const rg_problem *problem, int grad_y, int x, int grad_x, int dim, bool plain) {
  const rg_tensor *t = problem->tensor;
  if (plain && !rg_given(problem, grad_x)) return (side_tensors){0};
  return (side_tensors){.grad_y = &t[grad_y],
                        .x = plain ? NULL : &t[x],
                        .grad_x = rg_given(problem, grad_x) ? &t[grad_x] : NULL,
                        .heads = problem->dim[dim]};
}

static inline work work_of(const rg_problem *problem) {
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

#endif
