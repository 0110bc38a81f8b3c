/* load.h: one record by itself. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_LOAD_H
#define ROPEGRAD_HARNESS_EVIDENCE_LOAD_H

#include "harness/evidence/index.h"

/* The only record of a file, with its index, which the caller frees. False: it cannot be used, and *why says so. */
bool rge_load_one(const char *path, const char *schemas, const rge_suites *suites, rge_index *index, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_LOAD_H */
