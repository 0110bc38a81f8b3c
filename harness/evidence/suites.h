/* suites.h: all the suites of some folders, read once: which cases a record of a suite should have, and their sizes. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_SUITES_H
#define ROPEGRAD_HARNESS_EVIDENCE_SUITES_H

#include "harness/cases/suite.h"

typedef struct rge_suites {
  rgh_suite *list;
  int count;
} rge_suites;

/* Reads what is in the folders, a list ended by NULL; a suite found twice is taken from the first. A suite that cannot
 * be read is left out: `ropegrad list` says why. False: no memory. */
bool rge_suites_load(const char *const *folders, rge_suites *suites);

/* The suite that calls itself so; NULL: none. */
const rgh_suite *rge_suites_find(const rge_suites *suites, const char *name);

/* How many cases the suite has of the operator; 0 also when there is no suite. */
int rge_suite_cases(const rgh_suite *suite, const rg_operator *op);

/* A case of it; NULL: none of that name. */
const rgh_case *rge_suite_case(const rgh_suite *suite, const rg_operator *op, const char *name);

void rge_suites_free(rge_suites *suites);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_SUITES_H */
