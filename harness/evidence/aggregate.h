/* aggregate.h: the numbers of an entry, from its cases. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H
#define ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H

#include "harness/evidence/record.h"

/* Fills the aggregates of the entry from its timed cases. */
void rge_aggregate(rge_entry *entry);

/* Holds them against what the record states in its summary. */
void rge_check_summary(const json_t *summary, rge_entry *entry);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H */
