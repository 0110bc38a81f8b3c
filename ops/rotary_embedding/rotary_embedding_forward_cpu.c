/* The forward pass of rotary_embedding on the CPU, built once per level. Bound by what it writes, 8 bytes an element in
 * the suite's dtypes: the halves of a row repeat each other, so there is a sine and cosine for every other element only.
 * An element depends on no other, so rows are cut among the threads wherever it suits. */
#include "ops/rotary_embedding/rotary_embedding_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/stream.h"
#include "src/simd/tables.h"

/* Frequencies staged at a time: four buffers of them stay in the first-level cache. */
enum { STAGE = 512 };

typedef struct task {
  const rg_problem *problem;
  rg_real scaling;
  rg_dtype dtype; /* of the tables */
  bool contiguous_rows;
  bool stream; /* and both halves of every row are whole vectors that may be streamed */
} task;

/* The place of element [b, s, 0], in elements. */
RG_INLINE int64_t row_place(const rg_tensor *tensor, int64_t b, int64_t s) {
  return b * tensor->stride[0] + s * tensor->stride[1];
}

RG_INLINE rg_table_vectors vectors_of(rg_tables wanted, rg_vf position, rg_vf scaling, rg_vf inv_freq) {
  rg_table_vectors v = rg_table_vectors_of(wanted, rg_vf_mul(position, inv_freq));
  v.cosine = rg_vf_mul(v.cosine, scaling);
  v.sine = rg_vf_mul(v.sine, scaling);
  return v;
}

/* `half` frequencies of a position, to both halves of contiguous rows. */
RG_INLINE void do_row(rg_dtype T, int64_t half, rg_vf position, rg_vf scaling, const rg_real *inv_freq, rg_tables first,
                      rg_tables second, bool stream) {
  int64_t j = 0;
  if (stream) {
    for (; j + RG_VF_WIDTH <= half; j += RG_VF_WIDTH) {
      const rg_table_vectors v = vectors_of(first, position, scaling, rg_vf_load(RG_REAL_DTYPE, inv_freq + j));
      rg_tables_stream(T, first, j, v);
      rg_tables_stream(T, second, j, v);
    }
    return;
  }
  for (; j + RG_VF_WIDTH <= half; j += RG_VF_WIDTH) {
    const rg_table_vectors v = vectors_of(first, position, scaling, rg_vf_load(RG_REAL_DTYPE, inv_freq + j));
    rg_tables_store(T, first, j, v, RG_VF_WIDTH);
    rg_tables_store(T, second, j, v, RG_VF_WIDTH);
  }
  if (j < half) {
    const rg_vf part = rg_vf_load_part(RG_REAL_DTYPE, inv_freq + j, half - j);
    const rg_table_vectors v = vectors_of(first, position, scaling, part);
    rg_tables_store(T, first, j, v, half - j);
    rg_tables_store(T, second, j, v, half - j);
  }
}

static rg_real position_at(const rg_tensor *position_ids, int64_t b, int64_t s) {
  const void *at = rg_element(position_ids, row_place(position_ids, b, s));
  if (position_ids->dtype == RG_I64) return (rg_real) * (const int64_t *)at;
  if (position_ids->dtype == RG_I32) return (rg_real) * (const int32_t *)at;
  return *(const rg_real *)at;
}

RG_INLINE void *row_of(const rg_problem *problem, int k, int64_t b, int64_t s) {
  const rg_tensor *tensor = &problem->tensor[k];
  return rg_given(problem, k) ? rg_element(tensor, row_place(tensor, b, s)) : NULL;
}

RG_INLINE rg_tables row_tables(const rg_problem *problem, int64_t b, int64_t s) {
  return (rg_tables){.angle = row_of(problem, FORWARD_EMB, b, s),
                     .cosine = row_of(problem, FORWARD_COS, b, s),
                     .sine = row_of(problem, FORWARD_SIN, b, s)};
}

/* Rows [s, s_end) of batch b, of D/2 = `half` frequencies. */
RG_INLINE void do_rows(rg_dtype T, int64_t half, const task *job, int64_t b, int64_t s, int64_t s_end) {
  const rg_tensor *t = job->problem->tensor;
  const rg_real *inv_freq = rg_element(&t[FORWARD_INV_FREQ], row_place(&t[FORWARD_INV_FREQ], b, 0));
  const rg_vf scaling = rg_vf_set1(job->scaling);
  for (; s < s_end; ++s) {
    const rg_tables first = row_tables(job->problem, b, s);
    do_row(T, half, rg_vf_set1(position_at(&t[FORWARD_POSITION_IDS], b, s)), scaling, inv_freq, first,
           rg_tables_from(T, first, half), job->stream);
  }
}

/* Compiled apart for the usual D = 128: the number of vectors is known. */
enum { USUAL_HALF = 64 };

RG_INLINE void do_contiguous(rg_dtype T, const task *job, int64_t b, int64_t s, int64_t s_end) {
  const int64_t half = job->problem->dim[DIM_D] / 2;
  if (half == USUAL_HALF) {
    do_rows(T, USUAL_HALF, job, b, s, s_end);
  } else {
    do_rows(T, half, job, b, s, s_end);
  }
}

/* Row (b, s) through contiguous buffers. */
static void do_staged_row(const task *job, int64_t b, int64_t s) {
  const rg_tensor *t = job->problem->tensor;
  const int64_t half = job->problem->dim[DIM_D] / 2;
  const rg_vf position = rg_vf_set1(position_at(&t[FORWARD_POSITION_IDS], b, s));
  rg_real inv_freq[STAGE], table[NUM_FORWARD_TENSORS][STAGE];
  const rg_tables staged = {.angle = table[FORWARD_EMB], .cosine = table[FORWARD_COS], .sine = table[FORWARD_SIN]};
  for (int64_t j = 0; j < half; j += STAGE) {
    const int64_t n = half - j < STAGE ? half - j : STAGE;
    rg_row_gather(RG_REAL_DTYPE, t[FORWARD_INV_FREQ].data, row_place(&t[FORWARD_INV_FREQ], b, j),
                  t[FORWARD_INV_FREQ].stride[1], inv_freq, n);
    do_row(RG_REAL_DTYPE, n, position, rg_vf_set1(job->scaling), inv_freq, staged, (rg_tables){0}, false);
    for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
      if (!rg_given(job->problem, k)) continue;
      const int64_t stride = t[k].stride[2], first = row_place(&t[k], b, s) + j * stride;
      rg_row_scatter(t[k].dtype, t[k].data, first, stride, table[k], n);
      rg_row_scatter(t[k].dtype, t[k].data, first + half * stride, stride, table[k], n);
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
    begin += n;
    if (job->contiguous_rows) {
      RG_WITH_DTYPE(job->dtype, T, do_contiguous(T, job, b, s, s + n));
    } else {
      for (int64_t i = s; i < s + n; ++i) do_staged_row(job, b, i);
    }
  }
  rg_stream_fence();
}

/* Whether both halves of every row of a tensor are whole vectors, aligned as streamed ones must be. */
static bool halves_aligned(const rg_tensor *tensor, int64_t half) {
  const int64_t vector = RG_VF_WIDTH;
  return half % vector == 0 && rg_stream_aligned(tensor->dtype, tensor->data) &&
         (tensor->shape[0] == 1 || tensor->stride[0] % vector == 0) &&
         (tensor->shape[1] == 1 || tensor->stride[1] % vector == 0);
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
      .contiguous_rows = t[FORWARD_INV_FREQ].stride[1] == 1 || half == 1,
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
