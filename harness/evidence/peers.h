/* peers.h: other implementations, timed beside the cases of a record in the same run. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_PEERS_H
#define ROPEGRAD_HARNESS_EVIDENCE_PEERS_H

#include "harness/evidence/record.h"

/* Reads "peers" of a case into *item: those that passed and whose numbers follow from their samples. What does not
 * follow becomes a problem of the entry. False: no memory. */
bool rge_peers_read(const json_t *list, int repetitions, rge_entry *entry, rge_case *item);

/* Holds "peers" of a row of the summary against the cases of the entry. */
void rge_peers_check_summary(const json_t *row, rge_entry *entry);

void rge_peers_free(rge_case *item);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_PEERS_H */
