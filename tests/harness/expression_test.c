/* Whole-number expressions of problem definitions: values as Python gives them, and what is refused. */
#include "harness/cases/expression.h"

#include <stdio.h>
#include <string.h>

#include "tests/testing.h"

static const rgh_named_size sizes[] = {{"a", 7}, {"b_2", 3}, {"unknown", -1}};
enum { NUM_SIZES = sizeof sizes / sizeof sizes[0] };

static void values_are_those_of_python(void **state) {
  (void)state;
  static const struct {
    const char *text;
    int64_t value;
  } rows[] = {
      {"7", 7},        {" a ", 7},       {"a+b_2*2", 13},  {"(a+b_2)*2", 20},
      {"a-b_2-1", 3},  {"a//b_2", 2},    {"-a//b_2", -3},  {"a//-b_2", -3},
      {"-a%b_2", 2},   {"a%-b_2", -2},   {"2**3**2", 512}, {"-2**2", -4},
      {"2**-(-2)", 4}, {"(0-1)**3", -1}, {"0**0", 1},      {"(0-1)**4000000000", 1},
      {"a*6/2", 21},   {"--a", 7},       {"+a", 7},        {"(-9223372036854775807-1)//1", INT64_MIN},
  };
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
    int64_t value = 0;
    rgh_message why = {""};
    if (!rgh_expression(rows[r].text, sizes, NUM_SIZES, &value, &why)) fail_msg("%s: %s", rows[r].text, why.text);
    if (value != rows[r].value) fail_msg("%s: %lld", rows[r].text, (long long)value);
  }
}

static void what_is_no_expression_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *text, *word;
  } rows[] = {
      {"", "ends too early"},
      {"a+", "ends too early"},
      {"(a", "')'"},
      {"a)", "unexpected ')'"},
      {"a b_2", "unexpected 'b'"},
      {"1.5", "unexpected '.'"},
      {"c", "\"c\""},
      {"a_", "\"a_\""},
      {"unknown", "\"unknown\""},
      {"a/b_2", "not whole"},
      {"a//0", "by 0"},
      {"a%0", "by 0"},
      {"2**(0-1)", "negative exponent"},
      {"2**63", "64 bits"},
      {"9223372036854775808", "64 bits"},
      {"9223372036854775807+1", "64 bits"},
      {"-9223372036854775807-2", "64 bits"},
      {"(-9223372036854775807-1)//-1", "64 bits"},
      {"(-9223372036854775807-1)*-1", "64 bits"},
  };
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; ++r) {
    int64_t value = 0;
    rgh_message why = {""};
    if (rgh_expression(rows[r].text, sizes, NUM_SIZES, &value, &why))
      fail_msg("%s is %lld", rows[r].text, (long long)value);
    if (strstr(why.text, rows[r].word) == NULL) fail_msg("%s: %s", rows[r].text, why.text);
  }
}

static void nesting_is_bounded(void **state) {
  (void)state;
  static const char *const units[] = {"(", "-", "1**", "+"};
  for (size_t u = 0; u < sizeof units / sizeof units[0]; ++u) {
    static char text[1 << 20];
    size_t used = 0;
    while (used + 8 < sizeof text) used += (size_t)snprintf(text + used, 8, "%s", units[u]);
    int64_t value;
    rgh_message why;
    assert_false(rgh_expression(text, sizes, NUM_SIZES, &value, &why));
    assert_non_null(strstr(why.text, "nested too deep"));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_are_those_of_python),
      cmocka_unit_test(what_is_no_expression_is_refused),
      cmocka_unit_test(nesting_is_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
