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

/* The entry of the other record that is most like `entry`: of the same operator and mode, if it can be in the same
 * setting and of the same variant. NULL: none. */
const rge_entry *rge_counterpart(const rge_record *record, const rge_entry *entry);

/* Whether times of the two entries may be compared at all; the reason says what differs. */
bool rge_comparable(const rge_entry *before, const rge_entry *after, rgh_message *why);

/* The case of that name; NULL: none. */
const rge_case *rge_case_named(const rge_entry *entry, const char *name);

/* Whether two timed cases of comparable entries measured the same: sizes, bytes (which tell dtypes and wanted outputs
 * apart), and samples that noise can be told from. The reason says what differs. */
bool rge_cases_comparable(const rg_operator *op, const rge_case *before, const rge_case *after, rgh_message *why);

/* Over the timed cases that both have and that can be compared. */
typedef struct rge_whole {
  int cases;                  /* 0: the rest means nothing */
  double before_us, after_us; /* geometric means */
  rge_change change;          /* of those */
} rge_whole;
rge_whole rge_entry_change(const rge_entry *before, const rge_entry *after);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_CHANGE_H */
