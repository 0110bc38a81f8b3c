/* vision_rotary on the CPU, built once per level. Each tensor is read once, in the suite's dtypes 12 bytes and one sine
 * and cosine for each angle; only Q sums are written.
 *
 * The patches are cut into chunks, by their number alone, so that the sums do not depend on the threads. A chunk is
 * worked off in blocks, a block in periods: the few rows whose elements are a whole number of vectors. So no vector is
 * left half empty, whatever D is: one may span two rows, and a table says which position weighs each of its lanes. A
 * block adds up in rg_real, a chunk in rg_wide. */
#include "ops/vision_rotary/vision_rotary_spec.h"
#include "src/base/parallel.h"
#include "src/simd/kernel.h"
#include "src/simd/rows.h"
#include "src/simd/sincos.h"
#include "src/simd/vec.h"

enum {
  MAX_CHUNKS = 64,
  MIN_CHUNK_ROWS = 8,     /* below, adding up the chunks costs more than a more even cut among the threads saves */
  MAX_COLUMNS = 64,       /* of the Q columns, worked on at a time */
  MAX_BLOCK_PERIODS = 16, /* additions to one accumulator before it goes into a wider one */
  BLOCK_ELEMENTS = 2048,  /* three buffers of them, where rows are staged, stay in the first-level cache */
  MAX_PERIOD_ROWS = RG_VF_WIDTH > QUARTERS ? RG_VF_WIDTH / QUARTERS : 1, /* at D = 4 */
  MAX_PERIOD = MAX_PERIOD_ROWS * QUARTERS * MAX_COLUMNS,
  MAX_POSITIONS = POSITION_AXES * MAX_PERIOD_ROWS * MAX_BLOCK_PERIODS
};
_Static_assert(MAX_PERIOD <= BLOCK_ELEMENTS, "a block holds a whole period");
_Static_assert(POSITION_AXES *MAX_PERIOD_ROWS <= RG_VF_WIDTH || RG_VF_WIDTH == 1, "a lookup reaches all positions");
_Static_assert(MAX_CHUNKS *MAX_COLUMNS * sizeof(rg_wide) <= RG_WORKSPACE_BYTES, "the workspace holds every chunk");

/* Columns [first, first + columns) of the Q. A row has four pieces of that many elements, Q apart, that count towards
 * them, and is treated as if it had no others. */
typedef struct task {
  const rg_problem *problem;
  int64_t first, columns;
  int64_t chunk_rows;
  int64_t period_rows;
  int64_t block_rows; /* a multiple of period_rows */
  bool direct;        /* the rows follow each other in memory and all their columns are wanted: nothing is staged */
  rg_wide *sums;      /* [chunks, columns] */
  int32_t position_of[MAX_PERIOD + RG_VF_WIDTH]; /* which of the period's positions weighs an element */
} task;

/* Consecutive rows of 4*columns elements each; the gradients are of the dtype T that goes with them. */
typedef struct block {
  const void *grad_cos, *grad_sin;
  const rg_real *emb;
  const rg_real *position; /* [rows, 2], and a vector's worth of room behind them */
  int64_t rows;
} block;

/* Adds n elements, a period or what is left of the last one, from element i on. */
RG_INLINE void add_period(rg_dtype T, block b, int64_t i, int64_t n, const rg_real *position,
                          const int32_t *position_of, rg_real *sum) {
  for (int64_t at = 0; at < n; at += RG_VF_WIDTH, i += RG_VF_WIDTH) {
    rg_vf grad_emb;
    if (n - at >= RG_VF_WIDTH) {
      grad_emb = rg_vf_grad_angle(rg_vf_load(T, rg_at_const(T, b.grad_cos, i)),
                                  rg_vf_load(T, rg_at_const(T, b.grad_sin, i)), rg_vf_load(RG_REAL_DTYPE, b.emb + i));
    } else {
      grad_emb = rg_vf_grad_angle(rg_vf_load_part(T, rg_at_const(T, b.grad_cos, i), n - at),
                                  rg_vf_load_part(T, rg_at_const(T, b.grad_sin, i), n - at),
                                  rg_vf_load_part(RG_REAL_DTYPE, b.emb + i, n - at));
    }
    const rg_vf weight = rg_vf_lookup(position, position_of + at);
    rg_vf_store(RG_REAL_DTYPE, sum + at, rg_vf_fma(weight, grad_emb, rg_vf_load(RG_REAL_DTYPE, sum + at)));
  }
}

/* sums[j] += column j of the four pieces of each of the period's rows. */
RG_INLINE void fold(const rg_real *sum, int64_t rows, int64_t columns, rg_wide *sums) {
  rg_real row_sum[MAX_COLUMNS + RG_VF_WIDTH];
  for (int64_t r = 0; r < rows; ++r, sum += QUARTERS * columns) {
    for (int64_t j = 0; j < columns; j += RG_VF_WIDTH) {
      const rg_vf half = rg_vf_add(rg_vf_load(RG_REAL_DTYPE, sum + j), rg_vf_load(RG_REAL_DTYPE, sum + columns + j));
      const rg_vf other_half =
          rg_vf_add(rg_vf_load(RG_REAL_DTYPE, sum + 2 * columns + j), rg_vf_load(RG_REAL_DTYPE, sum + 3 * columns + j));
      rg_vf_store(RG_REAL_DTYPE, row_sum + j, rg_vf_add(half, other_half));
    }
    for (int64_t j = 0; j < columns; ++j) sums[j] += (rg_wide)row_sum[j];
  }
}

RG_INLINE void do_block(rg_dtype T, const task *job, block b, rg_wide *sums) {
  const int64_t row_elements = QUARTERS * job->columns, period = job->period_rows * row_elements;
  rg_real sum[MAX_PERIOD + RG_VF_WIDTH];
  for (int64_t i = 0; i <= period; i += RG_VF_WIDTH) rg_vf_store(RG_REAL_DTYPE, sum + i, rg_vf_zero());
  for (int64_t r = 0; r < b.rows; r += job->period_rows) {
    const int64_t left = (b.rows - r) * row_elements;
    add_period(T, b, r * row_elements, left < period ? left : period, b.position + POSITION_AXES * r, job->position_of,
               sum);
  }
  fold(sum, job->period_rows, job->columns, sums);
}

static void read_positions(const rg_tensor *pos_ids, int64_t row, int64_t rows, rg_real *position) {
  const int64_t *from = rg_element(pos_ids, row * pos_ids->stride[0]);
  for (int64_t r = 0; r < rows; ++r, from += pos_ids->stride[0]) {
    position[POSITION_AXES * r] = (rg_real)from[0];
    position[POSITION_AXES * r + 1] = (rg_real)from[pos_ids->stride[1]];
  }
}

static void stage(const task *job, const rg_tensor *t, int64_t row, int64_t rows, rg_real *to) {
  const int64_t Q = job->problem->dim[DIM_D] / QUARTERS;
  for (int64_t p = row; p < row + rows; ++p) {
    for (int quarter = 0; quarter < QUARTERS; ++quarter, to += job->columns) {
      const int64_t at = p * t->stride[0] + (quarter * Q + job->first) * t->stride[1];
      rg_row_gather(t->dtype, t->data, at, t->stride[1], to, job->columns);
    }
  }
}

static void do_staged(const task *job, int64_t row, int64_t rows, const rg_real *position, rg_wide *sums) {
  rg_real grad_cos[BLOCK_ELEMENTS], grad_sin[BLOCK_ELEMENTS], emb[BLOCK_ELEMENTS];
  stage(job, &job->problem->tensor[GRAD_COS], row, rows, grad_cos);
  stage(job, &job->problem->tensor[GRAD_SIN], row, rows, grad_sin);
  stage(job, &job->problem->tensor[EMB], row, rows, emb);
  do_block(RG_REAL_DTYPE, job, (block){grad_cos, grad_sin, emb, position, rows}, sums);
}

/* Chunks [begin, end). */
static void chunk_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  const rg_tensor *t = job->problem->tensor;
  const int64_t P = job->problem->dim[DIM_P], D = job->problem->dim[DIM_D];
  rg_real position[MAX_POSITIONS + RG_VF_WIDTH] = {0};
  for (int64_t chunk = begin; chunk < end; ++chunk) {
    rg_wide *sums = job->sums + chunk * job->columns;
    for (int64_t j = 0; j < job->columns; ++j) sums[j] = 0;
    const int64_t first_row = chunk * job->chunk_rows;
    const int64_t end_row = P - first_row < job->chunk_rows ? P : first_row + job->chunk_rows;
    for (int64_t row = first_row; row < end_row; row += job->block_rows) {
      const int64_t rows = end_row - row < job->block_rows ? end_row - row : job->block_rows;
      read_positions(&t[POS_IDS], row, rows, position);
      if (job->direct) {
        const block b = {rg_element(&t[GRAD_COS], row * D), rg_element(&t[GRAD_SIN], row * D),
                         rg_element(&t[EMB], row * D), position, rows};
        RG_WITH_DTYPE(t[GRAD_COS].dtype, T, do_block(T, job, b, sums));
      } else {
        do_staged(job, row, rows, position, sums);
      }
    }
  }
}

/* Sets how the columns [first, first + columns) are worked on. */
static void choose_columns(task *job, int64_t first, int64_t columns) {
  job->first = first;
  job->columns = columns;
  job->period_rows = 1;
  while (job->period_rows * QUARTERS * columns % RG_VF_WIDTH != 0) job->period_rows *= 2;
  const int64_t periods = BLOCK_ELEMENTS / (job->period_rows * QUARTERS * columns);
  job->block_rows = job->period_rows * (periods < MAX_BLOCK_PERIODS ? periods : MAX_BLOCK_PERIODS);
  /* Counted in one loop: nested ones are unrolled to code that takes longer to fetch than to run. */
  int32_t piece = 0;
  int64_t column = 0;
  for (int64_t i = 0; i < job->period_rows * QUARTERS * columns; ++i) {
    job->position_of[i] = piece / QUARTERS * POSITION_AXES + piece % POSITION_AXES;
    if (++column < columns) continue;
    column = 0;
    ++piece;
  }
}

/* Adds up the chunks, in their order, into the columns of the output. */
static void add_chunks(const task *job, int64_t chunks) {
  const rg_tensor *out = &job->problem->tensor[GRAD_INV_FREQ];
  rg_wide total[MAX_COLUMNS] = {0};
  rg_real result[MAX_COLUMNS];
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t j = 0; j < job->columns; ++j) total[j] += job->sums[chunk * job->columns + j];
  }
  for (int64_t j = 0; j < job->columns; ++j) result[j] = (rg_real)total[j];
  rg_row_scatter(RG_REAL_DTYPE, out->data, job->first * out->stride[0], out->stride[0], result, job->columns);
}

RG_CPU_KERNEL(rg_vision_rotary_backward) {
  const rg_tensor *t = problem->tensor;
  const int64_t P = problem->dim[DIM_P], Q = problem->dim[DIM_D] / QUARTERS;
  const int64_t angle_bytes = (int64_t)(2 * rg_dtype_size(t[GRAD_COS].dtype) + rg_dtype_size(t[EMB].dtype));

  task job; /* no initialiser: it would clear the whole table, kilobytes that a small call would have to fetch first */
  job.problem = problem;
  job.sums = resources->workspace;
  /* A multiple of 4, so that a chunk is whole periods at every level. */
  const int64_t rows = (P / MAX_CHUNKS + 4) / 4 * 4;
  job.chunk_rows = rows < MIN_CHUNK_ROWS ? MIN_CHUNK_ROWS : rows;
  const int64_t chunks = (P + job.chunk_rows - 1) / job.chunk_rows;
  job.direct = Q <= MAX_COLUMNS && rg_tensor_is_dense(&t[GRAD_COS]) && rg_tensor_is_dense(&t[GRAD_SIN]) &&
               rg_tensor_is_dense(&t[EMB]);
  for (int64_t first = 0; first < Q; first += MAX_COLUMNS) {
    choose_columns(&job, first, Q - first < MAX_COLUMNS ? Q - first : MAX_COLUMNS);
    rg_parallel_ranges(resources->threads, chunks, P * QUARTERS * job.columns * angle_bytes, chunk_range, &job);
    add_chunks(&job, chunks);
  }
}
