/* message.h: one line of text that says why something failed. The harness never prints and never exits: every function
 * that can fail returns false and leaves its reason here, and the tool decides where the line goes. */
#ifndef ROPEGRAD_HARNESS_BASE_MESSAGE_H
#define ROPEGRAD_HARNESS_BASE_MESSAGE_H

#include <stdbool.h>

typedef struct rgh_message {
  char text[512];
} rgh_message;

/* Formats the reason and returns false, so that a caller can write `return rgh_fail(why, ...)`. Control characters
 * (a file name or a key may hold any) become '?', which keeps the text on one line; a text too long ends in "...".
 * `why` may be NULL. */
bool rgh_fail(rgh_message *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* What rgh_fail does to control characters: for other text from a file on its way to a terminal, which obeys them. */
void rgh_keep_on_one_line(char *text);

#endif /* ROPEGRAD_HARNESS_BASE_MESSAGE_H */
