/* sums.h: a list of digests beside the files, as `xxh128sum *.json > XXH128SUMS` writes it. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_SUMS_H
#define ROPEGRAD_HARNESS_EVIDENCE_SUMS_H

#include "harness/evidence/problems.h"

/* Holds every file that an XXH128SUMS of the folder, or of one below it, lists against its digest, and adds a problem
 * for each that differs or is missing. A folder without such a list has no problem. */
void rge_sums_check(const char *folder, rge_problems *problems);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_SUMS_H */
