#include <stdlib.h>

#include "harness/cuda/gpu_state.h"

typedef struct event_timer {
  rgh_cuda_flush flush;
  CUevent before, after;
} event_timer;

static bool time_call(rgh_timer *timer, rgh_timed_call call, void *argument, double *us, rgh_message *why) {
  const event_timer *t = timer->state;
  const rgh_cuda *cuda = t->flush.cuda;
  const rg_cuda_driver *driver = cuda->driver;
  float ms = 0;
  if (!rgh_cuda_flush_run(&t->flush, why) ||
      !rgh_cuda_good(cuda, driver->cuEventRecord(t->before, cuda->stream), "recording an event", why) ||
      !call(argument, why) ||
      !rgh_cuda_good(cuda, driver->cuEventRecord(t->after, cuda->stream), "recording an event", why) ||
      !rgh_cuda_wait(cuda, "the timed call", why) ||
      !rgh_cuda_good(cuda, driver->cuEventElapsedTime(&ms, t->before, t->after), "reading the events", why)) {
    return false;
  }
  *us = (double)ms * 1e3;
  return true;
}

static void destroy(rgh_timer *timer) {
  event_timer *t = timer->state;
  if (t == NULL) return;
  const rg_cuda_driver *driver = t->flush.cuda->driver;
  if (t->before != NULL) driver->cuEventDestroy(t->before);
  if (t->after != NULL) driver->cuEventDestroy(t->after);
  rgh_cuda_flush_destroy(&t->flush);
  free(t);
  *timer = (rgh_timer){0};
}

bool rgh_cuda_event_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why) {
  event_timer *t = calloc(1, sizeof *t);
  if (t == NULL) return rgh_fail(why, "no memory");
  *timer = (rgh_timer){.method = "cuda_events", .state = t, .time = time_call, .destroy = destroy};
  if (rgh_cuda_flush_create(&t->flush, cuda, warm, why) &&
      rgh_cuda_good(cuda, cuda->driver->cuEventCreate(&t->before, CU_EVENT_DEFAULT), "making an event", why) &&
      rgh_cuda_good(cuda, cuda->driver->cuEventCreate(&t->after, CU_EVENT_DEFAULT), "making an event", why)) {
    timer->flush_bytes = warm ? 0 : t->flush.mark.bytes;
    return true;
  }
  destroy(timer);
  return false;
}
