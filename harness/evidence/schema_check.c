#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/cases/json_value.h"
#include "harness/evidence/schema_node.h"

/* Deeper than any record; a hostile file cannot make the checker run out of stack. */
enum { MAX_DEPTH = 64, PATH_BYTES = 160 };

/* Where in the file the checker is: the way back to the root, spelt out only when there is a problem to report. */
typedef struct place {
  const struct place *parent;
  const char *key; /* NULL: an entry of a list */
  size_t index;
  int depth;
} place;

static void spell(const place *here, char path[PATH_BYTES]) {
  if (here == NULL || here->parent == NULL) {
    path[0] = '\0';
    return;
  }
  spell(here->parent, path);
  const size_t used = strlen(path);
  if (here->key != NULL) {
    snprintf(path + used, PATH_BYTES - used, "%s%.60s", used > 0 ? "." : "", here->key);
  } else {
    snprintf(path + used, PATH_BYTES - used, "[%zu]", here->index);
  }
}

static void report(rge_problems *problems, rge_weight weight, const place *here, const char *what) {
  char path[PATH_BYTES];
  spell(here, path);
  rge_problem_add(problems, weight, "%s%s%s", path, path[0] != '\0' ? ": " : "", what);
}

static unsigned kind_of(const json_t *value) {
  switch (json_typeof(value)) {
    case JSON_OBJECT:
      return RGE_KIND_OBJECT;
    case JSON_ARRAY:
      return RGE_KIND_LIST;
    case JSON_STRING:
      return RGE_KIND_TEXT;
    case JSON_INTEGER:
      return RGE_KIND_INTEGER;
    case JSON_REAL:
      /* In JSON Schema 2.0 is an integer too. */
      return json_real_value(value) == floor(json_real_value(value)) ? RGE_KIND_NUMBER | RGE_KIND_INTEGER
                                                                     : RGE_KIND_NUMBER;
    case JSON_NULL:
      return RGE_KIND_NULL;
    default:
      return RGE_KIND_BOOLEAN;
  }
}

static void name_kinds(unsigned kinds, char *text, size_t room) {
  static const char *const names[] = {"an object", "a list", "a string", "an integer", "a number", "a boolean", "null"};
  if (kinds & RGE_KIND_NUMBER) kinds &= ~(unsigned)RGE_KIND_INTEGER;
  text[0] = '\0';
  for (int k = 0; k < 7; k++) {
    const size_t used = strlen(text);
    if (kinds & 1u << k) snprintf(text + used, room - used, "%s%s", used > 0 ? " or " : "", names[k]);
  }
}

static void check(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems);

static void check_number(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems) {
  const double number = json_number_value(value);
  char what[128];
  if (node->has_minimum && (node->minimum_excluded ? number <= node->minimum : number < node->minimum)) {
    snprintf(what, sizeof what, "%.12g is %s %.12g", number, node->minimum_excluded ? "not above" : "below",
             node->minimum);
    report(problems, RGE_UNUSABLE, here, what);
  }
  if (node->has_maximum && number > node->maximum) {
    snprintf(what, sizeof what, "%.12g is above %.12g", number, node->maximum);
    report(problems, RGE_UNUSABLE, here, what);
  }
}

static void check_text(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems) {
  char what[256];
  if (json_string_length(value) < node->least_length) report(problems, RGE_UNUSABLE, here, "is too short");
  if (node->has_pattern && regexec(&node->pattern, json_string_value(value), 0, NULL, 0) != 0) {
    snprintf(what, sizeof what, "'%.60s' does not match %.100s", json_string_value(value), node->pattern_text);
    report(problems, RGE_UNUSABLE, here, what);
  }
}

/* Whether the entries are but numbers, all fine: most of a record is lists of samples, and the long way takes long. */
static bool are_plain_numbers(const rge_schema_node *node, const json_t *list) {
  if (node->kinds != (RGE_KIND_NUMBER | RGE_KIND_INTEGER) || node->allowed != NULL || node->constant != NULL ||
      node->all != NULL || node->any != NULL) {
    return false;
  }
  const double least = node->has_minimum ? node->minimum : -INFINITY;
  const double most = node->has_maximum ? node->maximum : INFINITY;
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *entry = json_array_get(list, i);
    if (!json_is_real(entry)) return false;
    const double number = json_real_value(entry);
    if (number < least || number > most || (node->minimum_excluded && number == least)) return false;
  }
  return true;
}

static void check_list(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems) {
  if (json_array_size(value) < node->least_items) report(problems, RGE_UNUSABLE, here, "has too few entries");
  if (node->items == NULL || are_plain_numbers(node->items, value)) return;
  for (size_t i = 0; i < json_array_size(value); i++) {
    const place entry = {here, NULL, i, here->depth + 1};
    check(node->items, json_array_get(value, i), &entry, problems);
  }
}

static const rge_schema_node *node_for(const rge_schema_node *node, const char *key, bool *known) {
  for (int p = 0; p < node->num_properties; p++) {
    *known = strcmp(node->properties[p].key, key) == 0;
    if (*known) return node->properties[p].node;
  }
  *known = false;
  return node->other;
}

static void check_object(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems) {
  char what[128];
  for (size_t i = 0; i < json_array_size(node->required); i++) {
    const char *key = json_string_value(json_array_get(node->required, i));
    if (json_object_get(value, key) != NULL) continue;
    snprintf(what, sizeof what, "'%.60s' is missing", key);
    report(problems, RGE_LOWERS, here, what);
  }
  if (node->num_properties == 0 && node->other == NULL && !node->closed) return;
  const char *key;
  json_t *inner;
  json_object_foreach((json_t *)value, key, inner) {
    bool known;
    const rge_schema_node *of = node_for(node, key, &known);
    const place entry = {here, key, 0, here->depth + 1};
    if (of != NULL) check(of, inner, &entry, problems);
    if (!known && node->closed) report(problems, RGE_UNUSABLE, &entry, "is not a key that belongs here");
  }
}

static bool is_listed(const json_t *list, const json_t *value) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (json_equal(json_array_get(list, i), value)) return true;
  }
  return false;
}

static bool holds_any(const rge_schema_node *node, const json_t *value, const place *here) {
  for (const rge_schema_node **one = node->any; *one != NULL; one++) {
    rge_problems found = {0};
    check(*one, value, here, &found);
    const bool holds = !rge_problems_reach(&found, RGE_NOTE);
    rge_problems_free(&found);
    if (holds) return true;
  }
  return false;
}

static void check(const rge_schema_node *node, const json_t *value, const place *here, rge_problems *problems) {
  const unsigned kind = kind_of(value);
  if (here->depth > MAX_DEPTH) {
    report(problems, RGE_UNUSABLE, here, "is nested too deep");
    return;
  }
  if (node->kinds != 0 && (node->kinds & kind) == 0) {
    char expected[96], what[160];
    name_kinds(node->kinds, expected, sizeof expected);
    snprintf(what, sizeof what, "expected %s, got %s", expected, rgh_json_kind(value));
    report(problems, RGE_UNUSABLE, here, what);
    return;
  }
  if (kind & (RGE_KIND_NUMBER | RGE_KIND_INTEGER)) check_number(node, value, here, problems);
  if (kind & RGE_KIND_TEXT) check_text(node, value, here, problems);
  if (kind & RGE_KIND_LIST) check_list(node, value, here, problems);
  if (kind & RGE_KIND_OBJECT) check_object(node, value, here, problems);
  if ((node->allowed != NULL && !is_listed(node->allowed, value)) ||
      (node->constant != NULL && !json_equal(node->constant, value))) {
    report(problems, RGE_UNUSABLE, here, "is not one of the values allowed here");
  }
  for (const rge_schema_node **one = node->all; one != NULL && *one != NULL; one++) check(*one, value, here, problems);
  if (node->any != NULL && !holds_any(node, value, here)) report(problems, RGE_UNUSABLE, here, "fits no alternative");
}

void rge_schema_check(const rge_schema *schema, const json_t *value, rge_problems *problems) {
  const place root = {NULL, NULL, 0, 0};
  check(schema->root, value, &root, problems);
}
