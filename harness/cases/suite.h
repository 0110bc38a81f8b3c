/* suite.h: reads a suite, a JSON file that lists cases.
 *
 *   {"suite": NAME, "description": TEXT, "cases": [CASE, ...]}
 *   CASE: {"op": OPERATOR, "name": TEXT, "dims": {DIM: SIZE, ...}
 *     "params":  {OPTION: VALUE, INTEGER_INPUT: FILL_NAME, ...}
 *     "dtypes":  {TENSOR: DTYPE}           sets the tensor's whole dtype group
 *     "layouts": {TENSOR: {"order": [AXIS, ...], "expand": [AXIS, ...], "reverse": [AXIS, ...], "offset": ELEMENTS,
 *                          "pad": ELEMENTS after each innermost row, or [ELEMENTS, ...] one per axis,
 *                          "stride_last": N}}
 *     "inputs":  {TENSOR: {"fill": NAME, and the numbers that the fill takes}}
 *     "unwanted": [OUTPUT, ...]            given as NULL
 *     "shared":   [TENSOR, ...]}           tables whose axis 0 has size 1
 * All but op, name and dims may be left out. */
#ifndef ROPEGRAD_HARNESS_CASES_SUITE_H
#define ROPEGRAD_HARNESS_CASES_SUITE_H

#include "harness/cases/case.h"

typedef struct rgh_suite {
  char *name;
  char *description;
  char digest[48]; /* of the file's bytes: "xxh128:" and what `xxh128sum FILE` prints */
  rgh_case *cases;
  int num_cases;
} rgh_suite;

/* Reads a suite file of at most 64 MiB. On failure *suite is empty and the reason names the file, the place (line and
 * column of a JSON error; case and key otherwise) and what is wrong there. */
bool rgh_suite_load(const char *path, rgh_suite *suite, rgh_message *why);

/* The same from memory; `file` is what the reason calls it. */
bool rgh_suite_parse(const char *text, size_t bytes, const char *file, rgh_suite *suite, rgh_message *why);

void rgh_suite_free(rgh_suite *suite);

#endif /* ROPEGRAD_HARNESS_CASES_SUITE_H */
