/* The text of the last error. Functions that can fail take an `rg_error *`, fill it and return the status, and callers
 * forward that status. */
#ifndef ROPEGRAD_SRC_BASE_ERROR_H
#define ROPEGRAD_SRC_BASE_ERROR_H

#include "ropegrad/ropegrad_dev.h"

enum { RG_ERROR_TEXT_BYTES = 512 };

struct rg_error {
  char text[RG_ERROR_TEXT_BYTES];
};

/* Writes the text (printf format, truncated to fit) and returns `status`, so that a check reads
 * `return rg_fail(error, RG_ERR_SHAPE, ...)`. With a NULL `error` the status alone is wanted. Cold:
 * the compiler then keeps the failing paths apart from the others, whose code is fetched from memory in every call that
 * follows much other work. */
__attribute__((cold, format(printf, 3, 4))) rg_status rg_fail(rg_error *error, rg_status status, const char *format,
                                                              ...);

#endif
