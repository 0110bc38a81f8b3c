#include "harness/cases/json_value.h"

#include "harness/cases/case.h"

const char *rgh_json_kind(const json_t *value) {
  if (value == NULL) return "nothing";
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return "an object";
    case JSON_ARRAY:
      return "a list";
    case JSON_STRING:
      return "a string";
    case JSON_INTEGER:
      return "an integer";
    case JSON_REAL:
      return "a fraction";
    case JSON_TRUE:
    case JSON_FALSE:
      return "a boolean";
    case JSON_NULL:
      return "null";
  }
  return "nothing";
}

const char *rgh_json_text(const json_t *value, const char *path, rgh_message *why) {
  if (json_is_string(value)) return json_string_value(value);
  rgh_fail(why, "%s: expected a string, got %s", path, rgh_json_kind(value));
  return NULL;
}

bool rgh_json_size(const json_t *value, int64_t least, const char *path, int64_t *size, rgh_message *why) {
  if (!json_is_integer(value)) return rgh_fail(why, "%s: expected an integer, got %s", path, rgh_json_kind(value));
  *size = json_integer_value(value);
  if (*size >= least && *size <= RGH_MAX_ELEMENTS) return true;
  return rgh_fail(why, "%s: %lld is not between %lld and 2^40", path, (long long)*size, (long long)least);
}
