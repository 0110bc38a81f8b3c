/* Suites that are refused: each in one line that says where and why, and nothing leaks. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/harness/suite_testing.h"

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
      cmocka_unit_test(bad_suites_get_one_line),     cmocka_unit_test(names_are_unique_within_an_operator),
      cmocka_unit_test(mangled_suites_are_survived), cmocka_unit_test(files_that_cannot_be_read),
      cmocka_unit_test(messages_stay_on_one_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
