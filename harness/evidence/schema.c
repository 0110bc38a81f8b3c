#include <stdlib.h>
#include <string.h>

#include "harness/evidence/file.h"
#include "harness/evidence/schema_node.h"

static const rge_schema_node *compile(rge_schema *schema, const json_t *source, rgh_message *why);

/* ---- keywords: each reads its value into the node; false: *why says what is wrong with it ---- */

typedef bool (*keyword)(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why);

static bool read_nothing(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)node, (void)value, (void)why;
  return true;
}

static unsigned kind_named(const char *name) {
  static const struct {
    const char *name;
    unsigned kind;
  } kinds[] = {{"object", RGE_KIND_OBJECT},   {"array", RGE_KIND_LIST},
               {"string", RGE_KIND_TEXT},     {"integer", RGE_KIND_INTEGER},
               {"boolean", RGE_KIND_BOOLEAN}, {"number", RGE_KIND_NUMBER | RGE_KIND_INTEGER},
               {"null", RGE_KIND_NULL}};
  for (size_t k = 0; name != NULL && k < sizeof kinds / sizeof kinds[0]; k++) {
    if (strcmp(kinds[k].name, name) == 0) return kinds[k].kind;
  }
  return 0;
}

static bool read_type(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema;
  if (json_is_string(value)) node->kinds = kind_named(json_string_value(value));
  for (size_t i = 0; i < json_array_size(value); i++) {
    node->kinds |= kind_named(json_string_value(json_array_get(value, i)));
  }
  return node->kinds != 0 || rgh_fail(why, "type: names no type");
}

static bool read_enum(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->allowed = value;
  return true;
}

static bool read_const(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->constant = value;
  return true;
}

static bool read_minimum(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->has_minimum = true;
  node->minimum = json_number_value(value);
  return true;
}

static bool read_exclusive_minimum(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  node->minimum_excluded = true;
  return read_minimum(schema, node, value, why);
}

static bool read_maximum(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->has_maximum = true;
  node->maximum = json_number_value(value);
  return true;
}

static bool read_least_items(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->least_items = (size_t)json_integer_value(value);
  return true;
}

static bool read_least_length(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->least_length = (size_t)json_integer_value(value);
  return true;
}

/* POSIX knows no \d. */
static bool read_pattern(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema;
  char posix[512];
  size_t used = 0;
  node->pattern_text = json_string_value(value);
  for (const char *c = node->pattern_text; c != NULL && *c != '\0' && used + 8 < sizeof posix; c++) {
    if (c[0] == '\\' && c[1] == 'd') {
      memcpy(posix + used, "[0-9]", 5);
      used += 5;
      c++;
    } else {
      posix[used++] = *c;
    }
  }
  posix[used] = '\0';
  node->has_pattern = node->pattern_text != NULL && regcomp(&node->pattern, posix, REG_EXTENDED | REG_NOSUB) == 0;
  return node->has_pattern || rgh_fail(why, "pattern: cannot be read");
}

static bool read_required(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  (void)schema, (void)why;
  node->required = value;
  return true;
}

static bool read_properties(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  node->properties = calloc(json_object_size(value) + 1, sizeof *node->properties);
  if (node->properties == NULL) return rgh_fail(why, "no memory");
  const char *key;
  json_t *inner;
  json_object_foreach((json_t *)value, key, inner) {
    rge_schema_property *property = &node->properties[node->num_properties++];
    property->key = key;
    property->node = compile(schema, inner, why);
    if (property->node == NULL) return false;
  }
  return true;
}

static bool read_other(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  node->closed = json_is_false(value);
  if (json_is_boolean(value)) return true;
  node->other = compile(schema, value, why);
  return node->other != NULL;
}

static bool read_items(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  node->items = compile(schema, value, why);
  return node->items != NULL;
}

static bool read_list(rge_schema *schema, const rge_schema_node ***list, const json_t *value, rgh_message *why) {
  *list = calloc(json_array_size(value) + 1, sizeof **list);
  if (*list == NULL) return rgh_fail(why, "no memory");
  for (size_t i = 0; i < json_array_size(value); i++) {
    (*list)[i] = compile(schema, json_array_get(value, i), why);
    if ((*list)[i] == NULL) return false;
  }
  return true;
}

static bool read_all(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  return read_list(schema, &node->all, value, why);
}

static bool read_any(rge_schema *schema, rge_schema_node *node, const json_t *value, rgh_message *why) {
  return read_list(schema, &node->any, value, why);
}

static const struct {
  const char *name;
  keyword read;
} keywords[] = {{"$schema", read_nothing},
                {"$id", read_nothing},
                {"$defs", read_nothing},
                {"$comment", read_nothing},
                {"title", read_nothing},
                {"description", read_nothing},
                {"type", read_type},
                {"enum", read_enum},
                {"const", read_const},
                {"minimum", read_minimum},
                {"exclusiveMinimum", read_exclusive_minimum},
                {"maximum", read_maximum},
                {"minItems", read_least_items},
                {"minLength", read_least_length},
                {"pattern", read_pattern},
                {"required", read_required},
                {"properties", read_properties},
                {"additionalProperties", read_other},
                {"items", read_items},
                {"allOf", read_all},
                {"anyOf", read_any}};
enum { NUM_KEYWORDS = sizeof keywords / sizeof keywords[0] };

/* ---- nodes ---- */

/* What "#/$defs/NAME" stands for; *source itself where it is no reference. */
static const json_t *follow(const rge_schema *schema, const json_t *source, rgh_message *why) {
  static const char prefix[] = "#/$defs/";
  for (int hops = 0; hops < 16; hops++) {
    const char *reference = json_string_value(json_object_get(source, "$ref"));
    if (reference == NULL || json_object_size(source) > 1 + (json_object_get(source, "description") != NULL)) {
      return source;
    }
    const size_t length = sizeof prefix - 1;
    source = strncmp(reference, prefix, length) == 0
                 ? json_object_get(json_object_get(schema->source, "$defs"), reference + length)
                 : NULL;
    if (source == NULL) {
      rgh_fail(why, "$ref: '%s' leads nowhere", reference);
      return NULL;
    }
  }
  rgh_fail(why, "$ref: goes round in circles");
  return NULL;
}

static bool read_keywords(rge_schema *schema, rge_schema_node *node, rgh_message *why) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)node->source, key, value) {
    int k = 0;
    while (k < NUM_KEYWORDS && strcmp(keywords[k].name, key) != 0) k++;
    if (k == NUM_KEYWORDS) return rgh_fail(why, "'%s' is a keyword that is not known here", key);
    if (!keywords[k].read(schema, node, value, why)) return false;
  }
  return true;
}

static const rge_schema_node *compile(rge_schema *schema, const json_t *source, rgh_message *why) {
  source = follow(schema, source, why);
  if (source == NULL) return NULL;
  if (!json_is_object(source)) {
    rgh_fail(why, "a schema is an object");
    return NULL;
  }
  for (const rge_schema_node *node = schema->nodes; node != NULL; node = node->next) {
    if (node->source == source) return node; /* compiled already, or being compiled: a schema may hold itself */
  }
  rge_schema_node *node = calloc(1, sizeof *node);
  if (node == NULL) {
    rgh_fail(why, "no memory");
    return NULL;
  }
  node->source = source;
  node->next = schema->nodes;
  schema->nodes = node;
  return read_keywords(schema, node, why) ? node : NULL;
}

rge_schema *rge_schema_load(const char *path, rgh_message *why) {
  rge_file file;
  if (!rge_file_read(path, &file, why)) return NULL;
  rge_schema *schema = calloc(1, sizeof *schema);
  rgh_message what;
  if (schema == NULL) {
    rgh_fail(why, "%s: no memory", path);
  } else {
    schema->source = json_incref(file.json);
    schema->root = compile(schema, schema->source, &what);
    if (schema->root == NULL) {
      rgh_fail(why, "%s: %s", path, what.text);
      rge_schema_free(schema);
      schema = NULL;
    }
  }
  rge_file_free(&file);
  return schema;
}

void rge_schema_free(rge_schema *schema) {
  if (schema == NULL) return;
  for (rge_schema_node *node = schema->nodes, *next; node != NULL; node = next) {
    next = node->next;
    if (node->has_pattern) regfree(&node->pattern);
    free(node->properties);
    free(node->all);
    free(node->any);
    free(node);
  }
  json_decref(schema->source);
  free(schema);
}
