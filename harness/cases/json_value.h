/* json_value.h: single values of a JSON file. Every reason begins with `path`, the key of the value. */
#ifndef ROPEGRAD_HARNESS_CASES_JSON_VALUE_H
#define ROPEGRAD_HARNESS_CASES_JSON_VALUE_H

#include <jansson.h>
#include <stdint.h>

#include "harness/base/message.h"

/* "an object", "a string", ...; "nothing" for NULL. */
const char *rgh_json_kind(const json_t *value);

/* The text of a string; NULL, with the reason, when the value is anything else. */
const char *rgh_json_text(const json_t *value, const char *path, rgh_message *why);

/* A number of elements, from `least` to RGH_MAX_ELEMENTS. */
bool rgh_json_size(const json_t *value, int64_t least, const char *path, int64_t *size, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CASES_JSON_VALUE_H */
