#include "harness/base/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void rgh_keep_on_one_line(char *text) {
  for (; *text != '\0'; ++text) {
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
  }
}

bool rgh_fail(rgh_message *why, const char *format, ...) {
  if (why == NULL) return false;
  /* Formatted apart, because an argument may be why->text itself. */
  rgh_message made;
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(made.text, sizeof made.text, format, values);
  va_end(values);
  if (length >= (int)sizeof made.text) memcpy(made.text + sizeof made.text - 4, "...", 4);
  rgh_keep_on_one_line(made.text);
  *why = made;
  return false;
}
