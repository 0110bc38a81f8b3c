/* activity.h: what a GPU did while a call was being timed, and how long the call took by it. */
#ifndef ROPEGRAD_HARNESS_TIMING_ACTIVITY_H
#define ROPEGRAD_HARNESS_TIMING_ACTIVITY_H

#include <stdint.h>

#include "harness/base/message.h"

typedef enum rgh_activity_kind { RGH_ACTIVITY_KERNEL, RGH_ACTIVITY_COPY, RGH_ACTIVITY_SET } rgh_activity_kind;

typedef struct rgh_activity {
  rgh_activity_kind kind;
  uint64_t begin_ns, end_ns; /* by the GPU's clock */
  uint64_t bytes;            /* copies and sets */
  uint32_t value;            /* sets: what was written */
} rgh_activity;

/* The memset that a timer does last before a call, by which the call's own activities are told from those before. */
typedef struct rgh_activity_mark {
  uint64_t bytes;
  uint32_t value;
} rgh_activity_mark;

/* The time from the begin of the first activity after the mark to the end of the last one. The list may be in any
 * order; what began before the mark does not count. False when the mark is missing or there twice, when nothing came
 * after it, when something that began before the mark's end ended after it, or when a record has no times. */
bool rgh_activity_span(const rgh_activity *list, int count, rgh_activity_mark mark, double *us, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_TIMING_ACTIVITY_H */
