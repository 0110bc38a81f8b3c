/* protocol.h: whether a record was measured as its protocol says: flushed, moved, warmed up, often enough, by a timer and
 * a variant of the device it names. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_PROTOCOL_H
#define ROPEGRAD_HARNESS_EVIDENCE_PROTOCOL_H

#include "harness/evidence/record.h"

/* Of the whole record, once its entries are read; adds problems. `cases` is the list that it was read from. */
void rge_check_protocol(rge_record *record, const json_t *cases);

/* The calls of one timed case against its samples and the protocol; adds problems to the entry. */
void rge_check_calls(const json_t *source, const json_t *protocol, rge_entry *entry, const rge_case *item);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_PROTOCOL_H */
