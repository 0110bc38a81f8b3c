/* Suite files: what a good one says, and the one line that a bad one gets. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cases/suite.h"
#include "tests/testing.h"

/* ---- good ones ---- */

static rgh_suite parse(const char *text) {
  rgh_suite suite;
  rgh_message why;
  if (!rgh_suite_parse(text, strlen(text), "s.json", &suite, &why)) fail_msg("%s", why.text);
  return suite;
}

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

/* {"suite", "cases": [one rope_apply case with `more` after its sizes]} */
#define APPLY(more)                                                                                        \
  "{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_apply\", \"name\": \"a\", \"dims\": {\"batch_size\": 2," \
  " \"num_heads\": 3, \"num_kv_heads\": 1, \"seq_len\": 5, \"head_dim\": 8}" more "}]}"
#define UPDATE(more)                                                                                            \
  "{\"suite\": \"s\", \"cases\": [{\"op\": \"kv_cache_update\", \"name\": \"a\", \"dims\": {\"batch_size\": 2," \
  " \"num_kv_heads\": 3, \"new_seq_len\": 4, \"max_seq_len\": 6, \"head_dim\": 8}" more "}]}"

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

/* ---- bad ones ---- */

static void refused_as(const char *text, size_t bytes, const char *expected) {
  rgh_suite suite;
  rgh_message why;
  memset(&why, 'x', sizeof why);
  if (rgh_suite_parse(text, bytes, "s.json", &suite, &why)) fail_msg("accepted: %.200s", text);
  assert_non_null(memchr(why.text, '\0', sizeof why.text));
  for (const char *c = why.text; *c != '\0'; ++c) assert_true((unsigned char)*c >= 0x20);
  assert_null(suite.cases);
  assert_int_equal(suite.num_cases, 0);
  if (expected != NULL) assert_string_equal(why.text, expected);
}

static const struct {
  const char *text, *expected;
} bad[] = {
    {"", "s.json:1:0: '[' or '{' expected near end of file"},
    {"{\"suite\": \"s\",\n \"cases\": [}", "s.json:2:12: unexpected token near '}'"},
    {"{\"suite\": \"s\", \"suite\": \"s\"}", "s.json:1:22: duplicate object key near '\"suite\"'"},
    {"[]", "s.json: expected an object that has \"suite\" and \"cases\""},
    {"{\"suite\": 1, \"cases\": []}", "s.json: suite: expected a string, got an integer"},
    {"{\"cases\": [{}]}", "s.json: suite: expected a string, got nothing"},
    {"{\"suite\": \"s\"}", "s.json: cases: expected a list with at least one case"},
    {"{\"suite\": \"s\", \"cases\": []}", "s.json: cases: expected a list with at least one case"},
    {"{\"suite\": \"s\", \"cases\": {}}", "s.json: cases: expected a list with at least one case"},
    {"{\"suite\": \"s\", \"cases\": [1], \"extra\": 1}", "s.json: extra: unknown key"},
    {"{\"suite\": \"s\", \"cases\": [7]}", "s.json: cases[0]: expected an object, got an integer"},
    {"{\"suite\": \"s\", \"cases\": [{}]}", "s.json: cases[0]: op: missing"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\"}]}",
     "s.json: cases[0] \"x\": dims: missing"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope\\n3d\", \"name\": \"x\", \"dims\": {}}]}",
     "s.json: cases[0] \"x\": op: there is no operator \"rope?3d\""},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"a b\", \"dims\": {}}]}",
     "s.json: cases[0] \"a b\": name: expected 1 to 96 letters, digits, '_', '.' or '-'"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\", \"dims\": {\"batch_size\": 1}}]}",
     "s.json: cases[0] \"x\": dims.seq_len: missing"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\", \"dims\": {\"batch_size\": -1}}]}",
     "s.json: cases[0] \"x\": dims.batch_size: -1 is not between 0 and 2^40"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\", \"dims\": {\"batch_size\": 1e3}}]}",
     "s.json: cases[0] \"x\": dims.batch_size: expected an integer, got a fraction"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\", \"dims\": {\"batch_size\": \"1\"}}]}",
     "s.json: cases[0] \"x\": dims.batch_size: expected an integer, got a string"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\", \"dims\": {\"heads\": 1}}]}",
     "s.json: cases[0] \"x\": dims.heads: rope_2d has no size of that name"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\","
     " \"dims\": {\"batch_size\": 1, \"seq_len\": 1, \"head_dim\": 7}}]}",
     "s.json: cases[0] \"x\": dims.head_dim: must be a positive multiple of 2, got 7"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"rope_2d\", \"name\": \"x\","
     " \"dims\": {\"batch_size\": 1099511627776, \"seq_len\": 1099511627776, \"head_dim\": 2}}]}",
     "s.json: cases[0] \"x\": dims: grad_cos would have more than 2^40 elements"},
    {"{\"suite\": \"s\", \"cases\": [{\"op\": \"vision_rotary\", \"name\": \"x\","
     " \"dims\": {\"total_patches\": 5, \"head_dim\": 8}}]}",
     "s.json: cases[0] \"x\": dims.max_grid_size: missing, and pos_ids is drawn below it"},
    {APPLY(", \"dims2\": {}"), "s.json: cases[0] \"a\": dims2: unknown key"},
    {APPLY(", \"params\": []"), "s.json: cases[0] \"a\": params: expected an object, got a list"},
    {APPLY(", \"params\": {\"stile\": 1}"),
     "s.json: cases[0] \"a\": params.stile: rope_apply has no option of that name"},
    {APPLY(", \"params\": {\"style\": \"neox\"}"), "s.json: cases[0] \"a\": params.style: there is no value \"neox\""},
    {APPLY(", \"params\": {\"style\": 1}"), "s.json: cases[0] \"a\": params.style: expected a string, got an integer"},
    {APPLY(", \"params\": {\"rotary_dim\": 2.5}"),
     "s.json: cases[0] \"a\": params.rotary_dim: expected an integer, got a fraction"},
    {APPLY(", \"params\": {\"rotary_dim\": 10}"),
     "s.json: cases[0] \"a\": params: the operator refuses them: an option or an index lies outside its range"},
    {APPLY(", \"params\": {\"q\": \"arange\"}"),
     "s.json: cases[0] \"a\": params.q: rope_apply has no option of that name"},
    {UPDATE(", \"params\": {\"in_place\": 1}"),
     "s.json: cases[0] \"a\": params.in_place: expected true or false, got an integer"},
    {UPDATE(", \"params\": {\"cache_position\": \"sorted\"}"),
     "s.json: cases[0] \"a\": params.cache_position: there is no fill \"sorted\""},
    {UPDATE(", \"params\": {\"cache_position\": \"arange\"}, \"inputs\": {\"cache_position\": {\"fill\": \"arange\"}}"),
     "s.json: cases[0] \"a\": inputs.cache_position: params has already named its fill"},
    {UPDATE(", \"dtypes\": {\"cache_position\": \"float32\"}"),
     "s.json: cases[0] \"a\": dtypes.cache_position: it cannot be float32"},
    {APPLY(", \"dtypes\": {\"v\": \"float32\"}"),
     "s.json: cases[0] \"a\": dtypes.v: rope_apply has no tensor of that name"},
    {APPLY(", \"dtypes\": {\"q\": \"float8\"}"), "s.json: cases[0] \"a\": dtypes.q: there is no dtype \"float8\""},
    {APPLY(", \"dtypes\": {\"q\": \"float16\", \"grad_q\": \"float32\"}"),
     "s.json: cases[0] \"a\": dtypes.grad_q: q, of the same dtype group, is float16"},
    {APPLY(", \"layouts\": {\"q\": 1}"), "s.json: cases[0] \"a\": layouts.q: expected an object, got an integer"},
    {APPLY(", \"layouts\": {\"q\": {\"shift\": 1}}"), "s.json: cases[0] \"a\": layouts.q.shift: unknown key"},
    {APPLY(", \"layouts\": {\"q\": {\"order\": [0, 1]}}"),
     "s.json: cases[0] \"a\": layouts.q.order: expected all 4 axes, got 2"},
    {APPLY(", \"layouts\": {\"q\": {\"order\": [0, 1, 2, 2]}}"),
     "s.json: cases[0] \"a\": layouts.q.order: entry 3 must be an axis from 0 to 3 that was not named before"},
    {APPLY(", \"layouts\": {\"cos\": {\"expand\": [3]}}"),
     "s.json: cases[0] \"a\": layouts.cos.expand: entry 0 must be an axis from 0 to 2 that was not named before"},
    {APPLY(", \"layouts\": {\"grad_q\": {\"expand\": [0]}}"),
     "s.json: cases[0] \"a\": layouts.grad_q: an output can be neither expanded nor reversed"},
    {APPLY(", \"layouts\": {\"q\": {\"stride_last\": 0}}"),
     "s.json: cases[0] \"a\": layouts.q.stride_last: 0 is not between 1 and 2^40"},
    {APPLY(", \"layouts\": {\"q\": {\"stride_last\": 1099511627776}}"),
     "s.json: cases[0] \"a\": layouts.q: reaches over more than 2^40 elements"},
    {APPLY(", \"layouts\": {\"q\": {\"pad\": [1, 2]}}"),
     "s.json: cases[0] \"a\": layouts.q.pad: expected 4 numbers, one per axis"},
    {APPLY(", \"inputs\": {\"grad_q\": {\"fill\": \"normal\"}}"),
     "s.json: cases[0] \"a\": inputs.grad_q: rope_apply has no input of that name"},
    {APPLY(", \"inputs\": {\"q\": {\"low\": 1}}"),
     "s.json: cases[0] \"a\": inputs.q.fill: expected a string, got nothing"},
    {APPLY(", \"inputs\": {\"q\": {\"fill\": \"normal\", \"low\": 1}}"),
     "s.json: cases[0] \"a\": inputs.q.low: fill \"normal\" takes no such number"},
    {APPLY(", \"inputs\": {\"q\": {\"fill\": \"uniform\", \"low\": \"1\"}}"),
     "s.json: cases[0] \"a\": inputs.q.low: expected a number, got a string"},
    {APPLY(", \"unwanted\": [\"q\"]"), "s.json: cases[0] \"a\": unwanted[0]: \"q\" cannot stand here"},
    {APPLY(", \"unwanted\": [\"grad_q\", \"grad_k\", \"grad_cos\", \"grad_sin\"]"),
     "s.json: cases[0] \"a\": unwanted: it names every output, so there is nothing to compute"},
    {APPLY(", \"shared\": [\"q\"]"), "s.json: cases[0] \"a\": shared[0]: \"q\" cannot stand here"},
    {UPDATE(", \"params\": {\"in_place\": true}, \"layouts\": {\"grad_key_cache\": {\"reverse\": [0]}}"),
     "s.json: cases[0] \"a\": layouts.grad_key_cache: grad_key_cache_input is written in place of it, so it can be "
     "neither expanded nor reversed"},
};

static void bad_suites_get_one_line(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) refused_as(bad[i].text, strlen(bad[i].text), bad[i].expected);
}

static void names_are_unique_within_an_operator(void **state) {
  (void)state;
#define NAMED(op, name) \
  "{\"op\": \"" op "\", \"name\": \"" name "\", \"dims\": {\"batch_size\": 1, \"seq_len\": 1, \"head_dim\": 2}}"
  rgh_suite suite =
      parse("{\"suite\": \"s\", \"cases\": [" NAMED("rope_2d", "a") "," NAMED("rotary_embedding", "a") "]}");
  assert_int_equal(suite.num_cases, 2);
  rgh_suite_free(&suite);
  const char *twice =
      "{\"suite\": \"s\", \"cases\": [" NAMED("rope_2d", "a") "," NAMED("rope_2d", "b") "," NAMED("rope_2d", "a") "]}";
  refused_as(twice, strlen(twice), "s.json: cases[2] \"a\": name: cases[0] has the same operator and name");
}

/* Every truncation of a real suite, and every byte of it made a quote, is refused in one line or read; nothing leaks.
 */
static void mangled_suites_are_survived(void **state) {
  (void)state;
  static char text[1 << 14];
  FILE *file = fopen(ROPEGRAD_SUITES "/smoke.json", "rb");
  assert_non_null(file);
  size_t bytes = fread(text, 1, sizeof text, file);
  fclose(file);
  if (bytes > 4000) bytes = 4000;
  for (size_t length = 0; length < bytes; ++length) refused_as(text, length, NULL);
  const char *whole =
      APPLY(", \"layouts\": {\"q\": {\"order\": [0, 2, 1, 3], \"pad\": 3}}, \"unwanted\": [\"grad_q\"]");
  for (size_t at = 0; at < strlen(whole); ++at) {
    static const char others[] = "\"0-]}[{,:\x80";
    for (size_t o = 0; o < sizeof others; ++o) {
      memcpy(text, whole, strlen(whole));
      text[at] = others[o];
      rgh_suite suite;
      rgh_message why;
      if (rgh_suite_parse(text, strlen(whole), "s.json", &suite, &why)) rgh_suite_free(&suite);
    }
  }
}

static void files_that_cannot_be_read(void **state) {
  (void)state;
  rgh_suite suite;
  rgh_message why;
  assert_false(rgh_suite_load("no/such/suite.json", &suite, &why));
  assert_string_equal(why.text, "no/such/suite.json: No such file or directory");
  assert_false(rgh_suite_load("/", &suite, &why));
  assert_string_equal(why.text, "/: Is a directory");
  assert_false(rgh_suite_load("/dev/zero", &suite, &why));
  assert_string_equal(why.text, "/dev/zero: larger than 64 MiB");
  rgh_suite_free(&suite);
}

static void messages_stay_on_one_line(void **state) {
  (void)state;
  rgh_message why;
  assert_false(rgh_fail(&why, "a\nb\t%s\x7f", "c\r"));
  assert_string_equal(why.text, "a?b?c??");
  assert_false(rgh_fail(&why, "%s and %s", why.text, why.text));
  assert_string_equal(why.text, "a?b?c?? and a?b?c??");
  char *many = malloc(2000);
  assert_non_null(many);
  memset(many, 'y', 1999);
  many[1999] = '\0';
  assert_false(rgh_fail(&why, "%s", many));
  assert_int_equal(strlen(why.text), sizeof why.text - 1);
  assert_string_equal(why.text + sizeof why.text - 5, "y...");
  free(many);
  assert_false(rgh_fail(NULL, "nobody asks"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(defaults_come_from_the_operator),
      cmocka_unit_test(every_group_is_read),
      cmocka_unit_test(a_fused_buffer_is_a_layout),
      cmocka_unit_test(an_integer_input_may_stand_among_the_params),
      cmocka_unit_test(the_project_suites_load),
      cmocka_unit_test(bad_suites_get_one_line),
      cmocka_unit_test(names_are_unique_within_an_operator),
      cmocka_unit_test(mangled_suites_are_survived),
      cmocka_unit_test(files_that_cannot_be_read),
      cmocka_unit_test(messages_stay_on_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
