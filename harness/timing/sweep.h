/* sweep.h: which of many plain copies are the fastest, found without timing all of them as often as the best. */
#ifndef ROPEGRAD_HARNESS_TIMING_SWEEP_H
#define ROPEGRAD_HARNESS_TIMING_SWEEP_H

#include "harness/base/message.h"

/* Times copy number `copy` once. */
typedef bool (*rgh_sweep_time)(void *argument, int copy, double *us, rgh_message *why);

/* Leaves the numbers of the fastest copies by their medians, the fastest first, in `finalist`: at most *num_finalists,
 * which becomes how many there are. Every copy is timed once and those that are not far behind some times more. Takes
 * about budget_s seconds; 0: as long as it takes. num_copies is at most RGH_MAX_FLOOR_COPIES. False: a copy failed. */
bool rgh_sweep(int num_copies, double budget_s, rgh_sweep_time time, void *argument, int *finalist, int *num_finalists,
               rgh_message *why);

#endif /* ROPEGRAD_HARNESS_TIMING_SWEEP_H */
