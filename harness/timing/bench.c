#include "harness/timing/bench.h"

#include <string.h>

#include "harness/base/clock.h"
#include "harness/base/statistics.h"
#include "harness/timing/sweep.h"

/* Of the time budget, to find the fastest copies. */
static const double SWEEP_SHARE = 0.25;

/* One case being timed. */
typedef struct bench {
  rg_context *context;
  const rgh_case *item;
  const rgh_bench_options *options;
  const rgh_device *device;
  rgh_timer *timer;
  rgh_buffers buffers;
  rgh_floor floor;
  uint64_t random;
  uint64_t fills;  /* how often the inputs were drawn anew */
  int clock_mhz;   /* after the operator's last call, where strict asks for it */
  size_t shift[2]; /* of the floor's source and target */
  int copy;        /* the floor's copy that runs next */
  int finalist[RGH_MAX_FINALISTS];
  int num_finalists;
} bench;

/* SplitMix64: where tensors start need not be independent of anything but the operator. */
static uint64_t draw(bench *b) {
  uint64_t z = b->random += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

static size_t draw_shift(bench *b) { return draw(b) % (RGH_MOVE_RANGE_BYTES / RGH_MOVE_BYTES) * RGH_MOVE_BYTES; }

/* ---- the two things that are timed ---- */

static bool call_operator(void *argument, rgh_message *why) {
  const bench *b = argument;
  const rg_status status = rg_dev_run(b->context, b->item->op, NULL, b->buffers.args);
  if (status == RG_OK) return true;
  return rgh_fail(why, "%s: %s", rg_status_string(status), rg_last_error(b->context));
}

static bool call_copy(void *argument, rgh_message *why) {
  bench *b = argument;
  return b->floor.run(&b->floor, b->copy, b->shift[0], b->shift[1], why);
}

/* Once the call's time has been taken: errors that only the device could see, and, strict, bytes that it had no
 * business with. */
static bool check_call(bench *b, rgh_message *why) {
  if (b->options->strict && b->device->clock_mhz != NULL) b->clock_mhz = b->device->clock_mhz(b->device);
  if (rg_context_check(b->context) != RG_OK) return rgh_fail(why, "%s", rg_last_error(b->context));
  if (!rgh_buffers_sound(&b->buffers, why)) return false;
  return !b->options->strict || (rgh_buffers_fetch(&b->buffers, true, why) && rgh_buffers_intact(&b->buffers, why));
}

static bool time_operator(bench *b, double *us, rgh_message *why) {
  if (!b->options->warm) {
    for (int t = 0; t < b->item->op->num_tensors; t++) rgh_buffers_move(&b->buffers, t, draw_shift(b));
  }
  if (b->options->strict) {
    rgh_buffers_refill(&b->buffers, b->options->seed + ++b->fills);
    rgh_buffers_prepare(&b->buffers);
  } else if (b->device->memory != NULL) {
    /* In place, the next call would otherwise find what this one leaves; on a GPU putting it back costs little. */
    rgh_buffers_restore(&b->buffers);
  }
  return b->timer->time(b->timer, call_operator, b, us, why) && check_call(b, why);
}

static bool time_copy(bench *b, int copy, double *us, rgh_message *why) {
  b->copy = copy;
  for (int i = 0; i < 2 && !b->options->warm; i++) b->shift[i] = draw_shift(b);
  return b->timer->time(b->timer, call_copy, b, us, why);
}

static bool time_copy_of(void *argument, int copy, double *us, rgh_message *why) {
  return time_copy(argument, copy, us, why);
}

static bool choose_finalists(bench *b, rgh_message *why) {
  b->num_finalists = b->floor.finalists;
  return rgh_sweep(b->floor.num_copies, b->options->budget_s * SWEEP_SHARE, time_copy_of, b, b->finalist,
                   &b->num_finalists, why);
}

/* ---- the repetitions ---- */

/* One sample of the operator and one of each finalist, close together because the speed of a shared machine drifts, and
 * in an order that turns because what runs first finds other caches and clocks than what runs second. */
static bool time_round(bench *b, int turn, double *operator_us, double copy_us[RGH_MAX_FINALISTS], rgh_message *why) {
  const int runners = 1 + b->num_finalists;
  for (int i = 0; i < runners; i++) {
    const int runner = (turn + i) % runners;
    if (runner == 0 ? !time_operator(b, operator_us, why)
                    : !time_copy(b, b->finalist[runner - 1], &copy_us[runner - 1], why)) {
      return false;
    }
  }
  return true;
}

static double seconds_since(int64_t begin) { return (double)(rgh_now_ns() - begin) * 1e-9; }

static int clamp(double value, int low, int high) { return value < low ? low : value > high ? high : (int)value; }

/* How many calls the budget allows, from what one round takes. */
static bool choose_calls(bench *b, rgh_measurement *m, int64_t begin, rgh_message *why) {
  m->warmup_calls = RGH_WARMUP_CALLS;
  m->timed_calls = RGH_TIMED_CALLS;
  if (b->options->budget_s <= 0) return true;
  const int64_t round_begin = rgh_now_ns();
  double us, copy_us[RGH_MAX_FINALISTS];
  if (!time_round(b, 0, &us, copy_us, why)) return false;
  const double left_s = b->options->budget_s - seconds_since(begin);
  const double rounds = left_s / seconds_since(round_begin) / RGH_REPETITIONS;
  m->warmup_calls = clamp(rounds / 6, RGH_MIN_WARMUP_CALLS, RGH_WARMUP_CALLS);
  m->timed_calls = clamp(rounds - m->warmup_calls, RGH_MIN_TIMED_CALLS, RGH_TIMED_CALLS);
  return true;
}

/* Strict: the outputs that the operator has just left, against the reference. */
static bool check_outputs(bench *b, rgh_measurement *m) {
  rgh_message why;
  if (rgh_verify_outputs(b->context, &b->buffers, &m->verdict.worst, &why)) return true;
  return rgh_fail(&m->verdict.reason, "in a timed call: %s", why.text);
}

static void finish_series(rgh_series *series, int timed_calls) {
  for (int r = 0; r < RGH_REPETITIONS; r++) series->median_us[r] = rgh_median(series->sample_us[r], timed_calls);
  series->us = rgh_mean(series->median_us, RGH_REPETITIONS);
  series->spread = rgh_spread(series->median_us, RGH_REPETITIONS);
}

static bool repeat(bench *b, rgh_measurement *m) {
  rgh_message *why = &m->verdict.reason;
  rgh_series floor[RGH_MAX_FINALISTS] = {0};
  const int checked = (int)(draw(b) % (uint64_t)(RGH_REPETITIONS * m->timed_calls));
  for (int r = 0; r < RGH_REPETITIONS; r++) {
    for (int i = -m->warmup_calls; i < m->timed_calls; i++) {
      double us, copy_us[RGH_MAX_FINALISTS];
      if (!time_round(b, i + m->warmup_calls, &us, copy_us, why)) return false;
      if (i < 0) continue;
      m->latency.sample_us[r][i] = us;
      m->clock_mhz[r][i] = b->clock_mhz;
      for (int f = 0; f < b->num_finalists; f++) floor[f].sample_us[r][i] = copy_us[f];
      if (b->options->strict && r * m->timed_calls + i == checked && !check_outputs(b, m)) return false;
    }
  }
  finish_series(&m->latency, m->timed_calls);
  int best = 0;
  for (int f = 0; f < b->num_finalists; f++) {
    finish_series(&floor[f], m->timed_calls);
    if (floor[f].us < floor[best].us) best = f;
  }
  m->floor = floor[best];
  m->ratio = m->latency.us / m->floor.us;
  m->clocks_read = b->options->strict && b->device->clock_mhz != NULL;
  memcpy(m->floor_copy, b->floor.name[b->finalist[best]], sizeof m->floor_copy);
  return true;
}

/* ---- a case ---- */

static bool measure(bench *b, rgh_measurement *m) {
  rgh_message *why = &m->verdict.reason;
  const int64_t begin = rgh_now_ns();
  m->floor_copies_tried = b->floor.num_copies;
  if (choose_finalists(b, why) && choose_calls(b, m, begin, why) && repeat(b, m)) return true;
  m->verdict.status = RGH_FAIL;
  return false;
}

/* Tensors, then the plain copies of as many bytes. */
static bool create(bench *b, rgh_measurement *m) {
  rgh_message *why = &m->verdict.reason;
  const rgh_bench_options *o = b->options;
  if (!rgh_buffers_create_on(b->device->memory, &b->buffers, b->item, o->seed, RGH_MOVE_RANGE_BYTES, o->threads, why)) {
    m->verdict.status = RGH_SKIP;
    return false;
  }
  rg_problem problem;
  if (rgh_buffers_resolve(&b->buffers, b->context, &problem) != RG_OK) {
    m->verdict.status = RGH_FAIL;
    return rgh_fail(why, "%s", rg_last_error(b->context));
  }
  b->item->op->cost(&problem, &m->cost);
  if (b->device->memory != NULL && m->cost.read_bytes + m->cost.write_bytes == 0) {
    /* Still a pass: a GPU is given no work at all then. */
    return rgh_fail(why, "it moves no bytes, so that there is nothing to time");
  }
  const rgh_floor_bytes bytes = {m->cost.read_bytes, m->cost.write_bytes, RGH_MOVE_RANGE_BYTES};
  if (!b->device->create_floor(b->device, &b->floor, &bytes, o->threads, why)) {
    m->verdict.status = RGH_SKIP;
    return false;
  }
  return true;
}

size_t rgh_bench_device_bytes(const rgh_case *item) {
  /* The floor's two buffers: no tensor's bytes are counted twice on one side of it. */
  const size_t floor_bytes = 2 * ((size_t)rgh_case_bytes(item) + RGH_MOVE_RANGE_BYTES + 4 * RGH_MEMORY_ALIGNMENT);
  return rgh_buffers_device_bytes(item, RGH_MOVE_RANGE_BYTES) + floor_bytes;
}

void rgh_bench_case(rg_context *context, const rgh_case *item, rgh_timer *timer, const rgh_bench_options *options,
                    rgh_measurement *measurement) {
  memset(measurement, 0, sizeof *measurement);
  const rgh_device *device = options->device != NULL ? options->device : &rgh_device_cpu;
  const rgh_verify_options verify = {
      .repeats = 1, .seed = options->seed, .threads = options->threads, .memory = device->memory};
  rgh_verify_case(context, item, &verify, &measurement->verdict);
  if (measurement->verdict.status != RGH_PASS) return;
  bench b = {
      .context = context, .item = item, .options = options, .device = device, .timer = timer, .random = options->seed};
  measurement->timed = create(&b, measurement) && measure(&b, measurement);
  if (b.floor.destroy != NULL) b.floor.destroy(&b.floor);
  rgh_buffers_destroy(&b.buffers);
}
