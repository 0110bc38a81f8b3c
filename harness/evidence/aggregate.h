/* aggregate.h: the numbers of an entry, from its cases. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H
#define ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H

#include "harness/evidence/record.h"

/* Fills the aggregates of the entry from its timed cases. */
void rge_aggregate(rge_entry *entry);

/* Holds the aggregates of all entries against the rows of the record's summary: one each, and none besides. */
void rge_check_summary(const json_t *summary, rge_record *record);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_AGGREGATE_H */
