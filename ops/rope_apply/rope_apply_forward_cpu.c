/* rope_apply, forward, on the CPU, built once per level. Bound by memory: 8 bytes an element of q and k in float32,
 * against three products for two elements. Tiles, runs and rows are those of the backward pass, without the sums. */
#include <stdalign.h>

#include "ops/rope_apply/rope_apply_tiles.h"
#include "src/base/parallel.h"
#include "src/simd/stream.h"

enum {
  HEADS_AT_ONE_POSITION = 24, /* of a run: a multiple of HEADS_AT_ONCE */
  TABLE_HALVES = SUM_COS      /* of a position in a tile, which has no sums */
};

typedef struct tile_buffers {
  alignas(RG_CACHE_LINE_BYTES) rg_real rows[TABLE_HALVES * TILE_ELEMENTS / 2];
  alignas(RG_CACHE_LINE_BYTES) char buffer[HEADS_AT_ONCE * ROW_BUFFER_BYTES];
} tile_buffers;

static void do_tile(const task *job, tile_memory tile, const region *at, const region *next) {
  stage_tables(job, tile.rows, at);
  for (const side_tensors *side = job->sides; side < job->sides + 2; ++side) {
    for (int64_t h = 0; h < side->heads;) {
      const row_run run = run_at(job, tile, side, at, h);
      do_run(job, RG_FORWARD, side, run, run_after(job, tile, side, at, h, next));
      h += run.heads;
    }
  }
}

static void unit_range(void *arg, int64_t begin, int64_t end) {
  const task *job = arg;
  tile_buffers buffers;
  const tile_memory tile = {buffers.rows, buffers.buffer};
  region at = region_at(job, begin, end);
  for (int64_t u = begin; u < end;) {
    u += at.rows;
    const region next = u < end ? region_at(job, u, end) : at;
    do_tile(job, tile, &at, &next);
    at = next;
  }
  rg_stream_fence();
}

static side_tensors forward_side(const rg_problem *problem, int x, int y, int heads) {
  const rg_tensor *t = problem->tensor;
  return side_of(&t[x], NULL, rg_given(problem, y) ? &t[y] : NULL, problem->dim[heads]);
}

RG_CPU_KERNEL(rg_rope_apply_forward) {
  const rg_rope_apply_forward_args *args = problem->args;
  rg_cost cost;
  problem->op->cost(problem, &cost);
  task job = {.seq_len = problem->dim[DIM_S],
              .head_dim = problem->dim[DIM_D],
              .rotary_dim = problem->dim[DIM_R],
              .sides = {forward_side(problem, FORWARD_Q, FORWARD_Q_EMBED, DIM_HQ),
                        forward_side(problem, FORWARD_K, FORWARD_K_EMBED, DIM_HK)},
              .cosine = &problem->tensor[FORWARD_COS],
              .sine = &problem->tensor[FORWARD_SIN],
              .style = args->style,
              .in_place = args->in_place,
              /* In place the line that is written has just been read: past the caches it would go to memory twice. */
              .stream = !args->in_place && rg_stream_pays(cost.write_bytes),
              .heads_at_one_position = HEADS_AT_ONE_POSITION,
              .tile_halves = TABLE_HALVES,
              .rows = problem->dim[DIM_S] * problem->dim[DIM_B]};
  if (job.rows == 0) return;
  cut_into_tiles(&job, resources->threads);
  rg_parallel_ranges(resources->threads, job.rows * job.slices, cost.read_bytes + cost.write_bytes, unit_range, &job);
}
