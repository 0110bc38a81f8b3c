/* What the tests of suites share: a suite from a text, and texts of one case. */
#ifndef ROPEGRAD_TESTS_HARNESS_SUITE_TESTING_H
#define ROPEGRAD_TESTS_HARNESS_SUITE_TESTING_H

#include "harness/cases/suite.h"
#include "tests/testing.h"

static inline rgh_suite parse(const char *text) {
  rgh_suite suite;
  rgh_message why;
  if (!rgh_suite_parse(text, strlen(text), "s.json", &suite, &why)) fail_msg("%s", why.text);
  return suite;
}

/* {"suite", "cases": [one rope_apply case with `more` after its sizes]} */
#define APPLY(more)                                                                                        \
  "{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_apply\", \"name\": \"a\", \"dims\": {\"batch_size\": 2," \
  " \"num_heads\": 3, \"num_kv_heads\": 1, \"seq_len\": 5, \"head_dim\": 8}" more "}]}"
#define UPDATE(more)                                                                                            \
  "{\"suite\": \"s\", \"cases\": [{\"op\": \"kv_cache_update\", \"name\": \"a\", \"dims\": {\"batch_size\": 2," \
  " \"num_kv_heads\": 3, \"new_seq_len\": 4, \"max_seq_len\": 6, \"head_dim\": 8}" more "}]}"

#endif
