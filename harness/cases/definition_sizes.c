#include <stdlib.h>
#include <string.h>

#include "harness/cases/case.h"
#include "harness/cases/definition.h"
#include "harness/cases/json_value.h"

enum { PATH_BYTES = 256 };

bool rgh_definition_is_literal(const char *text) { return *text != '\0' && text[strspn(text, "0123456789")] == '\0'; }

int rgh_definition_axis(const rgh_definition *definition, const char *name) {
  for (int a = 0; a < definition->num_axes; a++) {
    if (strcmp(definition->const_axes[a].name, name) == 0) return a;
  }
  return -1;
}

static json_t *axis_of(const rgh_definition *d, int index) {
  return json_object_get(json_object_get(d->root, "axes"), d->const_axes[index].name);
}

static bool is_kind(const json_t *axis, const char *kind) {
  return strcmp(json_string_value(json_object_get(axis, "type")), kind) == 0;
}

bool rgh_definition_sizes(const rgh_definition *d, json_t *given, rgh_named_size sizes[RGH_MAX_AXES],
                          rgh_message *why) {
  if (!json_is_object(given)) return rgh_fail(why, "axes: expected an object, got %s", rgh_json_kind(given));
  rgh_named_size known[RGH_MAX_AXES];
  memcpy(known, d->const_axes, sizeof known);
  const char *name;
  json_t *value;
  json_object_foreach(given, name, value) {
    char path[PATH_BYTES];
    snprintf(path, sizeof path, "axes.%.100s", name);
    const int a = rgh_definition_axis(d, name);
    if (a < 0 || !is_kind(axis_of(d, a), "var")) {
      return rgh_fail(why, "%s: the definition has no var axis of that name", path);
    }
    if (!rgh_json_size(value, 0, path, &known[a].value, why)) return false;
  }
  memcpy(sizes, known, sizeof known);
  for (int a = 0; a < d->num_axes; a++) {
    const json_t *axis = axis_of(d, a);
    if (known[a].value >= 0) continue;
    if (is_kind(axis, "var")) return rgh_fail(why, "axes.%.100s: missing", known[a].name);
    rgh_message reason;
    const char *text = json_string_value(json_object_get(axis, "expression"));
    if (!rgh_expression(text, known, d->num_axes, &sizes[a].value, &reason)) {
      return rgh_fail(why, "axes.%.100s, \"%.100s\": %s", known[a].name, text, reason.text);
    }
    if (sizes[a].value < 0 || sizes[a].value > RGH_MAX_ELEMENTS) {
      return rgh_fail(why, "axes.%.100s, \"%.100s\": %lld is not between 0 and 2^40", known[a].name, text,
                      (long long)sizes[a].value);
    }
  }
  return true;
}

/* Of one axis of a tensor; what a literal has beyond 2^40 is cut. */
static int64_t size_of(const rgh_definition *d, const rgh_named_size *sizes, int tensor, int axis) {
  const json_t *shape = json_object_get(rgh_definition_argument(d, d->op->tensors[tensor].name), "shape");
  const char *name = json_string_value(json_array_get(shape, (size_t)axis));
  if (!rgh_definition_is_literal(name)) return sizes[rgh_definition_axis(d, name)].value;
  const long long literal = strtoll(name, NULL, 10);
  return literal > RGH_MAX_ELEMENTS ? RGH_MAX_ELEMENTS : literal;
}

int64_t rgh_definition_dim(const rgh_definition *d, const rgh_named_size sizes[RGH_MAX_AXES], int dim) {
  for (int t = 0; t < d->op->num_tensors; t++) {
    const rg_tensor_spec *spec = &d->op->tensors[t];
    for (int a = 0; a < spec->rank; a++) {
      if (spec->axes[a].dim == dim) return size_of(d, sizes, t, a) * spec->axes[a].divisor;
    }
  }
  return -1;
}

/* Each axis of each tensor is as long as the first tensor with that dim says. */
static bool check_sizes(const rgh_definition *d, const rgh_named_size *sizes, rgh_message *why) {
  for (int t = 0; t < d->op->num_tensors; t++) {
    const rg_tensor_spec *spec = &d->op->tensors[t];
    for (int a = 0; a < spec->rank; a++) {
      const rg_axis *axis = &spec->axes[a];
      const bool fixed = axis->dim == RG_AXIS_FIXED;
      const int64_t size = size_of(d, sizes, t, a);
      const int64_t whole = fixed ? axis->divisor : rgh_definition_dim(d, sizes, axis->dim);
      const int64_t expected = fixed ? whole : whole / axis->divisor;
      if (size == expected) continue;
      return rgh_fail(why, "%s.%s.shape[%d]: is %lld, expected %lld%s%s", spec->role == RG_INPUT ? "inputs" : "outputs",
                      spec->name, a, (long long)size, (long long)expected, fixed ? "" : " by ",
                      fixed ? "" : d->op->dims[axis->dim].name);
    }
  }
  return true;
}

json_t *rgh_definition_dims(const rgh_definition *d, const rgh_named_size sizes[RGH_MAX_AXES], rgh_message *why) {
  if (!check_sizes(d, sizes, why)) return NULL;
  json_t *dims = json_object();
  for (int k = 0; k < d->op->num_dims; k++) {
    const rg_dim_spec *spec = &d->op->dims[k];
    if (spec->kind == RG_DIM_DERIVED) continue;
    const int named = spec->kind == RG_DIM_DESCRIPTIVE ? rgh_definition_axis(d, spec->name) : -1;
    const int64_t size = named >= 0 ? sizes[named].value : rgh_definition_dim(d, sizes, k);
    if (size >= 0) json_object_set_new(dims, spec->name, json_integer(size));
  }
  if (dims == NULL) rgh_fail(why, "no memory");
  return dims;
}
