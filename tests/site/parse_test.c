/* The JSON parser of records against jansson's: the same texts accepted, the same values. */
#include "harness/evidence/parse.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/testing.h"

static void compare(const char *text, size_t length) {
  rge_json_error error;
  json_t *got = rge_json_parse(text, length, &error);
  json_t *expected = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
  if ((got == NULL) != (expected == NULL)) {
    fail_msg("%.*s: jansson %s it, and here: %s", (int)length, text, expected != NULL ? "takes" : "refuses",
             got != NULL ? "taken" : error.what);
  }
  if (got != NULL && !json_equal(got, expected)) fail_msg("%.*s: another value", (int)length, text);
  json_decref(got);
  json_decref(expected);
}

static const char *const texts[] = {
    "{}",
    "[]",
    " [ 1 , -2,3.5e2,\t-0, 0.1, 1E-7, 123456789012345678, 9223372036854775807, -9223372036854775808]\r\n",
    "[9223372036854775808]",
    "[0.1, 0.2, 0.30000000000000004, 5e-324, 1.7976931348623157e308, 12345.678901234567890123, 2.50, 307.812345678]",
    "[1e999]",
    "[01]",
    "[-]",
    "[1.]",
    "[.5]",
    "[1e]",
    "[+1]",
    "[1e+5, 1e-5]",
    "[NaN]",
    "[Infinity]",
    "{\"a\": {\"b\": [true, false, null]}}",
    "{\"a\": 1, \"a\": 2}",
    "{\"a\" 1}",
    "{a: 1}",
    "{\"a\": 1,}",
    "[1,]",
    "[1 2]",
    "[tru]",
    "[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20ac\\ud83d\\ude00\"]",
    "[\"\\ud83d\"]",
    "[\"\\ude00\"]",
    "[\"\\ud83dx\"]",
    "[\"\\u0000\"]",
    "[\"\\u12\"]",
    "[\"\\x\"]",
    "[\"\xc3\xa9 \xf0\x9f\x98\x80\"]",
    "[\"\xc3\"]",
    "[\"\xff\"]",
    "{\"\xff\": 1}",
    "[\"a\nb\"]",
    "[\"a",
    "[\"a\\",
    "{\"a\": ",
    "{\"a\"",
    "[",
    "",
    "   ",
    "1",
    "\"a\"",
    "[1] 2",
    "[1]]",
    "{\"a\": \"b\", \"c\": [{}, {\"d\": []}], \"long\\u0020key\": -0.0}",
};

static void test_texts(void **state) {
  (void)state;
  for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) compare(texts[t], strlen(texts[t]));
}

/* Every beginning of every text, and every text with one byte changed. Copied, so that a byte too far is noticed. */
static void test_broken_texts(void **state) {
  (void)state;
  static const char changes[] = "\"\\[]{},:0-.eu\x01\xff ";
  for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
    const size_t length = strlen(texts[t]);
    for (size_t cut = 0; cut <= length; cut++) {
      char *copy = calloc(length + 1, 1);
      memcpy(copy, texts[t], cut);
      compare(copy, cut);
      memcpy(copy, texts[t], length);
      for (const char *change = changes; *change != '\0' && cut < length; change++) {
        copy[cut] = *change;
        compare(copy, length);
      }
      free(copy);
    }
  }
}

static void test_numbers(void **state) {
  (void)state;
  char text[128];
  uint64_t draw = 1;
  for (int i = 0; i < 20000; i++) {
    draw = draw * 6364136223846793005u + 1442695040888963407u;
    const double value = (double)(draw >> 11) / (double)(UINT64_C(1) << (10 + draw % 50));
    const int length = snprintf(text, sizeof text, "[%.*g]", (int)(draw >> 40) % 17 + 1, value);
    compare(text, (size_t)length);
  }
}

static void test_place_and_depth(void **state) {
  (void)state;
  rge_json_error error;
  assert_null(rge_json_parse("{\n \"a\": x}", 10, &error));
  assert_int_equal(error.line, 2);
  assert_int_equal(error.column, 7);
  char deep[2 * RGE_MAX_JSON_DEPTH + 3];
  for (int extra = 0; extra < 2; extra++) {
    const int depth = RGE_MAX_JSON_DEPTH + extra;
    memset(deep, '[', (size_t)depth);
    memset(deep + depth, ']', (size_t)depth);
    deep[2 * depth] = '\0';
    json_t *got = rge_json_parse(deep, (size_t)depth * 2, &error);
    assert_int_equal(got == NULL, extra);
    json_decref(got);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_texts),
      cmocka_unit_test(test_broken_texts),
      cmocka_unit_test(test_numbers),
      cmocka_unit_test(test_place_and_depth),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
