/* expression.h: whole-number expressions over named sizes, as definitions of problems have them. */
#ifndef ROPEGRAD_HARNESS_CASES_EXPRESSION_H
#define ROPEGRAD_HARNESS_CASES_EXPRESSION_H

#include <stdint.h>

#include "harness/base/message.h"

typedef struct rgh_named_size {
  const char *name;
  int64_t value; /* negative: not known, and no expression may name it */
} rgh_named_size;

/* Python's + - * / // % **, parentheses, signs and whole numbers; a '/' that does not come out whole is an error, as is
 * whatever leaves 64 bits. The reason does not name the place. */
bool rgh_expression(const char *text, const rgh_named_size *sizes, int num_sizes, int64_t *value, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CASES_EXPRESSION_H */
