/* The templates: what they put in, what they leave out, and that no value becomes markup. */
#include "tools/site/template.h"

#include <stdlib.h>
#include <string.h>

#include "tests/testing.h"

/* Renders one template over JSON text; *why is empty when it went well. The caller frees the result. */
static char *render(const char *template, const char *json, rgh_message *why) {
  char *name = strdup("page"), *partial = strdup("part");
  rgs_template list[] = {{.name = name, .text = strdup(template)}, {.name = partial, .text = strdup("[{{x}}]\n")}};
  const rgs_templates templates = {.list = list, .count = 2};
  json_t *data = json_loads(json, 0, NULL);
  assert_non_null(data);
  rge_text out = {0};
  rge_text_add(&out, "");
  why->text[0] = '\0';
  if (!rgs_template_compile(&list[0], why) || !rgs_template_compile(&list[1], why) ||
      !rgs_render(&templates, "page", data, &out, why)) {
    rge_text_free(&out);
  }
  json_decref(data);
  for (int t = 0; t < 2; t++) {
    free(list[t].name);
    free(list[t].text);
    free(list[t].tags);
  }
  return out.bytes;
}

static void expect(const char *template, const char *json, const char *expected) {
  rgh_message why;
  char *got = render(template, json, &why);
  assert_string_equal(why.text, "");
  assert_string_equal(got, expected);
  free(got);
}

static void refuse(const char *template, const char *word) {
  rgh_message why;
  assert_null(render(template, "{\"x\": 1, \"list\": [1]}", &why));
  if (strstr(why.text, word) == NULL) fail_msg("'%s' does not say '%s'", why.text, word);
}

static void test_values(void **state) {
  (void)state;
  expect("a{{x}}b", "{\"x\": \"y\"}", "ayb");
  expect("{{x}} {{y}} {{z}} {{n}}", "{\"x\": 3, \"y\": 0.5, \"z\": true, \"n\": null}", "3 0.5 yes ");
  expect("{{a.b}}", "{\"a\": {\"b\": 7}}", "7");
  expect("{{! nothing }}x", "{}", "x");
}

static void test_values_are_no_markup(void **state) {
  (void)state;
  expect("<p title=\"{{x}}\">{{x}}</p>", "{\"x\": \"<b>\\\"&'\\u0001\"}",
         "<p title=\"&lt;b&gt;&quot;&amp;&#39;&#xFFFD;\">&lt;b&gt;&quot;&amp;&#39;&#xFFFD;</p>");
  expect("{{x}}", "{\"x\": \"{{y}}{{&x}}{{>part}}\"}", "{{y}}{{&amp;x}}{{&gt;part}}");
  expect("{{&x}}", "{\"x\": \"<svg/>\"}", "<svg/>");
  expect("<script>{{@x}}</script>", "{\"x\": [\"</script><!--\", \"\\u2028&\"]}",
         "<script>[\"\\u003c/script\\u003e\\u003c!--\",\"\\u2028\\u0026\"]</script>");
}

static void test_sections(void **state) {
  (void)state;
  expect("{{#list}}\n<{{.}}>{{/list}}\n", "{\"list\": [1, \"a\"]}", "<1><a>");
  expect("{{#list}}{{a}}{{x}} {{/list}}", "{\"x\": 9, \"list\": [{\"a\": 1}, {\"a\": 2, \"x\": 3}]}", "19 23 ");
  expect("{{#a}}{{b}}{{/a}}{{^a}}none{{/a}}", "{\"a\": {\"b\": 1}}", "1");
  expect("{{#a}}x{{/a}}{{^a}}none{{/a}}", "{\"a\": []}", "none");
  expect("{{#a}}x{{/a}}{{^a}}none{{/a}}", "{\"a\": null}", "none");
  expect("{{#a}}x{{/a}}{{^a}}none{{/a}}", "{\"a\": \"\"}", "none");
  expect("{{#a}}x{{/a}}", "{\"a\": 0}", "x");
  expect("{{#a}}{{#a}}y{{/a}}{{/a}}", "{\"a\": true}", "y");
  expect("{{#list}}{{>part}}{{/list}}", "{\"list\": [{\"x\": \"<\"}, {\"x\": 2}]}", "[&lt;]\n[2]\n");
}

static void test_filters(void **state) {
  (void)state;
  expect("{{x|us}} {{y|us}} {{n|us}}", "{\"x\": 2.34567, \"y\": 12345.6, \"n\": null}", "2.346 12346 ");
  expect("{{x|ratio}} {{x|percent}}", "{\"x\": 1.0234}", "1.023 102.3 %");
  expect("{{x|bytes}} {{y|bytes}}", "{\"x\": 512, \"y\": 3145728}", "512 B 3.0 MiB");
  expect("{{x|date}} {{x|short}}", "{\"x\": \"2026-12-01T10:00:00Z\"}", "2026-12-01 2026-12-01");
  expect("{{x|gb_per_s}}", "{\"x\": 4012.3}", "4012");
}

static void test_mistakes(void **state) {
  (void)state;
  refuse("{{y}}", "nothing has this name");
  refuse("{{#y}}{{/y}}", "nothing has this name");
  refuse("{{#x}}", "has no end");
  refuse("{{#x}}{{#list}}{{/x}}{{/list}}", "has no end");
  refuse("{{^x}}{{/y}}{{/x}}", "has no end"); /* also where nothing is shown */
  refuse("{{/x}}", "not begun");
  refuse("{{x|none}}", "no such filter");
  refuse("{{>none}}", "no such template");
  refuse("{{x", "is not closed");
  refuse("{{}}", "empty");
  refuse("{{list}}", "list or an object");
  refuse("{{>page}}", "holds itself");
}

static void test_tenths(void **state) {
  (void)state;
  static const struct {
    double number;
    const char *text;
  } cases[] = {{0, "0.0"}, {1.04, "1.0"}, {1.05, "1.1"}, {-2.5, "-2.5"}, {123456.78, "123456.8"}, {9.96, "10.0"}};
  for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
    rge_text text = {0};
    rge_text_tenths(&text, cases[c].number);
    assert_string_equal(text.bytes, cases[c].text);
    rge_text_free(&text);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_values),   cmocka_unit_test(test_values_are_no_markup),
      cmocka_unit_test(test_sections), cmocka_unit_test(test_filters),
      cmocka_unit_test(test_mistakes), cmocka_unit_test(test_tenths),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
