#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "harness/evidence/text.h"
#include "tools/site/chart.h"

double rgs_axis_place(const rgs_axis *axis, double value) {
  const double share = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                         : (value - axis->low) / (axis->high - axis->low);
  return axis->from + fmin(fmax(share, 0), 1) * (axis->to - axis->from);
}

static int log_ticks(rgs_axis *axis, double *ticks, int room) {
  axis->low = pow(10, floor(log10(axis->low) + 1e-9));
  axis->high = pow(10, ceil(log10(axis->high) - 1e-9));
  if (axis->high <= axis->low) axis->high = axis->low * 10;
  int count = 0;
  for (double tick = axis->low; tick <= axis->high * 1.0001 && count < room; tick *= 10) ticks[count++] = tick;
  return count;
}

static int linear_ticks(rgs_axis *axis, double *ticks, int room) {
  const double rough = (axis->high - axis->low) / 5;
  const double power = pow(10, floor(log10(rough)));
  const double step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : rough / power < 7.5 ? 5 : 10);
  axis->low = floor(axis->low / step + 1e-9) * step;
  axis->high = ceil(axis->high / step - 1e-9) * step;
  int count = 0;
  for (double tick = axis->low; tick <= axis->high + step / 2 && count < room; tick += step) ticks[count++] = tick;
  return count;
}

int rgs_axis_ticks(rgs_axis *axis, double *ticks, int room) {
  return axis->logarithmic ? log_ticks(axis, ticks, room) : linear_ticks(axis, ticks, room);
}

void rgs_tick_text(double value, bool bytes, char text[24]) {
  static const char *const units[] = {"", "K", "M", "G", "T", "P"};
  int unit = 0;
  if (bytes) {
    for (; value >= 1000 && unit < 5; unit++) value /= 1000;
  }
  /* No exponent: a reader counts noughts better. */
  snprintf(text, 24, value >= 1000 ? "%.0f%s%s%s" : "%.4g%s%s%s", value, bytes ? " " : "", units[unit],
           bytes ? "B" : "");
}

void rgs_svg_begin(rge_text *svg, const char *id, int width, int height, const char *title, const char *description) {
  rge_text_format(svg,
                  "<svg class=\"chart\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\" "
                  "aria-labelledby=\"%s-t %s-d\"><title id=\"%s-t\">",
                  width, height, width, height, id, id, id);
  rge_text_add_escaped(svg, title);
  rge_text_format(svg, "</title><desc id=\"%s-d\">", id);
  rge_text_add_escaped(svg, description);
  rge_text_add(svg, "</desc>");
}

json_t *rgs_svg_end(rge_text *svg) {
  rge_text_add(svg, "</svg>");
  json_t *string = svg->failed ? json_null() : json_stringn(svg->bytes, svg->length);
  rge_text_free(svg);
  return string != NULL ? string : json_null();
}

void rgs_svg_add(rge_text *svg, const char *markup, ...) {
  va_list numbers;
  va_start(numbers, markup);
  for (const char *at; (at = strchr(markup, '@')) != NULL; markup = at + 1) {
    rge_text_add_bytes(svg, markup, (size_t)(at - markup));
    rge_text_tenths(svg, va_arg(numbers, double));
  }
  va_end(numbers);
  rge_text_add(svg, markup);
}

void rgs_svg_text(rge_text *svg, double x, double y, const char *class_name, const char *text) {
  rge_text_add(svg, "<text class=\"");
  rge_text_add(svg, class_name);
  rgs_svg_add(svg, "\" x=\"@\" y=\"@\">", x, y);
  rge_text_add_escaped(svg, text);
  rge_text_add(svg, "</text>");
}
