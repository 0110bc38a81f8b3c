#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/suggest.h"
#include "tools/ropegrad/tool.h"

int rgt_complain(int code, const char *command, const char *format, ...) {
  fprintf(stderr, "ropegrad%s%s: ", command[0] != '\0' ? " " : "", command);
  va_list values;
  va_start(values, format);
  vfprintf(stderr, format, values);
  va_end(values);
  fputc('\n', stderr);
  return code;
}

int rgt_complain_unknown(const char *command, const char *typed, const struct option *known) {
  enum { MOST_OPTIONS = 32 };
  const char *names[MOST_OPTIONS];
  int count = 0;
  bool is_letter = optopt > 0 && optopt <= UCHAR_MAX; /* or a known option with a value that it does not take */
  for (; count < MOST_OPTIONS && known[count].name != NULL; count++) {
    names[count] = known[count].name;
    if (known[count].val == optopt && strncmp(typed, "--", 2) == 0) is_letter = false;
  }
  const char letter[] = {'-', (char)optopt, '\0'};
  if (is_letter) typed = letter; /* of -xh, which getopt has not left yet, `typed` is the word before */
  const int nearest = rgh_nearest_name(typed + strspn(typed, "-"), names, count);
  if (nearest < 0) {
    return rgt_complain(RGT_WRONG_USE, command, "unknown option '%s'; see ropegrad %s --help", typed, command);
  }
  return rgt_complain(RGT_WRONG_USE, command, "unknown option '%s'; did you mean '--%s'? See ropegrad %s --help", typed,
                      names[nearest], command);
}
