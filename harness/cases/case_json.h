/* case_json.h: one case of a suite file, as suite.h describes it. */
#ifndef ROPEGRAD_HARNESS_CASES_CASE_JSON_H
#define ROPEGRAD_HARNESS_CASES_CASE_JSON_H

#include <jansson.h>

#include "harness/cases/case.h"

/* Makes a finished case. On failure *item holds nothing to free, and the reason begins with the key at fault. */
bool rgh_case_from_json(json_t *json, rgh_case *item, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CASES_CASE_JSON_H */
