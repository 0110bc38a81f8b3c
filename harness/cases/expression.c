#include "harness/cases/expression.h"

#include <ctype.h>
#include <string.h>

/* Levels of signs, powers and parentheses: each takes the parser a few calls down. */
enum { MAX_DEPTH = 100 };

typedef struct parser {
  const char *at;
  const rgh_named_size *sizes;
  int num_sizes;
  int depth;
  rgh_message *why;
} parser;

static bool read_sum(parser *p, int64_t *value);
static bool read_signed(parser *p, int64_t *value);

static bool too_large(parser *p) { return rgh_fail(p->why, "a number that does not fit in 64 bits"); }

static void skip_space(parser *p) {
  while (isspace((unsigned char)*p->at)) p->at++;
}

static bool take(parser *p, const char *word) {
  skip_space(p);
  const size_t length = strlen(word);
  if (strncmp(p->at, word, length) != 0) return false;
  p->at += length;
  return true;
}

static bool read_number(parser *p, int64_t *value) {
  for (*value = 0; isdigit((unsigned char)*p->at); p->at++) {
    if (__builtin_mul_overflow(*value, 10, value) || __builtin_add_overflow(*value, *p->at - '0', value)) {
      return too_large(p);
    }
  }
  return true;
}

static bool read_name(parser *p, int64_t *value) {
  const char *name = p->at;
  while (isalnum((unsigned char)*p->at) || *p->at == '_') p->at++;
  const size_t length = (size_t)(p->at - name);
  for (int s = 0; s < p->num_sizes; s++) {
    *value = p->sizes[s].value;
    if (strlen(p->sizes[s].name) == length && strncmp(p->sizes[s].name, name, length) == 0 && *value >= 0) return true;
  }
  return rgh_fail(p->why, "there is no const or var axis \"%.*s\"", length < 60 ? (int)length : 60, name);
}

static bool read_atom(parser *p, int64_t *value) {
  if (take(p, "(")) {
    if (!read_sum(p, value)) return false;
    return take(p, ")") || rgh_fail(p->why, "a ')' is missing");
  }
  if (isdigit((unsigned char)*p->at)) return read_number(p, value);
  if (isalpha((unsigned char)*p->at) || *p->at == '_') return read_name(p, value);
  return *p->at == '\0' ? rgh_fail(p->why, "it ends too early") : rgh_fail(p->why, "unexpected '%c'", *p->at);
}

static bool raise_to(parser *p, int64_t exponent, int64_t *value) {
  const int64_t base = *value;
  if (exponent < 0) return rgh_fail(p->why, "a negative exponent");
  *value = exponent > 0 && (base == 0 || (base == -1 && exponent % 2 == 1)) ? base : 1;
  if (base == 0 || base == 1 || base == -1) return true; /* the others overflow within 63 steps */
  for (int64_t e = 0; e < exponent; e++) {
    if (__builtin_mul_overflow(*value, base, value)) return too_large(p);
  }
  return true;
}

/* Binds tighter than a sign before it, and from the right. */
static bool read_power(parser *p, int64_t *value) {
  int64_t exponent;
  if (!read_atom(p, value)) return false;
  return !take(p, "**") || (read_signed(p, &exponent) && raise_to(p, exponent, value));
}

/* Every way down the grammar comes through here. */
static bool read_signed(parser *p, int64_t *value) {
  if (p->depth == MAX_DEPTH) return rgh_fail(p->why, "nested too deep");
  p->depth++;
  const bool minus = take(p, "-");
  const bool good = minus || take(p, "+") ? read_signed(p, value) : read_power(p, value);
  p->depth--;
  return good && (!minus || !__builtin_sub_overflow(0, *value, value) || too_large(p));
}

/* Python's // and % round towards minus infinity. */
static bool divide(parser *p, int64_t divisor, int64_t *quotient, int64_t *rest) {
  if (divisor == 0) return rgh_fail(p->why, "a division by 0");
  if (divisor == -1) {
    *rest = 0;
    return !__builtin_sub_overflow(0, *quotient, quotient) || too_large(p);
  }
  *rest = *quotient % divisor;
  *quotient /= divisor;
  if (*rest != 0 && (*rest < 0) != (divisor < 0)) {
    *rest += divisor;
    --*quotient;
  }
  return true;
}

static bool read_product(parser *p, int64_t *value) {
  if (!read_signed(p, value)) return false;
  for (;;) {
    int64_t right, rest = 0;
    if (take(p, "//")) {
      if (!read_signed(p, &right) || !divide(p, right, value, &rest)) return false;
    } else if (take(p, "/")) {
      if (!read_signed(p, &right) || !divide(p, right, value, &rest)) return false;
      if (rest != 0) return rgh_fail(p->why, "a '/' whose result is not whole");
    } else if (take(p, "%")) {
      if (!read_signed(p, &right) || !divide(p, right, value, &rest)) return false;
      *value = rest;
    } else if (take(p, "*")) {
      if (!read_signed(p, &right)) return false;
      if (__builtin_mul_overflow(*value, right, value)) return too_large(p);
    } else {
      return true;
    }
  }
}

static bool read_sum(parser *p, int64_t *value) {
  if (!read_product(p, value)) return false;
  for (;;) {
    int64_t right;
    if (take(p, "+")) {
      if (!read_product(p, &right)) return false;
      if (__builtin_add_overflow(*value, right, value)) return too_large(p);
    } else if (take(p, "-")) {
      if (!read_product(p, &right)) return false;
      if (__builtin_sub_overflow(*value, right, value)) return too_large(p);
    } else {
      return true;
    }
  }
}

bool rgh_expression(const char *text, const rgh_named_size *sizes, int num_sizes, int64_t *value, rgh_message *why) {
  parser p = {.at = text, .sizes = sizes, .num_sizes = num_sizes, .why = why};
  if (!read_sum(&p, value)) return false;
  skip_space(&p);
  return *p.at == '\0' || rgh_fail(why, "unexpected '%c'", *p.at);
}
