#include "harness/cases/definition.h"

#include <string.h>

#include "harness/cases/json_value.h"

enum { PATH_BYTES = 256 };

/* ---- which operator ---- */

static const rg_tensor_spec *find_tensor(const rg_operator *op, const char *name, rg_role role) {
  const int t = rg_dev_find_tensor(op, name);
  return t >= 0 && op->tensors[t].role == role ? &op->tensors[t] : NULL;
}

static bool is_argument(const rg_operator *op, const char *name) {
  for (const char *const *argument = op->benchmark->arguments; *argument != NULL; argument++) {
    if (strcmp(*argument, name) == 0) return true;
  }
  return false;
}

/* The operator with a benchmark that has the most of the outputs. */
static const rg_operator *find_operator(json_t *outputs, rgh_message *why) {
  const rg_operator *best = NULL;
  int most = 0;
  for (int id = 0; id < RG_NUM_OPS; id++) {
    const rg_operator *op = rg_dev_operator((rg_op_id)id, RG_BACKWARD);
    if (op->benchmark == NULL) continue;
    int shared = 0;
    const char *name;
    json_t *value;
    json_object_foreach(outputs, name, value) shared += find_tensor(op, name, RG_OUTPUT) != NULL;
    if (shared > most) {
      most = shared;
      best = op;
    }
  }
  if (best == NULL) rgh_fail(why, "outputs: no operator of ropegrad with a SOL-ExecBench problem has any of these");
  return best;
}

/* ---- reading ---- */

static bool read_axis(const char *name, const json_t *axis, rgh_named_size *made, rgh_message *why) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "axes.%.100s.type", name);
  const char *type = rgh_json_text(json_object_get(axis, "type"), path, why);
  if (type == NULL) return false;
  *made = (rgh_named_size){.name = name, .value = -1};
  if (strcmp(type, "var") == 0) return true;
  if (strcmp(type, "const") == 0) {
    snprintf(path, sizeof path, "axes.%.100s.value", name);
    return rgh_json_size(json_object_get(axis, "value"), 0, path, &made->value, why);
  }
  if (strcmp(type, "expr") == 0) {
    snprintf(path, sizeof path, "axes.%.100s.expression", name);
    return rgh_json_text(json_object_get(axis, "expression"), path, why) != NULL;
  }
  return rgh_fail(why, "%s: there is no kind of axis \"%.60s\"", path, type);
}

static bool read_axes(rgh_definition *d, json_t *axes, rgh_message *why) {
  const char *name;
  json_t *axis;
  json_object_foreach(axes, name, axis) {
    if (d->num_axes == RGH_MAX_AXES) return rgh_fail(why, "axes: more than %d", RGH_MAX_AXES);
    if (!read_axis(name, axis, &d->const_axes[d->num_axes], why)) return false;
    d->num_axes++;
  }
  return true;
}

static bool check_shape(const rgh_definition *d, const json_t *shape, int rank, const char *group, const char *name,
                        rgh_message *why) {
  if (!json_is_array(shape) || json_array_size(shape) != (size_t)rank) {
    return rgh_fail(why, "%s.%s.shape: expected a list of %d axes, got %s of %zu", group, name, rank,
                    rgh_json_kind(shape), json_array_size(shape));
  }
  for (int a = 0; a < rank; a++) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "%s.%.100s.shape[%d]", group, name, a);
    const char *axis = rgh_json_text(json_array_get(shape, (size_t)a), path, why);
    if (axis == NULL) return false;
    if (!rgh_definition_is_literal(axis) && rgh_definition_axis(d, axis) < 0)
      return rgh_fail(why, "%s: there is no axis \"%.60s\"", path, axis);
  }
  return true;
}

/* Of one input or output. */
static bool check_argument(const rgh_definition *d, const char *group, rg_role role, const char *name,
                           const json_t *value, rgh_message *why) {
  const rg_tensor_spec *spec = find_tensor(d->op, name, role);
  if (spec == NULL && (role == RG_OUTPUT || !is_argument(d->op, name) || find_tensor(d->op, name, RG_OUTPUT) != NULL)) {
    return rgh_fail(why, "%s.%.100s: the problem of %s has no such %s", group, name, d->op->name,
                    role == RG_OUTPUT ? "output" : "input");
  }
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s.%.100s.dtype", group, name);
  const char *dtype = rgh_json_text(json_object_get(value, "dtype"), path, why);
  if (dtype == NULL) return false;
  const json_t *shape = json_object_get(value, "shape");
  if (spec == NULL) {
    return json_is_null(shape) ||
           rgh_fail(why, "%s.%s.shape: expected null, for a number, got %s", group, name, rgh_json_kind(shape));
  }
  if (rg_dtype_from_name(dtype) == RG_DTYPE_NONE) {
    return rgh_fail(why, "%s: ropegrad has no dtype \"%.60s\"", path, dtype);
  }
  return check_shape(d, shape, spec->rank, group, name, why);
}

static bool check_arguments(const rgh_definition *d, rgh_message *why) {
  static const struct {
    const char *key;
    rg_role role;
  } groups[] = {{"inputs", RG_INPUT}, {"outputs", RG_OUTPUT}};
  for (int g = 0; g < 2; g++) {
    const char *name;
    json_t *value;
    json_object_foreach(json_object_get(d->root, groups[g].key), name, value) {
      if (!check_argument(d, groups[g].key, groups[g].role, name, value, why)) return false;
    }
  }
  for (const char *const *name = d->op->benchmark->arguments; *name != NULL; name++) {
    if (rgh_definition_argument(d, *name) == NULL) {
      return rgh_fail(why, "%s.%s: missing; the problem of %s has it",
                      find_tensor(d->op, *name, RG_OUTPUT) != NULL ? "outputs" : "inputs", *name, d->op->name);
    }
  }
  return true;
}

static bool read_root(rgh_definition *d, rgh_message *why) {
  if (!json_is_object(d->root)) return rgh_fail(why, "expected an object, got %s", rgh_json_kind(d->root));
  static const char *const objects[] = {"axes", "inputs", "outputs"};
  for (int o = 0; o < 3; o++) {
    const json_t *value = json_object_get(d->root, objects[o]);
    if (!json_is_object(value)) {
      return rgh_fail(why, "%s: expected an object, got %s", objects[o], rgh_json_kind(value));
    }
  }
  d->name = rgh_json_text(json_object_get(d->root, "name"), "name", why);
  if (d->name == NULL) return false;
  d->op = find_operator(json_object_get(d->root, "outputs"), why);
  return d->op != NULL && read_axes(d, json_object_get(d->root, "axes"), why) && check_arguments(d, why);
}

bool rgh_definition_parse(const char *text, size_t bytes, const char *file, rgh_definition *definition,
                          rgh_message *why) {
  *definition = (rgh_definition){.num_axes = 0};
  json_error_t error;
  definition->root = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
  if (definition->root == NULL) return rgh_fail(why, "%s:%d:%d: %s", file, error.line, error.column, error.text);
  rgh_message reason;
  if (read_root(definition, &reason)) return true;
  rgh_definition_free(definition);
  return rgh_fail(why, "%s: %s", file, reason.text);
}

void rgh_definition_free(rgh_definition *definition) {
  json_decref(definition->root);
  *definition = (rgh_definition){.num_axes = 0};
}

json_t *rgh_definition_argument(const rgh_definition *definition, const char *name) {
  json_t *found = json_object_get(json_object_get(definition->root, "inputs"), name);
  return found != NULL ? found : json_object_get(json_object_get(definition->root, "outputs"), name);
}
