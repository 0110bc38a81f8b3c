/* rotary_embedding on the CPU, built once per level. A row (b, s) is one dot product over the D/2 frequencies, done by
 * one thread in an order that depends on D alone. Bound by memory, if only just: a row of the suite is 64 sines and
 * cosines for 768 bytes read and 4 written. */
#include <math.h>

#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/prefetch.h"
#include "src/simd/rows.h"
#include "src/simd/sincos.h"
#include "src/simd/vec.h"

/* Rows worked on side by side, so that the sines of one fill the waits of the other. */
enum { ROWS = 2 };

/* Frequencies summed in rg_real: each lane adds 16 terms. Longer rows add such blocks in rg_wide, so that rounding
 * errors do not grow with D. Also what is staged at a time. */
enum { BLOCK = 16 * RG_VF_WIDTH };

/* How far ahead rows are prefetched, in frequencies of 12 bytes each in the suite's dtypes. The hardware foresees these
 * rows badly, for of emb they use every other half. MIDDLE, whole rows into the second-level cache: more lines can be
 * on their way there than to the first level, and of lines asked for so early the hardware fetches fewer neighbours,
 * the other halves of emb. NEAR, whole rows from there into the first-level cache, where they stay until their turn.
 * FAR, the first line of a row: a new page is then looked up before the lines on it are asked for, which would have
 * to wait. */
enum { NEAR = 256, MIDDLE = 1024, FAR = 4096 };

/* What frequency j of a row needs besides the frequency itself: the two halves of the gradients, of the dtype T that
 * goes with them, and its angle. All contiguous. */
typedef struct half_rows {
  const void *grad_cos[2], *grad_sin[2];
  const rg_real *emb;
} half_rows;

/* From a row to one further on: in rows, and in bytes modulo 2^64, for strides may be negative, and of any size where S
 * is 1. All 0: to the row itself. */
typedef struct row_distance {
  int64_t rows;
  uintptr_t grad_cos, grad_sin, emb;
} row_distance;

typedef struct rows_ahead {
  row_distance near, middle, far;
} rows_ahead;

/* As many rows on as hold about `frequencies` of them; longer rows need no help and give 0. */
RG_INLINE row_distance distance_of(rg_dtype T, const rg_problem *problem, int64_t frequencies) {
  const rg_tensor *t = problem->tensor;
  const int64_t half = problem->dim[DIM_D] / 2;
  const int64_t rows = (frequencies + half / 2) / half;
  return (row_distance){.rows = rows,
                        .grad_cos = (uintptr_t)rows * (uintptr_t)t[GRAD_COS].stride[1] * RG_SIZE(T),
                        .grad_sin = (uintptr_t)rows * (uintptr_t)t[GRAD_SIN].stride[1] * RG_SIZE(T),
                        .emb = (uintptr_t)rows * (uintptr_t)t[EMB].stride[1] * sizeof(rg_real)};
}

/* With `left` rows to go: nothing past the last one, where memory may not be mapped and looking it up costs most. */
RG_INLINE row_distance within(row_distance distance, int64_t left) {
  return distance.rows < left ? distance : (row_distance){0};
}

RG_INLINE void prefetch(rg_cache_level level, const void *row, uintptr_t distance, int64_t offset, int64_t bytes) {
  rg_prefetch(level, (uintptr_t)row + distance + (uintptr_t)offset, bytes);
}

/* What a vector at frequency j reads, but of a later row. */
RG_INLINE void prefetch_vector(rg_dtype T, rg_cache_level level, const half_rows *row, row_distance to, int64_t j) {
  const int64_t pair_bytes = 2 * (int64_t)RG_SIZE(T); /* the two halves of a gradient follow each other */
  prefetch(level, row->grad_cos[0], to.grad_cos, j * pair_bytes, RG_VF_WIDTH * pair_bytes);
  prefetch(level, row->grad_sin[0], to.grad_sin, j * pair_bytes, RG_VF_WIDTH * pair_bytes);
  prefetch(level, row->emb, to.emb, j * (int64_t)sizeof(rg_real), RG_VF_WIDTH * (int64_t)sizeof(rg_real));
}

/* At width 1 the arithmetic takes far longer than the memory, so nothing is gained. */
RG_INLINE void prefetch_vectors(rg_dtype T, const half_rows *row, const rows_ahead *ahead, int64_t j) {
  if (RG_VF_WIDTH == 1) return;
  prefetch_vector(T, RG_SECOND_LEVEL, row, ahead->middle, j);
  prefetch_vector(T, RG_FIRST_LEVEL, row, ahead->near, j);
}

/* The gradients and the angles of a vector at frequency j, or of the first n lanes of one. */
typedef struct row_vector {
  rg_vf grad_cos, grad_sin, emb;
} row_vector;

RG_INLINE rg_vf load_both(rg_dtype T, const void *const half[2], int64_t j) {
  return rg_vf_add(rg_vf_load(T, rg_at_const(T, half[0], j)), rg_vf_load(T, rg_at_const(T, half[1], j)));
}

RG_INLINE row_vector load_vector(rg_dtype T, const half_rows *row, int64_t j) {
  return (row_vector){load_both(T, row->grad_cos, j), load_both(T, row->grad_sin, j),
                      rg_vf_load(RG_REAL_DTYPE, row->emb + j)};
}

RG_INLINE rg_vf load_both_part(rg_dtype T, const void *const half[2], int64_t j, int64_t n) {
  return rg_vf_add(rg_vf_load_part(T, rg_at_const(T, half[0], j), n),
                   rg_vf_load_part(T, rg_at_const(T, half[1], j), n));
}

RG_INLINE row_vector load_part(rg_dtype T, const half_rows *row, int64_t j, int64_t n) {
  return (row_vector){load_both_part(T, row->grad_cos, j, n), load_both_part(T, row->grad_sin, j, n),
                      rg_vf_load_part(RG_REAL_DTYPE, row->emb + j, n)};
}

RG_INLINE rg_vf add_terms(rg_vf sum, rg_vf inv_freq, row_vector v) {
  return rg_vf_fma(inv_freq, rg_vf_grad_small_angle(v.grad_cos, v.grad_sin, v.emb), sum);
}

RG_INLINE rg_vf add_terms_of_any_angles(rg_vf sum, rg_vf inv_freq, row_vector v) {
  return rg_vf_fma(inv_freq, rg_vf_grad_angle(v.grad_cos, v.grad_sin, v.emb), sum);
}

/* The lanes of add_block for a row that has huge angles. Rare, so it is kept out of the loops. */
static __attribute__((noinline, cold)) rg_vf add_huge_angles(rg_dtype dtype, const half_rows *row,
                                                             const rg_real *inv_freq, int64_t j, int64_t end) {
  rg_vf lanes = rg_vf_zero();
  RG_WITH_DTYPE(dtype, T, {
    for (; j + RG_VF_WIDTH <= end; j += RG_VF_WIDTH) {
      lanes = add_terms_of_any_angles(lanes, rg_vf_load(RG_REAL_DTYPE, inv_freq + j), load_vector(T, row, j));
    }
    if (j < end) {
      lanes = add_terms_of_any_angles(lanes, rg_vf_load_part(RG_REAL_DTYPE, inv_freq + j, end - j),
                                      load_part(T, row, j, end - j));
    }
  });
  return lanes;
}

/* Adds frequencies [begin, end), BLOCK at most, of `rows` rows to their sums. */
RG_INLINE void add_block(rg_dtype T, int rows, const half_rows *row, const rg_real *inv_freq, const rows_ahead *ahead,
                         int64_t begin, int64_t end, rg_wide *sum) {
  rg_vf lanes[ROWS], largest[ROWS]; /* largest angles, by magnitude */
  int64_t j = begin;
  for (int r = 0; r < rows; ++r) lanes[r] = largest[r] = rg_vf_zero();
  for (; j + RG_VF_WIDTH <= end; j += RG_VF_WIDTH) {
    for (int r = 0; r < rows; ++r) {
      prefetch_vectors(T, &row[r], ahead, j);
      const row_vector v = load_vector(T, &row[r], j);
      lanes[r] = add_terms(lanes[r], rg_vf_load(RG_REAL_DTYPE, inv_freq + j), v);
      largest[r] = rg_vf_max_abs(largest[r], v.emb);
    }
  }
  for (int r = 0; r < rows && j < end; ++r) {
    prefetch_vectors(T, &row[r], ahead, j);
    const row_vector v = load_part(T, &row[r], j, end - j);
    lanes[r] = add_terms(lanes[r], rg_vf_load_part(RG_REAL_DTYPE, inv_freq + j, end - j), v);
    largest[r] = rg_vf_max_abs(largest[r], v.emb);
  }
  for (int r = 0; r < rows; ++r) {
    /* A NaN that was passed over is in the sum. */
    if (__builtin_expect(rg_vf_any_beyond(largest[r], RG_SINCOS_LIMIT), 0)) {
      lanes[r] = add_huge_angles(T, &row[r], inv_freq, begin, end);
    }
    sum[r] += (rg_wide)rg_vf_sum(lanes[r]);
  }
}

typedef struct task {
  const rg_problem *problem;
  double scaling;
  bool contiguous_rows;
} task;

/* The place of element [b, s, 0], in elements. */
RG_INLINE int64_t row_place(const rg_tensor *tensor, int64_t b, int64_t s) {
  return b * tensor->stride[0] + s * tensor->stride[1];
}

/* The sum of row (b, s) one double at a time: for sums that float32 cannot hold although the scaled result may fit, and
 * for inputs that are not finite. Rare, so it is kept out of the loops. */
static __attribute__((noinline, cold)) double sum_in_double(const rg_problem *problem, int64_t b, int64_t s) {
  const rg_tensor *t = problem->tensor;
  const int64_t half = problem->dim[DIM_D] / 2;
  double sum = 0.0;
  for (int64_t j = 0; j < half; ++j) {
    double grad[2];
    for (int k = GRAD_COS; k <= GRAD_SIN; ++k) {
      const int64_t first = row_place(&t[k], b, s) + j * t[k].stride[2];
      grad[k] = rg_dtype_read(t[k].dtype, t[k].data, first) +
                rg_dtype_read(t[k].dtype, t[k].data, first + half * t[k].stride[2]);
    }
    const double theta = rg_dtype_read(t[EMB].dtype, t[EMB].data, row_place(&t[EMB], b, s) + j * t[EMB].stride[2]);
    sum += rg_dtype_read(t[INV_FREQ].dtype, t[INV_FREQ].data, row_place(&t[INV_FREQ], b, j)) *
           (grad[GRAD_SIN] * cos(theta) - grad[GRAD_COS] * sin(theta));
  }
  return sum;
}

RG_INLINE void finish_row(const task *job, int64_t b, int64_t s, rg_wide sum) {
  const rg_tensor *out = &job->problem->tensor[GRAD_POSITION_IDS];
  if (__builtin_expect(!isfinite(sum), 0)) sum = sum_in_double(job->problem, b, s);
  ((rg_real *)out->data)[row_place(out, b, s)] = (rg_real)(job->scaling * sum);
}

/* Rows s, s+1, ... of batch b, `rows` of them, their last dimensions contiguous. */
RG_INLINE void do_rows(rg_dtype T, int rows, int64_t half, const task *job, const rows_ahead *ahead, int64_t b,
                       int64_t s) {
  const rg_tensor *t = job->problem->tensor;
  const rg_real *inv_freq = (const rg_real *)t[INV_FREQ].data + row_place(&t[INV_FREQ], b, 0);
  half_rows row[ROWS];
  rg_wide sum[ROWS] = {0};
  for (int r = 0; r < rows; ++r) {
    const void *grad_cos = rg_at_const(T, t[GRAD_COS].data, row_place(&t[GRAD_COS], b, s + r));
    const void *grad_sin = rg_at_const(T, t[GRAD_SIN].data, row_place(&t[GRAD_SIN], b, s + r));
    row[r] = (half_rows){.grad_cos = {grad_cos, rg_at_const(T, grad_cos, half)},
                         .grad_sin = {grad_sin, rg_at_const(T, grad_sin, half)},
                         .emb = (const rg_real *)t[EMB].data + row_place(&t[EMB], b, s + r)};
    prefetch(RG_FIRST_LEVEL, row[r].grad_cos[0], ahead->far.grad_cos, 0, RG_CACHE_LINE_BYTES);
    prefetch(RG_FIRST_LEVEL, row[r].grad_sin[0], ahead->far.grad_sin, 0, RG_CACHE_LINE_BYTES);
    prefetch(RG_FIRST_LEVEL, row[r].emb, ahead->far.emb, 0, RG_CACHE_LINE_BYTES);
  }
  for (int64_t j = 0; j < half; j += BLOCK) {
    add_block(T, rows, row, inv_freq, ahead, j, half - j < BLOCK ? half : j + BLOCK, sum);
  }
  for (int r = 0; r < rows; ++r) finish_row(job, b, s + r, sum[r]);
}

/* Rows [s, s_end) of batch b, of D/2 = `half` frequencies; `after` more rows follow in later batches. */
RG_INLINE void do_rows_of(rg_dtype T, int64_t half, const task *job, int64_t b, int64_t s, int64_t s_end,
                          int64_t after) {
  const rows_ahead most = {distance_of(T, job->problem, NEAR), distance_of(T, job->problem, MIDDLE),
                           distance_of(T, job->problem, FAR)};
  for (; s + ROWS <= s_end; s += ROWS) {
    const int64_t left = s_end - s - (ROWS - 1) + after;
    const rows_ahead ahead = {within(most.near, left), within(most.middle, left), within(most.far, left)};
    do_rows(T, ROWS, half, job, &ahead, b, s);
  }
  for (; s < s_end; ++s) do_rows(T, 1, half, job, &(rows_ahead){0}, b, s);
}

/* Compiled apart for the usual D = 128: no part of a vector is left over, and the number of vectors is known. */
enum { USUAL_HALF = 64 };

RG_INLINE void do_contiguous(rg_dtype T, const task *job, int64_t b, int64_t s, int64_t s_end, int64_t after) {
  const int64_t half = job->problem->dim[DIM_D] / 2;
  if (half == USUAL_HALF) {
    do_rows_of(T, USUAL_HALF, job, b, s, s_end, after);
  } else {
    do_rows_of(T, half, job, b, s, s_end, after);
  }
}

/* Row (b, s) through contiguous buffers. */
static void do_staged_row(const task *job, int64_t b, int64_t s) {
  const rg_tensor *t = job->problem->tensor;
  const int64_t half = job->problem->dim[DIM_D] / 2;
  rg_real gradient[2][2][BLOCK], emb[BLOCK], inv_freq[BLOCK];
  const half_rows staged = {
      {gradient[GRAD_COS][0], gradient[GRAD_COS][1]}, {gradient[GRAD_SIN][0], gradient[GRAD_SIN][1]}, emb};
  rg_wide sum = 0;
  for (int64_t j = 0; j < half; j += BLOCK) {
    const int64_t n = half - j < BLOCK ? half - j : BLOCK;
    for (int k = GRAD_COS; k <= GRAD_SIN; ++k) {
      const int64_t stride = t[k].stride[2], place = row_place(&t[k], b, s);
      rg_row_gather(t[k].dtype, t[k].data, place + j * stride, stride, gradient[k][0], n);
      rg_row_gather(t[k].dtype, t[k].data, place + (half + j) * stride, stride, gradient[k][1], n);
    }
    rg_row_gather(RG_REAL_DTYPE, t[EMB].data, row_place(&t[EMB], b, s) + j * t[EMB].stride[2], t[EMB].stride[2], emb,
                  n);
    rg_row_gather(RG_REAL_DTYPE, t[INV_FREQ].data, row_place(&t[INV_FREQ], b, j), t[INV_FREQ].stride[1], inv_freq, n);
    add_block(RG_REAL_DTYPE, 1, &staged, inv_freq, &(rows_ahead){0}, 0, n, &sum);
  }
  finish_row(job, b, s, sum);
}

/* Rows [begin, end) of the B*S rows, batch by batch. */
static void row_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const int64_t S = job->problem->dim[DIM_S];
  while (begin < end) {
    const int64_t b = begin / S, s = begin % S;
    const int64_t n = S - s < end - begin ? S - s : end - begin;
    begin += n;
    if (job->contiguous_rows) {
      RG_WITH_DTYPE(job->problem->tensor[GRAD_COS].dtype, T, do_contiguous(T, job, b, s, s + n, end - begin));
    } else {
      for (int64_t i = s; i < s + n; ++i) do_staged_row(job, b, i);
    }
  }
}

RG_CPU_KERNEL(rg_rotary_embedding_backward) {
  const rg_tensor *t = problem->tensor;
  const rg_rotary_embedding_backward_args *args = problem->args;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  task job = {
      .problem = problem,
      .scaling = rg_rotary_embedding_scaling(args->attention_scaling, t[EMB].dtype),
      .contiguous_rows = t[GRAD_COS].stride[2] == 1 && t[GRAD_SIN].stride[2] == 1 && t[EMB].stride[2] == 1 &&
                         (t[INV_FREQ].stride[1] == 1 || problem->dim[DIM_D] == 2),
  };
  rg_parallel_ranges(resources->threads, rg_tensor_elements(&t[GRAD_POSITION_IDS]), cost.read_bytes + cost.write_bytes,
                     row_range, &job);
}
