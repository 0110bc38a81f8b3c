#include "harness/evidence/parse.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
  const char *at, *end; /* *end is '\0' */
  const char *what;     /* of the first error; NULL: none */
  char *scratch;        /* as long as the text: where strings lose their escapes */
  int depth;
} parser;

static json_t *parse_value(parser *p);

static json_t *fail(parser *p, const char *what) {
  if (p->what == NULL) p->what = what;
  return NULL;
}

static void skip_space(parser *p) {
  while (*p->at == ' ' || *p->at == '\n' || *p->at == '\t' || *p->at == '\r') p->at++;
}

/* ---- numbers ---- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Digits without a point and an exponent of ten: exact as one multiplication or division while both fit a double. */
static double to_double(const char *begin, uint64_t digits, int num_digits, int exponent, bool negative) {
  static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  if (num_digits > 15 || exponent < -22 || exponent > 22) return strtod(begin, NULL);
  const double value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
  return negative ? -value : value;
}

static json_t *parse_integer(parser *p, const char *begin) {
  errno = 0;
  const long long value = strtoll(begin, NULL, 10);
  return errno == ERANGE ? fail(p, "the integer is too large") : json_integer(value);
}

static json_t *parse_number(parser *p) {
  const char *begin = p->at;
  const bool negative = *p->at == '-';
  uint64_t digits = 0;
  int num_digits = 0, exponent = 0;
  bool real = false;
  p->at += negative;
  if (!is_digit(*p->at)) return fail(p, "a number has no digit");
  if (*p->at == '0' && is_digit(p->at[1])) return fail(p, "a number begins with a needless 0");
  for (; is_digit(*p->at); p->at++, num_digits++) digits = digits * 10 + (uint64_t)(*p->at - '0');
  if (*p->at == '.') {
    real = true;
    if (!is_digit(*++p->at)) return fail(p, "a number has no digit after the point");
    for (; is_digit(*p->at); p->at++, num_digits++, exponent--) digits = digits * 10 + (uint64_t)(*p->at - '0');
  }
  if (*p->at == 'e' || *p->at == 'E') {
    real = true;
    p->at += p->at[1] == '+' || p->at[1] == '-' ? 2 : 1;
    if (!is_digit(*p->at)) return fail(p, "a number has no digit in its exponent");
    while (is_digit(*p->at)) p->at++;
    num_digits = INT32_MAX; /* rare: left to strtod */
  }
  if (!real) return parse_integer(p, begin);
  const double value = to_double(begin, digits, num_digits, exponent, negative);
  return isinf(value) ? fail(p, "the number is too large") : json_real(value);
}

/* ---- strings ---- */

static int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four digits at p->at; -1: they are not. */
static int32_t parse_hex(parser *p) {
  int32_t value = 0;
  for (int i = 0; i < 4; i++) {
    const int digit = hex_digit(p->at[i]);
    if (digit < 0) return -1; /* also at the end of the text */
    value = value * 16 + digit;
  }
  p->at += 4;
  return value;
}

static char *add_utf8(char *out, uint32_t code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = (char)(0xE0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  } else {
    *out++ = (char)(0xF0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 0x3F));
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  }
  return out;
}

/* After the "\u". NULL: no such character. */
static char *parse_unicode(parser *p, char *out) {
  int32_t code = parse_hex(p);
  if (code >= 0xD800 && code < 0xDC00) {
    if (p->at[0] != '\\' || p->at[1] != 'u') return NULL;
    p->at += 2;
    const int32_t low = parse_hex(p);
    if (low < 0xDC00 || low > 0xDFFF) return NULL;
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  } else if (code <= 0 || (code >= 0xDC00 && code < 0xE000)) {
    return NULL;
  }
  return add_utf8(out, (uint32_t)code);
}

static char *parse_escape(parser *p, char *out) {
  static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
  const char c = *p->at;
  const char *letter = c != '\0' ? strchr(letters, c) : NULL;
  if (letter == NULL && c != 'u') return NULL; /* also at the end of the text */
  p->at++;
  if (c == 'u') return parse_unicode(p, out);
  *out++ = meanings[letter - letters];
  return out;
}

/* The string whose opening quote is at p->at, without its escapes; it lasts until the next. NULL: error. */
static const char *parse_text(parser *p, size_t *length) {
  const char *begin = ++p->at;
  while (*p->at != '"' && *p->at != '\\' && (unsigned char)*p->at >= 0x20) p->at++;
  *length = (size_t)(p->at - begin);
  if (*p->at == '"') {
    p->at++;
    return begin;
  }
  memcpy(p->scratch, begin, *length);
  char *out = p->scratch + *length;
  while (*p->at != '"') {
    if ((unsigned char)*p->at < 0x20) {
      fail(p, p->at == p->end ? "the text ends inside a string" : "a control character inside a string");
      return NULL;
    }
    if (*p->at != '\\') {
      *out++ = *p->at++;
      continue;
    }
    p->at++;
    out = parse_escape(p, out);
    if (out == NULL) {
      fail(p, "an escape that stands for no character");
      return NULL;
    }
  }
  p->at++;
  *length = (size_t)(out - p->scratch);
  return p->scratch;
}

static json_t *parse_string(parser *p) {
  size_t length;
  const char *text = parse_text(p, &length);
  json_t *string = text != NULL ? json_stringn(text, length) : NULL;
  return string != NULL ? string : fail(p, "a string is not UTF-8");
}

/* ---- lists and objects ---- */

/* Past a comma (true) or past `close` (false, *done). Neither: an error. */
static bool goes_on(parser *p, char close, bool *done) {
  skip_space(p);
  *done = *p->at == close;
  if (*p->at != ',' && !*done)
    return fail(p, p->at == p->end ? "the text ends too early" : "a comma is missing") != NULL;
  p->at++;
  skip_space(p);
  return !*done;
}

static bool parse_entry(parser *p, json_t *list) {
  json_t *value = parse_value(p);
  return value != NULL && (json_array_append_new(list, value) == 0 || fail(p, "no memory") != NULL);
}

static bool parse_member(parser *p, json_t *object) {
  if (*p->at != '"') return fail(p, p->at == p->end ? "the text ends too early" : "a key is missing") != NULL;
  size_t length;
  const char *text = parse_text(p, &length);
  if (text == NULL) return false;
  json_t *key = json_stringn(text, length); /* checks that it is UTF-8, and outlasts the next string */
  if (key == NULL) return fail(p, "a key is not UTF-8") != NULL;
  const char *name = json_string_value(key);
  json_t *value = NULL;
  skip_space(p);
  if (json_object_get(object, name) != NULL) {
    fail(p, "duplicate key");
  } else if (*p->at != ':') {
    fail(p, "a colon is missing");
  } else {
    p->at++;
    skip_space(p);
    value = parse_value(p);
  }
  const bool good =
      value != NULL && (json_object_set_new_nocheck(object, name, value) == 0 || fail(p, "no memory") != NULL);
  json_decref(key);
  return good;
}

static json_t *parse_container(parser *p, json_t *container, char close, bool (*parse_one)(parser *, json_t *)) {
  if (container == NULL) return fail(p, "no memory");
  if (p->depth == RGE_MAX_JSON_DEPTH) {
    json_decref(container);
    return fail(p, "is nested too deep");
  }
  p->depth++;
  p->at++;
  skip_space(p);
  bool done = *p->at == close;
  if (done) p->at++;
  if (!done) {
    while (parse_one(p, container) && goes_on(p, close, &done)) continue;
  }
  p->depth--;
  if (done && p->what == NULL) return container;
  json_decref(container);
  return NULL;
}

static json_t *parse_word(parser *p, const char *word, json_t *value) {
  const size_t length = strlen(word);
  if (strncmp(p->at, word, length) != 0) return fail(p, p->at == p->end ? "the text ends too early" : "no JSON value");
  p->at += length;
  return value;
}

static json_t *parse_value(parser *p) {
  switch (*p->at) {
    case '{':
      return parse_container(p, json_object(), '}', parse_member);
    case '[':
      return parse_container(p, json_array(), ']', parse_entry);
    case '"':
      return parse_string(p);
    case 't':
      return parse_word(p, "true", json_true());
    case 'f':
      return parse_word(p, "false", json_false());
    case 'n':
      return parse_word(p, "null", json_null());
    default:
      return is_digit(*p->at) || *p->at == '-' ? parse_number(p) : parse_word(p, "a value", NULL);
  }
}

static void find_place(const char *text, const char *at, rge_json_error *error) {
  error->line = error->column = 1;
  for (; text < at; text++) {
    error->column = *text == '\n' ? 1 : error->column + 1;
    error->line += *text == '\n';
  }
}

json_t *rge_json_parse(const char *text, size_t length, rge_json_error *error) {
  parser p = {.at = text, .end = text + length, .scratch = malloc(length + 1)};
  json_t *root = NULL;
  if (p.scratch == NULL) {
    fail(&p, "no memory");
  } else {
    skip_space(&p);
    root = *p.at == '{' || *p.at == '[' ? parse_value(&p) : fail(&p, "neither an object nor a list");
    if (root != NULL) skip_space(&p);
    if (root != NULL && p.at != p.end) {
      json_decref(root);
      root = fail(&p, "something stands after the end");
    }
  }
  free(p.scratch);
  if (root == NULL) {
    error->what = p.what != NULL ? p.what : "no memory";
    find_place(text, p.at, error);
  }
  return root;
}
