/* layout_json.h: the memory layout of a tensor in a suite file, as suite.h describes it. */
#ifndef ROPEGRAD_HARNESS_CASES_LAYOUT_JSON_H
#define ROPEGRAD_HARNESS_CASES_LAYOUT_JSON_H

#include <jansson.h>

#include "harness/cases/case.h"

/* Reads the object that a case gives for `tensor`, which has `rank` axes. */
bool rgh_layout_from_json(json_t *json, int rank, const char *tensor, rgh_layout *layout, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CASES_LAYOUT_JSON_H */
