/* The forward pass of rotary_embedding on the CPU, built once per level. Bound by what it writes, 8 bytes an element in
 * the suite's dtypes: the halves of a row repeat each other, so there is a sine and cosine for every other element only.
 * An element depends on no other, so rows are cut among the threads wherever it suits. */
#include <math.h>

#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/stream.h"
#include "src/simd/tables.h"

/* Frequencies worked on at a time, and so what is staged of a row: five buffers of them stay in the first-level cache. */
enum { STAGE = 512 };

/* A task's copy of up to STAGE frequencies. */
typedef struct frequencies {
  rg_real natural[STAGE];
  rg_real
      ordered[STAGE]; /* the first 2*RG_VF_WIDTH * n of them, pair of vectors by pair, as the tables' dtype has them */
  rg_real largest;    /* magnitude; a NaN may be passed over */
} frequencies;

typedef struct task {
  const rg_problem *problem;
  rg_real scaling;
  rg_dtype dtype; /* of the tables */
  bool contiguous_rows;
  bool stream; /* and both halves of every row are whole pairs of vectors that may be streamed */
} task;

/* The place of element [b, s, 0], in elements. */
RG_INLINE int64_t row_place(const rg_tensor *tensor, int64_t b, int64_t s) {
  return b * tensor->stride[0] + s * tensor->stride[1];
}

RG_INLINE void order_frequencies(rg_dtype T, frequencies *f, int64_t n) {
  for (int64_t j = 0; j + 2 * RG_VF_WIDTH <= n; j += 2 * RG_VF_WIDTH) {
    rg_vf a, b;
    rg_vf_load_two_like(rg_vf_two_splits(T), RG_REAL_DTYPE, f->natural + j, &a, &b);
    rg_vf_store(RG_REAL_DTYPE, f->ordered + j, a);
    rg_vf_store(RG_REAL_DTYPE, f->ordered + j + RG_VF_WIDTH, b);
  }
}

/* Frequencies [first, first + n) of batch b, for tables of dtype `tables`. */
static void read_frequencies(const rg_tensor *from, int64_t b, int64_t first, int64_t n, rg_dtype tables,
                             frequencies *f) {
  rg_row_gather(RG_REAL_DTYPE, from->data, row_place(from, b, first), from->stride[1], f->natural, n);
  RG_WITH_DTYPE(tables, T, order_frequencies(T, f, n));
  f->largest = 0;
  for (int64_t j = 0; j < n; ++j) {
    const rg_real magnitude = f->natural[j] < 0 ? -f->natural[j] : f->natural[j];
    if (magnitude > f->largest) f->largest = magnitude;
  }
}

/* Both halves of a row, contiguous. */
typedef struct halves {
  rg_tables first, second;
} halves;

/* Two vectors in the order of dtype T; `stream`: past the caches. */
RG_INLINE void put_two(rg_dtype T, bool stream, halves to, int64_t j, const rg_table_vectors *v) {
  const bool splits = rg_vf_two_splits(T);
  for (int k = 0; k < 2; ++k) {
    const rg_tables half = k == 0 ? to.first : to.second;
    if (stream) {
      if (half.angle) rg_vf_stream_two_like(splits, RG_REAL_DTYPE, half.angle + j, v[0].angle, v[1].angle);
      if (half.cosine) rg_vf_stream_two(T, rg_at(T, half.cosine, j), v[0].cosine, v[1].cosine);
      if (half.sine) rg_vf_stream_two(T, rg_at(T, half.sine, j), v[0].sine, v[1].sine);
    } else {
      if (half.angle) rg_vf_store_two_like(splits, RG_REAL_DTYPE, half.angle + j, v[0].angle, v[1].angle);
      if (half.cosine) rg_vf_store_two(T, rg_at(T, half.cosine, j), v[0].cosine, v[1].cosine);
      if (half.sine) rg_vf_store_two(T, rg_at(T, half.sine, j), v[0].sine, v[1].sine);
    }
  }
}

RG_INLINE rg_table_vectors small_vectors_of(rg_vf position, rg_vf scaling, rg_vf inv_freq) {
  rg_table_vectors v = {.angle = rg_vf_mul(position, inv_freq)};
  rg_vf_scaled_small_sincos(scaling, v.angle, &v.sine, &v.cosine);
  return v;
}

/* n frequencies of a position, none of whose angles is beyond RG_SINCOS_LIMIT. */
RG_INLINE void do_row(rg_dtype T, int64_t n, rg_real at, rg_real factor, const frequencies *f, halves to, bool stream) {
  const rg_vf position = rg_vf_set1(at), scaling = rg_vf_set1(factor);
  int64_t j = 0;
  for (; j + 2 * RG_VF_WIDTH <= n; j += 2 * RG_VF_WIDTH) {
    const rg_table_vectors v[2] = {
        small_vectors_of(position, scaling, rg_vf_load(RG_REAL_DTYPE, f->ordered + j)),
        small_vectors_of(position, scaling, rg_vf_load(RG_REAL_DTYPE, f->ordered + j + RG_VF_WIDTH))};
    put_two(T, stream, to, j, v);
  }
  for (; j < n; j += RG_VF_WIDTH) {
    const int64_t lanes = n - j < RG_VF_WIDTH ? n - j : RG_VF_WIDTH;
    const rg_vf inv_freq = rg_load_lanes(RG_REAL_DTYPE, f->natural + j, lanes);
    const rg_table_vectors v = small_vectors_of(position, scaling, inv_freq);
    rg_tables_store(T, to.first, j, v, lanes);
    rg_tables_store(T, to.second, j, v, lanes);
  }
}

/* The same for any angles. Rare, so it is kept out of the loops. */
static __attribute__((noinline, cold)) void do_row_of_any_angles(rg_dtype dtype, int64_t n, rg_real at, rg_real factor,
                                                                 const frequencies *f, halves to) {
  const rg_vf position = rg_vf_set1(at), scaling = rg_vf_set1(factor);
  RG_WITH_DTYPE(dtype, T, {
    for (int64_t j = 0; j < n; j += RG_VF_WIDTH) {
      const int64_t lanes = n - j < RG_VF_WIDTH ? n - j : RG_VF_WIDTH;
      const rg_vf inv_freq = rg_load_lanes(RG_REAL_DTYPE, f->natural + j, lanes);
      rg_table_vectors v = rg_table_vectors_of(to.first, rg_vf_mul(position, inv_freq));
      v.cosine = rg_vf_mul(v.cosine, scaling);
      v.sine = rg_vf_mul(v.sine, scaling);
      rg_tables_store(T, to.first, j, v, lanes);
      rg_tables_store(T, to.second, j, v, lanes);
    }
  });
}

/* Is every product of the position with a frequency at most RG_SINCOS_LIMIT in magnitude, or NaN? Rounding is
 * monotonous, so the largest says so for all. */
RG_INLINE bool are_small(rg_real position, const frequencies *f) {
  return fabs((double)(position * f->largest)) <= (double)RG_SINCOS_LIMIT;
}

static rg_real position_at(const rg_tensor *position_ids, int64_t b, int64_t s) {
  const void *at = rg_element(position_ids, row_place(position_ids, b, s));
  if (position_ids->dtype == RG_I64) return (rg_real) * (const int64_t *)at;
  if (position_ids->dtype == RG_I32) return (rg_real) * (const int32_t *)at;
  return *(const rg_real *)at;
}

RG_INLINE void *row_of(const rg_problem *problem, int k, int64_t b, int64_t s, int64_t column) {
  const rg_tensor *tensor = &problem->tensor[k];
  return rg_given(problem, k) ? rg_element(tensor, row_place(tensor, b, s) + column) : NULL;
}

/* Contiguous rows from a column on. */
RG_INLINE rg_tables tables_at(const rg_problem *problem, int64_t b, int64_t s, int64_t column) {
  return (rg_tables){.angle = row_of(problem, FORWARD_EMB, b, s, column),
                     .cosine = row_of(problem, FORWARD_COS, b, s, column),
                     .sine = row_of(problem, FORWARD_SIN, b, s, column)};
}

/* Columns [first, first + n) of either half of rows [s, s_end) of batch b. */
RG_INLINE void do_contiguous(rg_dtype T, const task *job, int64_t b, int64_t s, int64_t s_end, int64_t first, int64_t n,
                             const frequencies *f, bool stream) {
  const rg_problem *problem = job->problem;
  const int64_t half = problem->dim[DIM_D] / 2;
  for (; s < s_end; ++s) {
    const rg_real position = position_at(&problem->tensor[FORWARD_POSITION_IDS], b, s);
    const halves to = {tables_at(problem, b, s, first), tables_at(problem, b, s, half + first)};
    if (__builtin_expect(are_small(position, f), 1)) {
      do_row(T, n, position, job->scaling, f, to, stream);
    } else {
      do_row_of_any_angles(T, n, position, job->scaling, f, to);
    }
  }
}

/* The same through contiguous buffers, for a frequency order that is natural. */
static void do_staged(const task *job, int64_t b, int64_t s, int64_t first, int64_t n, const frequencies *f) {
  const rg_tensor *t = job->problem->tensor;
  const int64_t half = job->problem->dim[DIM_D] / 2;
  rg_real table[NUM_FORWARD_TENSORS][STAGE];
  const halves staged = {.first = {table[FORWARD_EMB], table[FORWARD_COS], table[FORWARD_SIN]}};
  do_row_of_any_angles(RG_REAL_DTYPE, n, position_at(&t[FORWARD_POSITION_IDS], b, s), job->scaling, f, staged);
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    if (!rg_given(job->problem, k)) continue;
    const int64_t stride = t[k].stride[2], at = row_place(&t[k], b, s) + first * stride;
    rg_row_scatter(t[k].dtype, t[k].data, at, stride, table[k], n);
    rg_row_scatter(t[k].dtype, t[k].data, at + half * stride, stride, table[k], n);
  }
}

/* Rows [s, s_end) of batch b. */
static void do_rows(const task *job, int64_t b, int64_t s, int64_t s_end) {
  const int64_t half = job->problem->dim[DIM_D] / 2;
  frequencies f;
  for (int64_t first = 0; first < half; first += STAGE) {
    const int64_t n = half - first < STAGE ? half - first : STAGE;
    read_frequencies(&job->problem->tensor[FORWARD_INV_FREQ], b, first, n, job->dtype, &f);
    if (!job->contiguous_rows) {
      for (int64_t i = s; i < s_end; ++i) do_staged(job, b, i, first, n, &f);
    } else if (job->stream) {
      RG_WITH_DTYPE(job->dtype, T, do_contiguous(T, job, b, s, s_end, first, n, &f, true));
    } else {
      RG_WITH_DTYPE(job->dtype, T, do_contiguous(T, job, b, s, s_end, first, n, &f, false));
    }
  }
}

/* Rows [begin, end) of the B*S rows, batch by batch. */
static void row_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const int64_t S = job->problem->dim[DIM_S];
  while (begin < end) {
    const int64_t b = begin / S, s = begin % S;
    const int64_t n = S - s < end - begin ? S - s : end - begin;
    do_rows(job, b, s, s + n);
    begin += n;
  }
  rg_stream_fence();
}

/* Whether both halves of every row of a tensor are whole pairs of vectors, aligned as streamed ones must be: a pair of
 * 16-bit vectors, which may be streamed as one, is as large as a vector of rg_real. */
static bool halves_aligned(const rg_tensor *tensor, int64_t half) {
  const int64_t pair = 2 * RG_VF_WIDTH;
  return half % pair == 0 && (uintptr_t)tensor->data % (RG_VF_WIDTH * sizeof(rg_real)) == 0 &&
         (tensor->shape[0] == 1 || tensor->stride[0] % pair == 0) &&
         (tensor->shape[1] == 1 || tensor->stride[1] % pair == 0);
}

RG_CPU_KERNEL(rg_rotary_embedding_forward) {
  const rg_tensor *t = problem->tensor;
  const rg_rotary_embedding_forward_args *args = problem->args;
  const int64_t half = problem->dim[DIM_D] / 2;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  task job = {
      .problem = problem,
      .scaling = (rg_real)rg_rotary_embedding_scaling(args->attention_scaling, t[FORWARD_INV_FREQ].dtype),
      .dtype = t[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype,
      .contiguous_rows = true,
      .stream = rg_stream_pays(cost.write_bytes),
  };
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    if (!rg_given(problem, k)) continue;
    job.contiguous_rows = job.contiguous_rows && t[k].stride[2] == 1;
    job.stream = job.stream && halves_aligned(&t[k], half);
  }
  rg_parallel_ranges(resources->threads, problem->dim[DIM_B] * problem->dim[DIM_S], cost.read_bytes + cost.write_bytes,
                     row_range, &job);
}
