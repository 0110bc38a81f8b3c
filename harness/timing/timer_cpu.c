#include <stdlib.h>

#include "harness/base/clock.h"
#include "harness/timing/flush.h"
#include "harness/timing/timer.h"

static bool time_call(rgh_timer *timer, rgh_timed_call call, void *argument, double *us, rgh_message *why) {
  rgh_flush_run(timer->state);
  const int64_t begin = rgh_now_ns();
  const bool good = call(argument, why);
  const int64_t end = rgh_now_ns();
  *us = (double)(end - begin) * 1e-3;
  return good;
}

static void destroy(rgh_timer *timer) {
  if (timer->state != NULL) rgh_flush_destroy(timer->state);
  free(timer->state);
  *timer = (rgh_timer){0};
}

bool rgh_cpu_timer_create(rgh_timer *timer, size_t flush_bytes, int threads, rgh_message *why) {
  *timer = (rgh_timer){.method = "monotonic_clock", .time = time_call, .destroy = destroy};
  rgh_flush *flush = malloc(sizeof *flush);
  if (flush == NULL) return rgh_fail(why, "no memory");
  if (!rgh_flush_create(flush, flush_bytes, threads, why)) {
    free(flush);
    return false;
  }
  timer->state = flush;
  timer->flush_bytes = flush->bytes;
  return true;
}
