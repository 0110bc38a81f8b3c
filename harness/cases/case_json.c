#include "harness/cases/case_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cases/fill.h"
#include "harness/cases/json_value.h"
#include "harness/cases/layout_json.h"

enum { MAX_NAME = 96 };

/* ---- names of the operator's tables ---- */

static int find_dim(const rg_operator *op, const char *name) {
  for (int d = 0; d < op->num_dims; ++d) {
    if (op->dims[d].kind != RG_DIM_DERIVED && strcmp(op->dims[d].name, name) == 0) return d;
  }
  return -1;
}

static bool unknown(const rg_operator *op, const char *group, const char *key, const char *what, rgh_message *why) {
  return rgh_fail(why, "%s.%s: %s has no %s of that name", group, key, op->name, what);
}

/* ---- the groups of a case ---- */

static bool read_dims(json_t *json, rgh_case *item, rgh_message *why) {
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    const int d = find_dim(item->op, key);
    if (d < 0) return unknown(item->op, "dims", key, "size", why);
    char path[160];
    snprintf(path, sizeof path, "dims.%s", key);
    if (!rgh_json_size(value, 0, path, &item->dim[d], why)) return false;
  }
  return true;
}

static bool read_fill_name(const json_t *value, const char *path, rgh_fill *fill, rgh_message *why) {
  const char *name = rgh_json_text(value, path, why);
  if (name == NULL) return false;
  const rgh_fill_kind kind = rgh_fill_from_name(name);
  if (kind == RGH_NUM_FILLS) return rgh_fail(why, "%s: there is no fill \"%s\"", path, name);
  *fill = rgh_fill_default(kind);
  return true;
}

static bool read_param(const json_t *value, const rg_param_spec *spec, rg_param_value *param, rgh_message *why) {
  switch (spec->kind) {
    case RG_PARAM_DOUBLE:
      if (!json_is_number(value)) {
        return rgh_fail(why, "params.%s: expected a number, got %s", spec->name, rgh_json_kind(value));
      }
      param->number = json_number_value(value);
      return true;
    case RG_PARAM_INT64:
      if (!json_is_integer(value)) {
        return rgh_fail(why, "params.%s: expected an integer, got %s", spec->name, rgh_json_kind(value));
      }
      param->integer = json_integer_value(value);
      return true;
    case RG_PARAM_BOOL:
      if (!json_is_boolean(value)) {
        return rgh_fail(why, "params.%s: expected true or false, got %s", spec->name, rgh_json_kind(value));
      }
      param->flag = json_is_true(value);
      return true;
    case RG_PARAM_ENUM:
      break;
  }
  char path[160];
  snprintf(path, sizeof path, "params.%s", spec->name);
  const char *name = rgh_json_text(value, path, why);
  if (name == NULL) return false;
  for (param->choice = 0; spec->values[param->choice] != NULL; ++param->choice) {
    if (strcmp(name, spec->values[param->choice]) == 0) return true;
  }
  return rgh_fail(why, "%s: there is no value \"%s\"", path, name);
}

static bool read_params(json_t *json, rgh_case *item, rgh_message *why) {
  const rg_operator *op = item->op;
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    const int p = rg_dev_find_param(op, key), t = rg_dev_find_tensor(op, key);
    const bool integer_input = t >= 0 && op->tensors[t].role == RG_INPUT &&
                               (op->tensors[t].dtypes == RG_DTYPES_INT64 || op->tensors[t].dtypes == RG_DTYPES_INDEX);
    char path[160];
    snprintf(path, sizeof path, "params.%s", key);
    if (p >= 0) {
      if (!read_param(value, &op->params[p], &item->param[p], why)) return false;
    } else if (integer_input) {
      if (!read_fill_name(value, path, &item->fill[t], why)) return false;
    } else {
      return unknown(op, "params", key, "option", why);
    }
  }
  return true;
}

static bool read_dtypes(json_t *json, rgh_case *item, rgh_message *why) {
  const rg_operator *op = item->op;
  int named_by[RG_MAX_TENSORS]; /* by dtype group */
  for (int g = 0; g < RG_MAX_TENSORS; ++g) named_by[g] = -1;
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    const int named = rg_dev_find_tensor(op, key);
    if (named < 0) return unknown(op, "dtypes", key, "tensor", why);
    char path[160];
    snprintf(path, sizeof path, "dtypes.%s", key);
    const char *name = rgh_json_text(value, path, why);
    if (name == NULL) return false;
    const rg_dtype dtype = rg_dtype_from_name(name);
    if (dtype == RG_DTYPE_NONE) return rgh_fail(why, "%s: there is no dtype \"%s\"", path, name);
    const int group = op->tensors[named].dtype_group;
    if (named_by[group] >= 0 && item->dtype[named] != dtype) {
      return rgh_fail(why, "%s: %s, of the same dtype group, is %s", path, op->tensors[named_by[group]].name,
                      rg_dtype_name(item->dtype[named]));
    }
    named_by[group] = named;
    for (int t = 0; t < op->num_tensors; ++t) {
      if (op->tensors[t].dtype_group == group) item->dtype[t] = dtype;
    }
  }
  return true;
}

static bool read_layouts(json_t *json, rgh_case *item, rgh_message *why) {
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    const int t = rg_dev_find_tensor(item->op, key);
    if (t < 0) return unknown(item->op, "layouts", key, "tensor", why);
    if (!json_is_object(value))
      return rgh_fail(why, "layouts.%s: expected an object, got %s", key, rgh_json_kind(value));
    if (!rgh_layout_from_json(value, item->op->tensors[t].rank, key, &item->layout[t], why)) return false;
  }
  return true;
}

static bool read_inputs(json_t *json, rgh_case *item, rgh_message *why) {
  const char *tensor, *key;
  json_t *input, *value;
  json_object_foreach(json, tensor, input) {
    const int t = rg_dev_find_tensor(item->op, tensor);
    if (t < 0 || item->op->tensors[t].role != RG_INPUT) return unknown(item->op, "inputs", tensor, "input", why);
    if (!json_is_object(input))
      return rgh_fail(why, "inputs.%s: expected an object, got %s", tensor, rgh_json_kind(input));
    if (item->fill[t].kind != RGH_FILL_DEFAULT) {
      return rgh_fail(why, "inputs.%s: params has already named its fill", tensor);
    }
    char path[160];
    snprintf(path, sizeof path, "inputs.%s.fill", tensor);
    if (!read_fill_name(json_object_get(input, "fill"), path, &item->fill[t], why)) return false;
    json_object_foreach(input, key, value) {
      if (strcmp(key, "fill") == 0) continue;
      if (!json_is_number(value) && !json_is_boolean(value)) {
        return rgh_fail(why, "inputs.%s.%s: expected a number, got %s", tensor, key, rgh_json_kind(value));
      }
      const double number = json_is_boolean(value) ? json_is_true(value) : json_number_value(value);
      if (!rgh_fill_set(&item->fill[t], key, number)) {
        return rgh_fail(why, "inputs.%s.%s: fill \"%s\" takes no such number", tensor, key,
                        rgh_fill_name(item->fill[t].kind));
      }
    }
  }
  return true;
}

/* "unwanted" and "shared": a list of tensors. */
static bool read_tensor_set(const json_t *json, const rg_operator *op, const char *group, uint32_t allowed,
                            uint32_t *set, rgh_message *why) {
  for (size_t i = 0; i < json_array_size(json); ++i) {
    char path[160];
    snprintf(path, sizeof path, "%s[%zu]", group, i);
    const char *name = rgh_json_text(json_array_get(json, i), path, why);
    if (name == NULL) return false;
    const int t = rg_dev_find_tensor(op, name);
    if (t < 0 || (allowed & RG_BIT(t)) == 0) return rgh_fail(why, "%s: \"%s\" cannot stand here", path, name);
    *set |= RG_BIT(t);
  }
  return true;
}

/* ---- a whole case ---- */

static bool check_name(const char *name, rgh_message *why) {
  const size_t length = strlen(name);
  /* Names stand in tables, in file names and on command lines. */
  static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
  if (length >= 1 && length <= MAX_NAME && strspn(name, allowed) == length) return true;
  return rgh_fail(why, "name: expected 1 to %d letters, digits, '_', '.' or '-'", MAX_NAME);
}

/* One row per group; the order in which they are read is the order of the rows. */
typedef bool (*group_reader)(json_t *json, rgh_case *item, rgh_message *why);

static bool read_unwanted(json_t *json, rgh_case *item, rgh_message *why) {
  uint32_t outputs = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) outputs |= item->op->tensors[t].role == RG_OUTPUT ? RG_BIT(t) : 0;
  return read_tensor_set(json, item->op, "unwanted", outputs, &item->unwanted, why);
}

static bool read_shared(json_t *json, rgh_case *item, rgh_message *why) {
  uint32_t tables = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) tables |= item->op->tensors[t].broadcast_first ? RG_BIT(t) : 0;
  return read_tensor_set(json, item->op, "shared", tables, &item->shared, why);
}

static const struct {
  const char *key;
  json_type type;
  bool needed;
  group_reader read; /* NULL: read before the others */
} groups[] = {
    {"op", JSON_STRING, true, NULL},
    {"name", JSON_STRING, true, NULL},
    {"dims", JSON_OBJECT, true, read_dims},
    {"params", JSON_OBJECT, false, read_params},
    {"dtypes", JSON_OBJECT, false, read_dtypes},
    {"layouts", JSON_OBJECT, false, read_layouts},
    {"inputs", JSON_OBJECT, false, read_inputs},
    {"unwanted", JSON_ARRAY, false, read_unwanted},
    {"shared", JSON_ARRAY, false, read_shared},
};
enum { NUM_GROUPS = sizeof groups / sizeof groups[0] };

/* Every key is known, every needed one is there, and each has the right type. */
static bool check_keys(json_t *json, rgh_message *why) {
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    int g = 0;
    while (g < NUM_GROUPS && strcmp(groups[g].key, key) != 0) ++g;
    if (g == NUM_GROUPS) return rgh_fail(why, "%s: unknown key", key);
    if (json_typeof(value) != groups[g].type) {
      static const char *const wanted[] = {
          [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_STRING] = "a string"};
      return rgh_fail(why, "%s: expected %s, got %s", key, wanted[groups[g].type], rgh_json_kind(value));
    }
  }
  for (int g = 0; g < NUM_GROUPS; ++g) {
    if (groups[g].needed && json_object_get(json, groups[g].key) == NULL) {
      return rgh_fail(why, "%s: missing", groups[g].key);
    }
  }
  return true;
}

bool rgh_case_from_json(json_t *json, rgh_case *item, rgh_message *why) {
  if (!json_is_object(json)) return rgh_fail(why, "expected an object, got %s", rgh_json_kind(json));
  if (!check_keys(json, why)) return false;
  const char *op = json_string_value(json_object_get(json, "op"));
  const char *name = json_string_value(json_object_get(json, "name"));
  const int index = rg_dev_find_operator(op);
  if (index < 0) return rgh_fail(why, "op: there is no operator \"%s\"", op);
  if (!check_name(name, why)) return false;

  rgh_case_init(item, rg_dev_operator_at(index));
  bool good = true;
  for (int g = 0; g < NUM_GROUPS && good; ++g) {
    json_t *group = json_object_get(json, groups[g].key);
    if (groups[g].read != NULL && group != NULL) good = groups[g].read(group, item, why);
  }
  if (!good || !rgh_case_finish(item, why)) return false;
  item->name = malloc(strlen(name) + 1);
  if (item->name == NULL) return rgh_fail(why, "no memory");
  strcpy(item->name, name);
  return true;
}
