/* problem.h: a SOL-ExecBench problem folder, definition.json and workload.jsonl, as a suite: a case a workload. */
#ifndef ROPEGRAD_HARNESS_CASES_PROBLEM_H
#define ROPEGRAD_HARNESS_CASES_PROBLEM_H

#include "harness/cases/suite.h"

/* Sizes, dtypes and numbers are the problem's; tensors are filled as the operator's own cases are, whatever the workload
 * says of their values. The suite bears the definition's name, and its digest is that of the two files one after the
 * other. On failure *suite is empty, and the reason names the file, the line of a workload, and the key. */
bool rgh_problem_load(const char *folder, rgh_suite *suite, rgh_message *why);

/* The same from memory. */
bool rgh_problem_parse(const char *definition, size_t definition_bytes, const char *workloads, size_t workload_bytes,
                       rgh_suite *suite, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CASES_PROBLEM_H */
