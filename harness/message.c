#include "harness/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool rgh_fail(rgh_message *why, const char *format, ...) {
  if (why == NULL) return false;
  /* Formatted apart, because an argument may be why->text itself. */
  rgh_message made;
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(made.text, sizeof made.text, format, values);
  va_end(values);
  if (length >= (int)sizeof made.text) memcpy(made.text + sizeof made.text - 4, "...", 4);
  for (char *c = made.text; *c != '\0'; ++c) {
    if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
  }
  *why = made;
  return false;
}
