#include "harness/evidence/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for `more` bytes and the '\0' after them. */
static bool reserve(rge_text *text, size_t more) {
  if (text->failed) return false;
  if (text->length + more < text->room) return true;
  size_t room = text->room < 256 ? 256 : text->room;
  while (room <= text->length + more) room *= 2;
  char *bytes = realloc(text->bytes, room);
  if (bytes == NULL) {
    text->failed = true;
    return false;
  }
  text->bytes = bytes;
  text->room = room;
  return true;
}

void rge_text_add_bytes(rge_text *text, const char *bytes, size_t count) {
  if (!reserve(text, count)) return;
  memcpy(text->bytes + text->length, bytes, count);
  text->length += count;
  text->bytes[text->length] = '\0';
}

void rge_text_add(rge_text *text, const char *string) { rge_text_add_bytes(text, string, strlen(string)); }

void rge_text_format(rge_text *text, const char *format, ...) {
  char small[512];
  va_list values;
  va_start(values, format);
  const int length = vsnprintf(small, sizeof small, format, values);
  va_end(values);
  if (length < (int)sizeof small) {
    rge_text_add_bytes(text, small, (size_t)length);
    return;
  }
  if (!reserve(text, (size_t)length)) return;
  va_start(values, format);
  vsnprintf(text->bytes + text->length, (size_t)length + 1, format, values);
  va_end(values);
  text->length += (size_t)length;
}

void rge_text_tenths(rge_text *text, double number) {
  char digits[16];
  int at = sizeof digits;
  const bool negative = number < 0;
  long tenths = (long)((negative ? -number : number) * 10 + 0.5);
  digits[--at] = (char)('0' + tenths % 10);
  digits[--at] = '.';
  for (tenths /= 10; at > 1; tenths /= 10) {
    digits[--at] = (char)('0' + tenths % 10);
    if (tenths < 10) break;
  }
  if (negative) digits[--at] = '-';
  rge_text_add_bytes(text, digits + at, sizeof digits - (size_t)at);
}

static const char *entity_of(unsigned char byte) {
  switch (byte) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return (byte < 0x20 && byte != '\t' && byte != '\n') || byte == 0x7f ? "&#xFFFD;" : NULL;
  }
}

void rge_text_add_escaped(rge_text *text, const char *string) {
  const char *plain = string; /* start of what needs no entity */
  for (; *string != '\0'; string++) {
    const char *entity = entity_of((unsigned char)*string);
    if (entity == NULL) continue;
    rge_text_add_bytes(text, plain, (size_t)(string - plain));
    rge_text_add(text, entity);
    plain = string + 1;
  }
  rge_text_add_bytes(text, plain, (size_t)(string - plain));
}

void rge_text_free(rge_text *text) {
  free(text->bytes);
  *text = (rge_text){0};
}
