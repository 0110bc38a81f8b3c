/* bench.h: times one case beside its floor. docs/measuring.md says how, and why so. */
#ifndef ROPEGRAD_HARNESS_TIMING_BENCH_H
#define ROPEGRAD_HARNESS_TIMING_BENCH_H

#include "harness/timing/device.h"
#include "harness/timing/timer.h"
#include "harness/verify/verify.h"

enum {
  RGH_REPETITIONS = 3,
  RGH_WARMUP_CALLS = 10, /* of each repetition, not timed */
  RGH_TIMED_CALLS = 50,  /* of each repetition */
  /* What a time budget leaves of them at the least. */
  RGH_MIN_WARMUP_CALLS = 1,
  RGH_MIN_TIMED_CALLS = 5,
  /* Before every call each tensor starts at another multiple of RGH_MOVE_BYTES below this. */
  RGH_MOVE_RANGE_BYTES = 64 * 1024,
};

typedef struct rgh_bench_options {
  int threads;     /* of the operator, the floor and the flush; at least 1 */
  bool strict;     /* fresh input values, and guards and canaries checked, for every timed call; one call compared */
  bool warm;       /* neither flush nor move anything: what is measured is the speed in the caches */
  double budget_s; /* time that a case may take, verification apart; 0: no limit */
  uint64_t seed;
  const rgh_device *device; /* of the context; NULL: the CPU */
} rgh_bench_options;

/* The samples of one thing, and what follows from them. */
typedef struct rgh_series {
  double sample_us[RGH_REPETITIONS][RGH_TIMED_CALLS];
  double median_us[RGH_REPETITIONS];
  double us;     /* mean of the medians */
  double spread; /* of the medians */
} rgh_series;

typedef struct rgh_measurement {
  rgh_verdict verdict; /* of the verification that came first; timed only when it is a pass */
  bool timed;
  rg_cost cost;
  int warmup_calls, timed_calls; /* taken per repetition */
  rgh_series latency, floor;
  char floor_copy[RGH_FLOOR_NAME_BYTES]; /* the fastest */
  int floor_copies_tried;
  double ratio; /* latency over floor */
  /* Strict, on a device that has such a clock: of the multiprocessors, right after each timed call; 0: not known. */
  int clock_mhz[RGH_REPETITIONS][RGH_TIMED_CALLS];
  bool clocks_read;
} rgh_measurement;

/* Bytes of the device's memory that timing the case takes at the most. */
size_t rgh_bench_device_bytes(const rgh_case *item);

/* Verifies the case, then times it. Never fails: a case that breaks its contract, before or during the timing, or for
 * which there is no memory, comes back with the verdict that says so and without times. */
void rgh_bench_case(rg_context *context, const rgh_case *item, rgh_timer *timer, const rgh_bench_options *options,
                    rgh_measurement *measurement);

#endif /* ROPEGRAD_HARNESS_TIMING_BENCH_H */
