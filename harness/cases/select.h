/* select.h: from what a user asks for (a suite, operators, cases, a mode) to the cases that are to be run. */
#ifndef ROPEGRAD_HARNESS_CASES_SELECT_H
#define ROPEGRAD_HARNESS_CASES_SELECT_H

#include "harness/cases/suite.h"

enum { RGH_MAX_NAMES = 256 };

typedef struct rgh_request {
  const char *suite; /* a name, looked for as NAME.json in the folders; or a path: anything with a '/' or ".json" */
  const char *const *folders; /* ended by NULL */
  const char *problem;        /* a problem's folder in place of a suite (problem.h); NULL: none */
  const char *op[RGH_MAX_NAMES];
  int num_ops; /* 0: all */
  const char *case_name[RGH_MAX_NAMES];
  int num_case_names; /* 0: all */
  bool in_place;
  int64_t max_bytes; /* of all tensors of a case; 0: no limit */
} rgh_request;

typedef struct rgh_selection {
  rgh_suite suite;
  rgh_case **cases; /* of the suite, in its order, those asked for; in place where that was asked */
  bool *too_large;  /* one per case: larger than max_bytes, to be counted as skipped */
  int num_cases;
  int left_out; /* asked for in place, but their operators or layouts have no such mode */
} rgh_selection;

/* False, with a reason that lists what there is or what is nearest, when the suite cannot be read, an operator or a
 * case does not exist, or no case is left; it names the suites that have the operators. */
bool rgh_select(const rgh_request *request, rgh_selection *selection, rgh_message *why);
void rgh_selection_free(rgh_selection *selection);

#endif /* ROPEGRAD_HARNESS_CASES_SELECT_H */
