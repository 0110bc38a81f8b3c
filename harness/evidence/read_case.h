/* read_case.h: one case of a record: its numbers, and whether they follow from its samples. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_READ_CASE_H
#define ROPEGRAD_HARNESS_EVIDENCE_READ_CASE_H

#include "harness/evidence/record.h"

/* Reads `source`, a case of the record, into *item, and adds what is wrong to the entry's problems. The sizes come from
 * the case itself or, in records that do not spell them out, from the suite; `suite` may be NULL. False: no memory. */
bool rge_case_read(const json_t *source, int repetitions, const rgh_suite *suite, rge_entry *entry, rge_case *item);

void rge_case_free(rge_case *item);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_READ_CASE_H */
