/* text.h: a string that grows. A failed allocation is remembered and seen once, at the end. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_TEXT_H
#define ROPEGRAD_HARNESS_EVIDENCE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

typedef struct rge_text {
  char *bytes; /* ends with '\0'; NULL while nothing was added */
  size_t length, room;
  bool failed; /* memory ran out: the text is incomplete */
} rge_text;

void rge_text_add_bytes(rge_text *text, const char *bytes, size_t count);
void rge_text_add(rge_text *text, const char *string);
void rge_text_format(rge_text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A number from -1e6 to 1e6 with one digit after the point: what charts are made of, much faster than a format. */
void rge_text_tenths(rge_text *text, double number);

/* With & < > " and ' as entities, and control characters, which HTML does not allow, as U+FFFD. Right in the text of an
 * element and in a quoted attribute. */
void rge_text_add_escaped(rge_text *text, const char *string);

void rge_text_free(rge_text *text);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_TEXT_H */
