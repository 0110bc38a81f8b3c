/* Suite files: what a good one says. Bad ones have a test of their own, bad_suite_test.c. */
#include <stdio.h>

#include "tests/harness/suite_testing.h"

static int tensor_of(const rg_operator *op, const char *name) {
  const int t = rg_dev_find_tensor(op, name);
  if (t < 0) fail_msg("%s has no tensor %s", op->name, name);
  return t;
}

static int param_of(const rg_operator *op, const char *name) {
  const int p = rg_dev_find_param(op, name);
  if (p < 0) fail_msg("%s has no option %s", op->name, name);
  return p;
}

static void defaults_come_from_the_operator(void **state) {
  (void)state;
  rgh_suite suite = parse(APPLY());
  assert_string_equal(suite.name, "s");
  assert_string_equal(suite.description, "");
  assert_int_equal(suite.num_cases, 1);
  const rgh_case *item = &suite.cases[0];
  assert_string_equal(item->name, "a");
  const int q = tensor_of(item->op, "q"), cosine = tensor_of(item->op, "cos");
  assert_int_equal(item->dtype[q], RG_F32);
  int64_t shape[RG_MAX_RANK], stride[RG_MAX_RANK], origin;
  assert_int_equal(rgh_case_shape(item, q, shape), 2 * 3 * 5 * 8);
  assert_int_equal(rgh_case_strides(item, q, stride, &origin), 2 * 3 * 5 * 8);
  assert_int_equal(origin, 0);
  assert_memory_equal(stride, ((int64_t[]){120, 40, 8, 1}), sizeof stride);
  /* rotary_dim 0 stands for all of head_dim. */
  assert_int_equal(rgh_case_shape(item, cosine, shape), 2 * 5 * 8);
  assert_int_equal(item->fill[q].kind, RGH_FILL_NORMAL);
  assert_int_equal(item->unwanted | item->shared, 0);
  assert_false(rgh_case_in_place(item));
  /* q and k twice each with their gradients, and four tables. */
  assert_int_equal(rgh_case_bytes(item), 4 * (3 * 240 + 3 * 80 + 4 * 80));
  rgh_suite_free(&suite);
}

static void every_group_is_read(void **state) {
  (void)state;
  rgh_suite suite = parse(
      APPLY(", \"params\": {\"rotary_dim\": 4, \"style\": \"interleaved\", \"sin_pairing\": \"same_half\"},"
            "\"dtypes\": {\"q\": \"bfloat16\", \"grad_k_embed\": \"float16\"}, \"unwanted\": [\"grad_sin\"],"
            "\"shared\": [\"cos\", \"sin\", \"grad_cos\", \"grad_sin\"],"
            "\"inputs\": {\"q\": {\"fill\": \"uniform\", \"low\": -2, \"high\": 0.5}, \"cos\": {\"fill\": \"rope_cos\","
            "\"interleaved\": true}},"
            "\"layouts\": {\"q\": {\"order\": [0, 2, 1, 3], \"offset\": 7, \"pad\": 3, \"stride_last\": 2},"
            "\"k\": {\"expand\": [0, 1], \"reverse\": [2]}, \"grad_q\": {\"pad\": [0, 10, 1, 0]}}"));
  const rgh_case *item = &suite.cases[0];
  const rg_operator *op = item->op;
  const int q = tensor_of(op, "q"), k = tensor_of(op, "k"), cosine = tensor_of(op, "cos");
  const int grad_q = tensor_of(op, "grad_q");
  assert_int_equal(item->param[param_of(op, "rotary_dim")].integer, 4);
  assert_int_equal(item->param[param_of(op, "style")].choice, 1);
  assert_int_equal(item->param[param_of(op, "sin_pairing")].choice, 1);
  /* A dtype named once goes for the whole group. */
  assert_int_equal(item->dtype[q], RG_BF16);
  assert_int_equal(item->dtype[grad_q], RG_BF16);
  assert_int_equal(item->dtype[k], RG_F16);
  assert_int_equal(item->dtype[cosine], RG_F32);
  assert_int_equal(item->unwanted, RG_BIT(tensor_of(op, "grad_sin")));
  int64_t shape[RG_MAX_RANK], stride[RG_MAX_RANK], origin;
  assert_int_equal(rgh_case_shape(item, cosine, shape), 1 * 5 * 4);
  assert_true(item->fill[q].low == -2 && item->fill[q].high == 0.5);
  assert_true(item->fill[cosine].kind == RGH_FILL_ROPE_COS && item->fill[cosine].interleaved == 1);
  /* In memory [batch][seq][head][2 x 8 + 3]. */
  const int64_t span = rgh_case_strides(item, q, stride, &origin);
  assert_memory_equal(stride, ((int64_t[]){5 * 3 * 19, 19, 3 * 19, 2}), sizeof stride);
  assert_int_equal(origin, 7);
  assert_int_equal(span, 7 + 285 + 4 * 57 + 2 * 19 + 7 * 2 + 1);
  /* One [seq][head_dim] plane serves all, read from its last row. */
  assert_int_equal(rgh_case_strides(item, k, stride, &origin), 5 * 8);
  assert_memory_equal(stride, ((int64_t[]){0, 0, -8, 1}), sizeof stride);
  assert_int_equal(origin, 4 * 8);
  /* 1 after each plane, 10 after each three. */
  rgh_case_strides(item, grad_q, stride, &origin);
  assert_memory_equal(stride, ((int64_t[]){3 * 41 + 10, 41, 8, 1}), sizeof stride);
  rgh_suite_free(&suite);
}

static void a_fused_buffer_is_a_layout(void **state) {
  (void)state;
  /* q of a [batch][seq][3 + 1 + 1 heads][8] buffer. */
  rgh_suite suite = parse(APPLY(", \"layouts\": {\"q\": {\"order\": [0, 2, 1, 3], \"pad\": [0, 16, 0, 0]}}"));
  int64_t stride[RG_MAX_RANK], origin;
  rgh_case_strides(&suite.cases[0], tensor_of(suite.cases[0].op, "q"), stride, &origin);
  assert_memory_equal(stride, ((int64_t[]){5 * 40, 8, 40, 1}), sizeof stride);
  rgh_suite_free(&suite);
}

static void an_integer_input_may_stand_among_the_params(void **state) {
  (void)state;
  rgh_suite suite = parse(UPDATE(", \"params\": {\"cache_position\": \"reversed\", \"in_place\": true}"));
  rgh_case *item = &suite.cases[0];
  const int position = tensor_of(item->op, "cache_position"), cache = tensor_of(item->op, "grad_key_cache");
  assert_int_equal(item->fill[position].kind, RGH_FILL_REVERSED);
  assert_int_equal(item->dtype[position], RG_I64);
  assert_true(rgh_case_in_place(item));
  assert_int_equal(rgh_case_alias(item, tensor_of(item->op, "grad_key_cache_input")), cache);
  assert_int_equal(rgh_case_alias(item, tensor_of(item->op, "grad_cos")), -1);
  rgh_suite_free(&suite);

  suite = parse(UPDATE());
  assert_int_equal(suite.cases[0].fill[position].kind, RGH_FILL_ARANGE);
  assert_int_equal(rgh_case_alias(&suite.cases[0], tensor_of(suite.cases[0].op, "grad_key_cache_input")), -1);
  const int64_t bytes = rgh_case_bytes(&suite.cases[0]);
  rgh_message why;
  assert_true(rgh_case_set_in_place(&suite.cases[0], &why));
  assert_true(rgh_case_in_place(&suite.cases[0]));
  assert_int_equal(bytes - rgh_case_bytes(&suite.cases[0]), 2 * 2 * (2 * 3 * 6 * 8));
  rgh_suite_free(&suite);

  suite = parse(UPDATE(", \"layouts\": {\"grad_key_cache\": {\"expand\": [0]}}"));
  assert_false(rgh_case_set_in_place(&suite.cases[0], &why));
  assert_text_has(why.text, "layouts.grad_key_cache: grad_key_cache_input is written in place of it");
  rgh_suite_free(&suite);

  suite = parse(APPLY());
  assert_false(rgh_case_set_in_place(&suite.cases[0], &why));
  assert_text_has(why.text, "rope_apply cannot work in place");
  rgh_suite_free(&suite);
}

static void the_project_suites_load(void **state) {
  (void)state;
  static const struct {
    const char *name;
    int least;
  } suites[] = {{"sol-execbench-rope", 80}, {"smoke", 40}, {"edge", 400}, {"models", 50}};
  for (size_t i = 0; i < sizeof suites / sizeof suites[0]; ++i) {
    char path[512];
    snprintf(path, sizeof path, ROPEGRAD_SUITES "/%s.json", suites[i].name);
    rgh_suite suite;
    rgh_message why;
    if (!rgh_suite_load(path, &suite, &why)) fail_msg("%s", why.text);
    assert_string_equal(suite.name, suites[i].name);
    assert_true(suite.num_cases >= suites[i].least);
    rgh_suite_free(&suite);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_come_from_the_operator), cmocka_unit_test(every_group_is_read),
      cmocka_unit_test(a_fused_buffer_is_a_layout),      cmocka_unit_test(an_integer_input_may_stand_among_the_params),
      cmocka_unit_test(the_project_suites_load),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
