#include "harness/evidence/text.h"
#include "tools/site/data.h"
#include "tools/site/passes.h"

static void add_shape(const rg_operator *op, const rg_tensor_spec *tensor, rge_text *text) {
  rge_text_add(text, "[");
  for (int a = 0; a < tensor->rank; a++) {
    const rg_axis *axis = &tensor->axes[a];
    if (a > 0) rge_text_add(text, ", ");
    if (a == 0 && tensor->broadcast_first) rge_text_add(text, "1 or ");
    if (axis->dim == RG_AXIS_FIXED) {
      rge_text_format(text, "%d", axis->divisor);
    } else if (axis->divisor > 1) {
      rge_text_format(text, "%s/%d", op->dims[axis->dim].symbol, axis->divisor);
    } else {
      rge_text_add(text, op->dims[axis->dim].symbol);
    }
  }
  rge_text_add(text, "]");
}

static json_t *tensors_json(const rg_operator *op, rg_role role) {
  json_t *list = json_array();
  for (int t = 0; t < op->num_tensors; t++) {
    const rg_tensor_spec *tensor = &op->tensors[t];
    if (tensor->role != role) continue;
    rge_text shape = {0};
    add_shape(op, tensor, &shape);
    json_array_append_new(
        list,
        json_pack("{s:s, s:o, s:s, s:s, s:o}", "name", tensor->name, "shape", rgs_text(shape.bytes), "suite_dtype",
                  rg_dtype_name(tensor->suite_dtype), "dtypes", rg_dtype_rule_text(tensor->dtypes), "in_place_of",
                  tensor->in_place ? rgs_text(op->tensors[tensor->in_place_of].name) : json_null()));
    rge_text_free(&shape);
  }
  return list;
}

static json_t *axes_json(const rg_operator *op) {
  static const char *const kinds[] = {"variable", "follows from the others", "describes the inputs"};
  json_t *list = json_array();
  for (int d = 0; d < op->num_dims; d++) {
    const rg_dim_spec *dim = &op->dims[d];
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:s, s:o}", "name", dim->name, "symbol", dim->symbol, "kind", kinds[dim->kind],
                        "multiple_of", dim->multiple_of > 1 ? json_integer(dim->multiple_of) : json_null()));
  }
  return list;
}

static json_t *options_json(const rg_operator *op) {
  static const char *const kinds[] = {"number", "integer", "yes or no", "choice"};
  json_t *list = json_array();
  for (int p = 0; p < op->num_params; p++) {
    const rg_param_spec *param = &op->params[p];
    rge_text values = {0};
    for (const char *const *value = param->values; value != NULL && *value != NULL; value++) {
      rge_text_format(&values, "%s%s", values.length > 0 ? ", " : "", *value);
    }
    json_array_append_new(list, json_pack("{s:s, s:s, s:o}", "name", param->name, "kind", kinds[param->kind], "values",
                                          rgs_text(values.bytes)));
    rge_text_free(&values);
  }
  return list;
}

json_t *rgs_suites_json(void) {
  json_t *list = json_array();
  for (int d = 0; d < RG_NUM_DIRECTIONS; d++) {
    json_array_append_new(list, json_pack("{s:s, s:s}", "pass", rgs_direction_name((rg_direction)d), "suite",
                                          rgs_main_suite((rg_direction)d)));
  }
  return list;
}

json_t *rgs_operator_json(const rg_operator *op) {
  const rg_operator *other = rgs_other_pass(op);
  return json_pack("{s:s, s:s, s:s, s:s, s:{s:s, s:s, s:s}, s:o, s:o, s:o, s:o, s:b}", "op", op->name, "pass",
                   rgs_direction_name(op->direction), "title", op->title, "formula", op->formula, "other_pass", "op",
                   other->name, "pass", rgs_direction_name(other->direction), "title", other->title, "inputs",
                   tensors_json(op, RG_INPUT), "outputs", tensors_json(op, RG_OUTPUT), "axes", axes_json(op), "options",
                   options_json(op), "has_in_place", op->in_place_param >= 0);
}
