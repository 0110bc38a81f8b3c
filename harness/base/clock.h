/* clock.h: the time, in nanoseconds from an arbitrary start, that never goes backwards. */
#ifndef ROPEGRAD_HARNESS_BASE_CLOCK_H
#define ROPEGRAD_HARNESS_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t rgh_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

#endif /* ROPEGRAD_HARNESS_BASE_CLOCK_H */
