#include "src/base/error.h"

#include <stdarg.h>
#include <stdio.h>

rg_status rg_fail(rg_error *error, rg_status status, const char *format, ...) {
  if (error == NULL) return status;
  va_list values;
  va_start(values, format);
  vsnprintf(error->text, sizeof error->text, format, values);
  va_end(values);
  return status;
}
