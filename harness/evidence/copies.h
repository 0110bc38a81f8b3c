/* copies.h: which records are of one run. Raw samples are as good as a fingerprint: two runs never have the same. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_COPIES_H
#define ROPEGRAD_HARNESS_EVIDENCE_COPIES_H

#include "harness/evidence/index.h"

/* Adds a problem to every record that shares the samples of a case with another one: a copy verifies nothing, and of two
 * that say different things of one run at most one is right. The same file twice is a note. False: no memory. */
bool rge_find_copies(rge_index *index);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_COPIES_H */
