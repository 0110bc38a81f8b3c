/* Any bytes as a problem, definition.json up to the first NUL and workload.jsonl after it: the reader takes them or says in
 * one line why not. */
#include <stdlib.h>
#include <string.h>

#include "harness/cases/problem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
  if (!holds) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const char *text = (const char *)data;
  const char *end = size > 0 ? memchr(text, '\0', size) : NULL;
  const size_t definition = end != NULL ? (size_t)(end - text) : size;
  const char *workloads = end != NULL ? end + 1 : "";
  rgh_suite suite;
  rgh_message why = {""};
  if (rgh_problem_parse(text, definition, workloads, end != NULL ? size - definition - 1 : 0, &suite, &why)) {
    demand(suite.num_cases > 0 && suite.digest[0] != '\0');
    for (int c = 0; c < suite.num_cases; ++c) demand(rgh_case_bytes(&suite.cases[c]) >= 0);
    rgh_suite_free(&suite);
  } else {
    demand(why.text[0] != '\0' && strchr(why.text, '\n') == NULL);
    demand(suite.cases == NULL && suite.num_cases == 0);
  }
  return 0;
}
