/* The forward pass of vision_rotary on the CPU, built once per level. Bound by what it writes, 12 bytes an element in
 * the suite's dtypes.
 *
 * Dense tensors are worked off in periods: the few rows whose elements are a whole number of vectors, whatever D is, so
 * that every vector is whole and aligned. One may span two rows; tables say which frequency and which of the period's
 * positions make each of its angles. Both halves of a row are computed, although they agree: that hides behind the
 * stores, and shifting half a row by part of a vector would not be free either. */
#include "ops/vision_rotary/vision_rotary_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/stream.h"
#include "src/simd/tables.h"

enum {
  MAX_COLUMNS = 64,   /* of the Q columns: the most of the dense way, and what is staged at a time */
  BLOCK_PERIODS = 16, /* whose positions are read at once, long before they are looked up */
  MAX_PERIOD_ROWS = RG_VF_WIDTH > QUARTERS ? RG_VF_WIDTH / QUARTERS : 1, /* at D = 4 */
  MAX_PERIOD = MAX_PERIOD_ROWS * QUARTERS * MAX_COLUMNS,
};
_Static_assert(POSITION_AXES *MAX_PERIOD_ROWS <= RG_VF_WIDTH || RG_VF_WIDTH == 1, "a lookup reaches all positions");

typedef struct task {
  const rg_problem *problem;
  rg_dtype dtype; /* of the tables */
  bool stream;
  int64_t period_rows;
  /* Of an element of a period. */
  rg_real inv_freq[MAX_PERIOD];
  int32_t position_of[MAX_PERIOD];
} task;

/* n elements of a period, to rows that begin with it. */
RG_INLINE void do_period(rg_dtype T, const task *job, const rg_real *position, rg_tables to, int64_t n, bool stream) {
  for (int64_t i = 0; i < n; i += RG_VF_WIDTH) {
    const rg_vf inv_freq = rg_vf_load(RG_REAL_DTYPE, job->inv_freq + i);
    const rg_vf angle = rg_vf_mul(rg_vf_lookup(position, job->position_of + i), inv_freq);
    const rg_table_vectors v = rg_table_vectors_of(to, angle);
    if (stream && n - i >= RG_VF_WIDTH) {
      rg_tables_stream(T, to, i, v);
    } else {
      rg_tables_store(T, to, i, v, n - i < RG_VF_WIDTH ? n - i : RG_VF_WIDTH);
    }
  }
}

static void read_positions(const rg_tensor *pos_ids, int64_t row, int64_t rows, rg_real *position) {
  const int64_t *from = rg_element(pos_ids, row * pos_ids->stride[0]);
  for (int64_t r = 0; r < rows; ++r, from += pos_ids->stride[0]) {
    position[POSITION_AXES * r] = (rg_real)from[0];
    position[POSITION_AXES * r + 1] = (rg_real)from[pos_ids->stride[1]];
  }
}

RG_INLINE void *dense_at(const rg_problem *problem, int k, int64_t element) {
  return rg_given(problem, k) ? rg_element(&problem->tensor[k], element) : NULL;
}

/* Rows [row, row_end) of dense tensors; `row` begins a period. */
RG_INLINE void do_dense(rg_dtype T, const task *job, int64_t row, int64_t row_end, bool stream) {
  const int64_t D = job->problem->dim[DIM_D], block_rows = BLOCK_PERIODS * job->period_rows;
  rg_real position[POSITION_AXES * MAX_PERIOD_ROWS * BLOCK_PERIODS + RG_VF_WIDTH] = {0};
  const rg_tables first = {.angle = dense_at(job->problem, FORWARD_EMB, row * D),
                           .cosine = dense_at(job->problem, FORWARD_COS, row * D),
                           .sine = dense_at(job->problem, FORWARD_SIN, row * D)};
  int64_t done = 0; /* elements */
  for (; row < row_end; row += block_rows) {
    const int64_t rows = row_end - row < block_rows ? row_end - row : block_rows;
    read_positions(&job->problem->tensor[FORWARD_POS_IDS], row, rows, position);
    for (int64_t r = 0; r < rows; r += job->period_rows) {
      const int64_t n = (rows - r < job->period_rows ? rows - r : job->period_rows) * D;
      do_period(T, job, position + POSITION_AXES * r, rg_tables_from(T, first, done), n, stream);
      done += n;
    }
  }
}

/* Periods [begin, end). */
static void period_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const int64_t P = job->problem->dim[DIM_P], row = begin * job->period_rows;
  const int64_t row_end = end * job->period_rows < P ? end * job->period_rows : P;
  if (job->stream) {
    RG_WITH_DTYPE(job->dtype, T, do_dense(T, job, row, row_end, true));
    rg_stream_fence();
  } else {
    RG_WITH_DTYPE(job->dtype, T, do_dense(T, job, row, row_end, false));
  }
}

static void run_dense(const rg_problem *problem, const rg_cpu_resources *resources, const rg_cost *cost) {
  const rg_tensor *inv_freq = &problem->tensor[FORWARD_INV_FREQ];
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  task job; /* no initialiser: it would clear the tables, kilobytes that a small call would have to fetch first */
  job.problem = problem;
  job.dtype = problem->tensor[rg_given(problem, FORWARD_COS) ? FORWARD_COS : FORWARD_SIN].dtype;
  job.stream = rg_stream_pays(cost->write_bytes);
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    const rg_tensor *to = &problem->tensor[k];
    if (rg_given(problem, k)) job.stream = job.stream && rg_stream_aligned(to->dtype, to->data);
  }
  job.period_rows = 1;
  while (job.period_rows * QUARTERS * Q % RG_VF_WIDTH != 0) job.period_rows *= 2;
  int32_t piece = 0;
  for (int64_t i = 0; i < job.period_rows * QUARTERS * Q; i += Q, ++piece) {
    rg_row_gather(RG_REAL_DTYPE, inv_freq->data, 0, inv_freq->stride[0], job.inv_freq + i, Q);
    for (int64_t j = 0; j < Q; ++j) {
      job.position_of[i + j] = piece / QUARTERS * POSITION_AXES + piece % POSITION_AXES;
    }
  }
  rg_parallel_ranges(resources->threads, (P + job.period_rows - 1) / job.period_rows,
                     cost->read_bytes + cost->write_bytes, period_range, &job);
}

/* Columns [first, first + n) of the Q, of one patch: two angles each, for either of two columns of a row. */
static void do_staged(const rg_problem *problem, int64_t patch, int64_t first, int64_t n, const rg_real *inv_freq) {
  const rg_tensor *t = problem->tensor;
  const int64_t Q = problem->dim[DIM_D] / QUARTERS;
  rg_real position[POSITION_AXES], table[NUM_FORWARD_TENSORS][MAX_COLUMNS];
  const rg_tables staged = {.angle = table[FORWARD_EMB], .cosine = table[FORWARD_COS], .sine = table[FORWARD_SIN]};
  read_positions(&t[FORWARD_POS_IDS], patch, 1, position);
  for (int axis = 0; axis < POSITION_AXES; ++axis) {
    for (int64_t j = 0; j < n; j += RG_VF_WIDTH) {
      const int64_t lanes = n - j < RG_VF_WIDTH ? n - j : RG_VF_WIDTH;
      const rg_vf angle = rg_vf_mul(rg_vf_set1(position[axis]), rg_load_lanes(RG_REAL_DTYPE, inv_freq + j, lanes));
      rg_tables_store(RG_REAL_DTYPE, staged, j, rg_table_vectors_of(staged, angle), lanes);
    }
    for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
      if (!rg_given(problem, k)) continue;
      for (int quarter = axis; quarter < QUARTERS; quarter += POSITION_AXES) {
        const int64_t at = patch * t[k].stride[0] + (quarter * Q + first) * t[k].stride[1];
        rg_row_scatter(t[k].dtype, t[k].data, at, t[k].stride[1], table[k], n);
      }
    }
  }
}

/* Patches [begin, end), of any layout. */
static void patch_range(void *arg, int64_t begin, int64_t end) {
  const rg_problem *problem = arg;
  const rg_tensor *from = &problem->tensor[FORWARD_INV_FREQ];
  const int64_t Q = problem->dim[DIM_D] / QUARTERS;
  for (int64_t first = 0; first < Q; first += MAX_COLUMNS) {
    const int64_t n = Q - first < MAX_COLUMNS ? Q - first : MAX_COLUMNS;
    rg_real inv_freq[MAX_COLUMNS];
    rg_row_gather(RG_REAL_DTYPE, from->data, first * from->stride[0], from->stride[0], inv_freq, n);
    for (int64_t patch = begin; patch < end; ++patch) do_staged(problem, patch, first, n, inv_freq);
  }
}

RG_CPU_KERNEL(rg_vision_rotary_forward) {
  rg_cost cost;
  problem->op->cost(problem, &cost);
  bool dense = problem->dim[DIM_D] / QUARTERS <= MAX_COLUMNS;
  for (int k = FORWARD_EMB; k <= FORWARD_SIN; ++k) {
    dense = dense && (!rg_given(problem, k) || rg_tensor_is_dense(&problem->tensor[k]));
  }
  if (dense) {
    run_dense(problem, resources, &cost);
  } else {
    /* The tasks take a pointer to what they may write. */
    rg_problem of_patches = *problem;
    rg_parallel_ranges(resources->threads, problem->dim[DIM_P], cost.read_bytes + cost.write_bytes, patch_range,
                       &of_patches);
  }
}
