#include "harness/cases/suite.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/base/read_file.h"
#include "harness/cases/case_json.h"
#include "harness/cases/json_value.h"

/* A case takes about 4 KiB, so a hostile file can make the tool use 40 MiB and no more. */
enum { MAX_CASES = 10000 };

void rgh_suite_free(rgh_suite *suite) {
  for (int i = 0; i < suite->num_cases; ++i) rgh_case_free(&suite->cases[i]);
  free(suite->cases);
  free(suite->name);
  free(suite->description);
  memset(suite, 0, sizeof *suite);
}

static char *copy_text(const char *text) {
  char *copy = malloc(strlen(text) + 1);
  if (copy != NULL) strcpy(copy, text);
  return copy;
}

static bool read_head(json_t *root, const char *file, rgh_suite *suite, rgh_message *why) {
  if (!json_is_object(root)) return rgh_fail(why, "%s: expected an object that has \"suite\" and \"cases\"", file);
  const char *key;
  json_t *value;
  json_object_foreach(root, key, value) {
    if (strcmp(key, "suite") != 0 && strcmp(key, "description") != 0 && strcmp(key, "cases") != 0) {
      return rgh_fail(why, "%s: %s: unknown key", file, key);
    }
  }
  rgh_message reason;
  json_t *description = json_object_get(root, "description");
  const char *name = rgh_json_text(json_object_get(root, "suite"), "suite", &reason);
  const char *text = description == NULL ? "" : rgh_json_text(description, "description", &reason);
  if (name == NULL || text == NULL) return rgh_fail(why, "%s: %s", file, reason.text);
  const json_t *cases = json_object_get(root, "cases");
  if (json_array_size(cases) == 0) return rgh_fail(why, "%s: cases: expected a list with at least one case", file);
  if (json_array_size(cases) > MAX_CASES) return rgh_fail(why, "%s: cases: more than %d", file, MAX_CASES);
  suite->name = copy_text(name);
  suite->description = copy_text(text);
  suite->cases = calloc(json_array_size(cases), sizeof *suite->cases);
  if (suite->name == NULL || suite->description == NULL || suite->cases == NULL) {
    return rgh_fail(why, "%s: no memory", file);
  }
  return true;
}

static bool read_cases(json_t *cases, const char *file, rgh_suite *suite, rgh_message *why) {
  for (size_t i = 0; i < json_array_size(cases); ++i) {
    json_t *json = json_array_get(cases, i);
    rgh_case *item = &suite->cases[i];
    rgh_message reason;
    bool good = rgh_case_from_json(json, item, &reason);
    if (good) ++suite->num_cases;
    for (size_t other = 0; good && other < i; ++other) {
      if (suite->cases[other].op == item->op && strcmp(suite->cases[other].name, item->name) == 0) {
        good = rgh_fail(&reason, "name: cases[%zu] has the same operator and name", other);
      }
    }
    if (good) continue;
    const char *name = json_string_value(json_object_get(json, "name"));
    return rgh_fail(why, "%s: cases[%zu]%s%.60s%s: %s", file, i, name ? " \"" : "", name ? name : "", name ? "\"" : "",
                    reason.text);
  }
  return true;
}

bool rgh_suite_parse(const char *text, size_t bytes, const char *file, rgh_suite *suite, rgh_message *why) {
  memset(suite, 0, sizeof *suite);
  json_error_t error;
  json_t *root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
  if (root == NULL) return rgh_fail(why, "%s:%d:%d: %s", file, error.line, error.column, error.text);
  const bool good = read_head(root, file, suite, why) && read_cases(json_object_get(root, "cases"), file, suite, why);
  json_decref(root);
  const XXH128_hash_t hash = XXH3_128bits(text, bytes);
  snprintf(suite->digest, sizeof suite->digest, "xxh128:%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
  if (!good) rgh_suite_free(suite);
  return good;
}

bool rgh_suite_load(const char *path, rgh_suite *suite, rgh_message *why) {
  memset(suite, 0, sizeof *suite);
  size_t bytes;
  char *text = rgh_read_file(path, &bytes, why);
  if (text == NULL) return false;
  const bool good = rgh_suite_parse(text, bytes, path, suite, why);
  free(text);
  return good;
}
