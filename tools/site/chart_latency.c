#include <math.h>
#include <stdio.h>

#include "tools/site/chart.h"

enum { WIDTH = 640, HEIGHT = 380, LEFT = 64, RIGHT = 16, TOP = 34, BOTTOM = 48, MAX_TICKS = 16 };

static double bytes_of(const rge_case *item) { return (double)item->read_bytes + (double)item->write_bytes; }

static bool is_drawn(const rge_case *item) { return item->timed && item->floor_us > 0 && bytes_of(item) > 0; }

/* Ends of both axes. False: nothing to draw. */
static bool find_ends(const rge_entry *entry, rgs_axis *x, rgs_axis *y, bool *roofline) {
  bool any = false;
  *roofline = false;
  x->low = y->low = INFINITY;
  x->high = y->high = 0;
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    if (!is_drawn(item)) continue;
    any = true;
    x->low = fmin(x->low, bytes_of(item));
    x->high = fmax(x->high, bytes_of(item));
    y->low = fmin(y->low, fmin(item->latency_us, item->floor_us));
    y->high = fmax(y->high, fmax(item->latency_us, item->floor_us));
    if (item->roofline_us <= 0) continue;
    *roofline = true;
    y->low = fmin(y->low, item->roofline_us);
  }
  return any;
}

static void draw_axes(rge_text *svg, rgs_axis *x, rgs_axis *y) {
  double ticks[MAX_TICKS];
  char text[24];
  int count = rgs_axis_ticks(x, ticks, MAX_TICKS);
  for (int t = 0; t < count; t++) {
    const double at = rgs_axis_place(x, ticks[t]);
    rge_text_format(svg, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", at, TOP, HEIGHT - BOTTOM);
    rgs_tick_text(ticks[t], true, text);
    rgs_svg_text(svg, at, HEIGHT - BOTTOM + 18, "tick middle", text);
  }
  count = rgs_axis_ticks(y, ticks, MAX_TICKS);
  for (int t = 0; t < count; t++) {
    const double at = rgs_axis_place(y, ticks[t]);
    rge_text_format(svg, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, at, WIDTH - RIGHT);
    rgs_tick_text(ticks[t], false, text);
    rgs_svg_text(svg, LEFT - 8, at + 4, "tick end", text);
  }
  rgs_svg_text(svg, (LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10, "label middle", "bytes moved");
  rgs_svg_text(svg, 6, 14, "label", "microseconds");
}

static void draw_legend(rge_text *svg, bool roofline) {
  double x = WIDTH - RIGHT - (roofline ? 310 : 190);
  rge_text_format(svg, "<circle class=\"mark measured\" cx=\"%.0f\" cy=\"10\" r=\"4.5\"/>", x);
  rgs_svg_text(svg, x + 9, 14, "label", "latency");
  x += 80;
  rge_text_format(svg, "<rect class=\"mark floor\" x=\"%.0f\" y=\"6\" width=\"8\" height=\"8\"/>", x);
  rgs_svg_text(svg, x + 13, 14, "label", "floor (plain copy)");
  if (!roofline) return;
  x += 132;
  rge_text_format(svg, "<path class=\"line roofline\" d=\"M%.0f 10h20\"/>", x);
  rgs_svg_text(svg, x + 24, 14, "label", "datasheet");
}

/* The datasheet's bandwidth is one number, so its line joins any two of its points. */
static void draw_roofline(rge_text *svg, const rge_entry *entry, const rgs_axis *x, const rgs_axis *y) {
  double bytes_per_us = 0;
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    if (is_drawn(item) && item->roofline_us > 0) bytes_per_us = bytes_of(item) / item->roofline_us;
  }
  const double from = fmax(x->low, y->low * bytes_per_us), to = fmin(x->high, y->high * bytes_per_us);
  if (bytes_per_us <= 0 || from >= to) return;
  rgs_svg_add(svg, "<path class=\"line roofline\" d=\"M@ @L@ @\"/>", rgs_axis_place(x, from),
              rgs_axis_place(y, from / bytes_per_us), rgs_axis_place(x, to), rgs_axis_place(y, to / bytes_per_us));
}

static void draw_cases(rge_text *svg, const rge_entry *entry, const rgs_axis *x, const rgs_axis *y) {
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    if (!is_drawn(item)) continue;
    const double at = rgs_axis_place(x, bytes_of(item));
    const double floor = rgs_axis_place(y, item->floor_us), latency = rgs_axis_place(y, item->latency_us);
    rgs_svg_add(svg, "<rect class=\"mark floor\" x=\"@\" y=\"@\" width=\"8\" height=\"8\"/>", at - 4, floor - 4);
    rgs_svg_add(svg, "<circle class=\"mark measured\" cx=\"@\" cy=\"@\" r=\"4.5\"><title>", at, latency);
    rge_text_add_escaped(svg, item->name);
    rge_text_format(svg, ": %.4g us, floor %.4g us</title></circle>", item->latency_us, item->floor_us);
  }
}

json_t *rgs_chart_latency(const rge_entry *entry, const char *id) {
  rgs_axis x = {.from = LEFT, .to = WIDTH - RIGHT, .logarithmic = true};
  rgs_axis y = {.from = HEIGHT - BOTTOM, .to = TOP, .logarithmic = true};
  bool roofline;
  if (!find_ends(entry, &x, &y, &roofline)) return json_null();
  char description[256];
  snprintf(description, sizeof description,
           "%d cases. Latency from %.4g microseconds upward; geometric mean %.4g, its floor %.4g. The table of cases "
           "has every number.",
           entry->num_timed, y.low, entry->latency_us, entry->floor_us);
  rge_text svg = {0};
  rgs_svg_begin(&svg, id, WIDTH, HEIGHT, "Latency and floor over bytes moved, logarithmic axes", description);
  draw_axes(&svg, &x, &y);
  draw_legend(&svg, roofline);
  draw_roofline(&svg, entry, &x, &y);
  draw_cases(&svg, entry, &x, &y);
  return rgs_svg_end(&svg);
}
