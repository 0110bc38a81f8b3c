/* change.h: whether a second measurement differs from a first by more than noise. Medians and robust spreads: a few
 * disturbed samples change nothing.
 *
 * A time alone cannot tell a slower kernel from a slower machine. The floor, a plain copy of the same bytes in the same
 * run, can: where it moved along with the time, the machine drifted. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_CHANGE_H
#define ROPEGRAD_HARNESS_EVIDENCE_CHANGE_H

#include "harness/evidence/record.h"

typedef enum rge_verdict {
  RGE_SAME,   /* within noise */
  RGE_SLOWER, /* the time, and its ratio to the floor, went up by more than noise */
  RGE_FASTER,
  RGE_DRIFT, /* the time moved, the ratio did not: the machine is faster or slower today */
  RGE_NUM_VERDICTS
} rge_verdict;
const char *rge_verdict_name(rge_verdict verdict); /* "noise", "slower", "faster", "drift" */

typedef struct rge_change {
  double latency, ratio; /* new / old - 1; ratio is NAN where either has no floor */
  double noise;          /* of the latency: what the samples of both show */
  rge_verdict verdict;
} rge_change;

/* Both timed. */
rge_change rge_case_change(const rge_case *before, const rge_case *after);

/* Over the cases that both have, geometric means; *matched is their number. Meaningless when that is 0. */
rge_change rge_entry_change(const rge_entry *before, const rge_entry *after, int *matched);

/* The case of that name; NULL: none, or not timed. */
const rge_case *rge_timed_case(const rge_entry *entry, const char *name);

/* The entry of the other record that measured the same as `entry`; NULL: none. */
const rge_entry *rge_counterpart(const rge_record *record, const rge_entry *entry);

/* Whether times of the two entries may be compared at all; the reason says what differs. */
bool rge_comparable(const rge_entry *before, const rge_entry *after, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_CHANGE_H */
