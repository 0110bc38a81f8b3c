#include "harness/cases/problem.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/base/read_file.h"
#include "harness/cases/case_json.h"
#include "harness/cases/definition.h"
#include "harness/cases/json_value.h"

static const char definition_file[] = "definition.json", workload_file[] = "workload.jsonl";
enum { PATH_BYTES = 4096, MAX_WORKLOADS = 10000 };

/* ---- one workload ---- */

/* Where an input's values come from: of an option's, into `params`; a tensor's are the case's own. */
static bool read_input(const rgh_definition *d, const char *name, const json_t *input, json_t *params,
                       rgh_message *why) {
  const json_t *argument = json_object_get(json_object_get(d->root, "inputs"), name);
  if (argument == NULL) return rgh_fail(why, "inputs.%.100s: the definition has no such input", name);
  char path[160];
  snprintf(path, sizeof path, "inputs.%.100s.type", name);
  const char *type = rgh_json_text(json_object_get(input, "type"), path, why);
  if (type == NULL) return false;
  const bool is_number = json_is_null(json_object_get(argument, "shape"));
  if (strcmp(type, "random") == 0 || strcmp(type, "custom") == 0) return true;
  if (strcmp(type, "safetensors") == 0) return rgh_fail(why, "%s: ropegrad reads no safetensors files", path);
  if (strcmp(type, "scalar") != 0) return rgh_fail(why, "%s: there is no source \"%.60s\"", path, type);
  if (!is_number) return rgh_fail(why, "%s: a tensor cannot be a scalar", path);
  json_t *value = json_object_get(input, "value");
  if (value == NULL) return rgh_fail(why, "inputs.%.100s.value: missing", name);
  return json_object_set(params, name, value) == 0 || rgh_fail(why, "no memory");
}

static bool read_inputs(const rgh_definition *d, json_t *inputs, json_t *params, rgh_message *why) {
  if (!json_is_object(inputs)) return rgh_fail(why, "inputs: expected an object, got %s", rgh_json_kind(inputs));
  const char *name;
  json_t *value;
  json_object_foreach(inputs, name, value) {
    if (!read_input(d, name, value, params, why)) return false;
  }
  json_object_foreach(json_object_get(d->root, "inputs"), name, value) {
    if (json_object_get(inputs, name) == NULL) return rgh_fail(why, "inputs.%.100s: missing", name);
  }
  return true;
}

/* What the problem fixes of the operator's options. */
static void set_options(const rg_operator *op, json_t *params) {
  const char *const *option = op->benchmark->options;
  for (; option != NULL && option[0] != NULL; option += 2) {
    json_object_set_new(params, option[0], json_string(option[1]));
  }
}

static json_t *dtypes_of(const rgh_definition *d) {
  json_t *dtypes = json_object();
  for (int t = 0; t < d->op->num_tensors; t++) {
    const char *name = d->op->tensors[t].name;
    json_object_set(dtypes, name, json_object_get(rgh_definition_argument(d, name), "dtype"));
  }
  return dtypes;
}

/* The operator derives some sizes from its options; the definition's must be those. */
static bool check_derived(const rgh_definition *d, const rgh_named_size *sizes, const rgh_case *item,
                          rgh_message *why) {
  for (int k = 0; k < d->op->num_dims; k++) {
    if (d->op->dims[k].kind != RG_DIM_DERIVED) continue;
    const int64_t size = rgh_definition_dim(d, sizes, k);
    if (size < 0 || size == item->dim[k]) continue;
    return rgh_fail(why, "the tensors make %s %lld, expected %lld", d->op->dims[k].name, (long long)size,
                    (long long)item->dim[k]);
  }
  return true;
}

static bool read_workload(const rgh_definition *d, json_t *workload, rgh_case *item, rgh_message *why) {
  if (!json_is_object(workload)) return rgh_fail(why, "expected an object, got %s", rgh_json_kind(workload));
  const char *uuid = rgh_json_text(json_object_get(workload, "uuid"), "uuid", why);
  rgh_named_size sizes[RGH_MAX_AXES];
  if (uuid == NULL || !rgh_definition_sizes(d, json_object_get(workload, "axes"), sizes, why)) return false;
  json_t *params = json_object();
  bool good = read_inputs(d, json_object_get(workload, "inputs"), params, why);
  set_options(d->op, params);
  json_t *dims = good ? rgh_definition_dims(d, sizes, why) : NULL;
  json_t *made = dims != NULL ? json_pack("{s:s, s:s, s:o, s:O, s:o}", "op", d->op->name, "name", uuid, "dims", dims,
                                          "params", params, "dtypes", dtypes_of(d))
                              : NULL;
  if (dims != NULL && made == NULL) rgh_fail(why, "no memory");
  good = made != NULL && rgh_case_from_json(made, item, why);
  if (good && !check_derived(d, sizes, item, why)) {
    rgh_case_free(item);
    good = false;
  }
  json_decref(made);
  json_decref(params);
  return good;
}

/* ---- the file of them ---- */

static bool add_workload(const rgh_definition *d, json_t *line, rgh_suite *suite, rgh_message *why) {
  json_t *workload = json_object_get(line, "workload");
  const char *definition = json_string_value(json_object_get(line, "definition"));
  if (workload != NULL && definition != NULL && strcmp(definition, d->name) != 0) {
    return rgh_fail(why, "definition: is \"%.100s\", expected \"%.100s\"", definition, d->name);
  }
  if (suite->num_cases == MAX_WORKLOADS) return rgh_fail(why, "more than %d workloads", MAX_WORKLOADS);
  rgh_case *item = &suite->cases[suite->num_cases];
  if (!read_workload(d, workload != NULL ? workload : line, item, why)) return false;
  suite->num_cases++;
  for (int other = 0; other < suite->num_cases - 1; other++) {
    if (strcmp(suite->cases[other].name, item->name) == 0) {
      return rgh_fail(why, "uuid: \"%s\" is that of an earlier workload too", item->name);
    }
  }
  return true;
}

static bool is_blank(const char *text, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) {
    if (strchr(" \t\r", text[i]) == NULL || text[i] == '\0') return false;
  }
  return true;
}

static bool read_workloads(const rgh_definition *d, const char *text, size_t bytes, rgh_suite *suite,
                           rgh_message *why) {
  const char *const end = text + bytes;
  int number = 1;
  for (const char *line = text; line < end; number++) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) stop = end;
    if (!is_blank(line, (size_t)(stop - line))) {
      json_error_t error;
      json_t *json = json_loadb(line, (size_t)(stop - line), JSON_REJECT_DUPLICATES, &error);
      if (json == NULL) return rgh_fail(why, "%s:%d:%d: %s", workload_file, number, error.column, error.text);
      rgh_message reason;
      const bool good = add_workload(d, json, suite, &reason);
      json_decref(json);
      if (!good) return rgh_fail(why, "%s:%d: %s", workload_file, number, reason.text);
    }
    line = stop + 1;
  }
  return suite->num_cases > 0 || rgh_fail(why, "%s: has no workload", workload_file);
}

/* One case a line at the most. */
static size_t count_lines(const char *text, size_t bytes) {
  size_t lines = 1;
  for (size_t i = 0; i < bytes; i++) lines += text[i] == '\n';
  return lines < MAX_WORKLOADS ? lines : MAX_WORKLOADS;
}

static void set_digest(rgh_suite *suite, const char *definition, size_t definition_bytes, const char *workloads,
                       size_t workload_bytes) {
  XXH3_state_t *state = XXH3_createState();
  if (state == NULL) return; /* an empty digest is one that is not known */
  XXH3_128bits_reset(state);
  XXH3_128bits_update(state, definition, definition_bytes);
  XXH3_128bits_update(state, workloads, workload_bytes);
  const XXH128_hash_t hash = XXH3_128bits_digest(state);
  XXH3_freeState(state);
  snprintf(suite->digest, sizeof suite->digest, "xxh128:%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
}

bool rgh_problem_parse(const char *definition, size_t definition_bytes, const char *workloads, size_t workload_bytes,
                       rgh_suite *suite, rgh_message *why) {
  memset(suite, 0, sizeof *suite);
  rgh_definition d;
  if (!rgh_definition_parse(definition, definition_bytes, definition_file, &d, why)) return false;
  suite->name = strdup(d.name);
  suite->description = calloc(1, 1);
  suite->cases = calloc(count_lines(workloads, workload_bytes), sizeof *suite->cases);
  bool good = suite->name != NULL && suite->description != NULL && suite->cases != NULL;
  good = good ? read_workloads(&d, workloads, workload_bytes, suite, why) : rgh_fail(why, "no memory");
  set_digest(suite, definition, definition_bytes, workloads, workload_bytes);
  rgh_definition_free(&d);
  if (!good) rgh_suite_free(suite);
  return good;
}

static char *read_part(const char *folder, const char *name, size_t *bytes, rgh_message *why) {
  char path[PATH_BYTES];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= PATH_BYTES) {
    rgh_fail(why, "the path of the problem is too long");
    return NULL;
  }
  return rgh_read_file(path, bytes, why);
}

bool rgh_problem_load(const char *folder, rgh_suite *suite, rgh_message *why) {
  memset(suite, 0, sizeof *suite);
  size_t definition_bytes = 0, workload_bytes = 0;
  char *definition = read_part(folder, definition_file, &definition_bytes, why);
  char *workloads = definition != NULL ? read_part(folder, workload_file, &workload_bytes, why) : NULL;
  rgh_message reason;
  bool good = workloads != NULL;
  if (good && !rgh_problem_parse(definition, definition_bytes, workloads, workload_bytes, suite, &reason)) {
    good = rgh_fail(why, "%.300s/%s", folder, reason.text);
  }
  free(definition);
  free(workloads);
  return good;
}
