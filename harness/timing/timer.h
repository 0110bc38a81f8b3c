/* timer.h: how one call is timed on a device. Every method flushes the caches of its device, runs the call and says how
 * long the device was busy with it; what the call is, an operator or a plain copy, is the caller's affair. */
#ifndef ROPEGRAD_HARNESS_TIMING_TIMER_H
#define ROPEGRAD_HARNESS_TIMING_TIMER_H

#include <stddef.h>

#include "harness/base/message.h"

typedef bool (*rgh_timed_call)(void *argument, rgh_message *why);

typedef struct rgh_timer {
  const char *method;  /* as records name it */
  int library_version; /* of the library that the times come from; 0: there is none */
  size_t flush_bytes;  /* walked over before every call; 0: caches are left warm */
  void *state;
  bool (*time)(struct rgh_timer *timer, rgh_timed_call call, void *argument, double *us, rgh_message *why);
  void (*destroy)(struct rgh_timer *timer);
} rgh_timer;

/* "monotonic_clock": from before the call to after it, on the calling thread. */
bool rgh_cpu_timer_create(rgh_timer *timer, size_t flush_bytes, int threads, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_TIMING_TIMER_H */
