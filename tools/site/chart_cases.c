/* The two charts with a row per case: how far from the limit, and how its raw samples are spread. */
#include <math.h>
#include <stdio.h>

#include "tools/site/chart.h"

enum { WIDTH = 640, LEFT = 190, RIGHT = 56, TOP = 30, ROW = 18, BOTTOM = 14, MAX_TICKS = 12, NAME_LETTERS = 26 };
enum { MAX_ROWS = 100 };

static bool is_drawn(const rge_case *item) { return item->timed && item->ratio > 0; }

static int count_rows(const rge_entry *entry) {
  int rows = 0;
  for (int c = 0; c < entry->num_cases; c++) rows += is_drawn(&entry->cases[c]);
  return rows < MAX_ROWS ? rows : MAX_ROWS;
}

static void draw_frame(rge_text *svg, rgs_axis *x, int rows, double limit, const char *label) {
  double ticks[MAX_TICKS];
  char text[24];
  const int count = rgs_axis_ticks(x, ticks, MAX_TICKS), bottom = TOP + rows * ROW;
  for (int t = 0; t < count; t++) {
    const double at = rgs_axis_place(x, ticks[t]);
    rge_text_format(svg, "<path class=\"grid\" d=\"M%.1f %dV%d\"/>", at, TOP - 4, bottom);
    rgs_tick_text(ticks[t], false, text);
    rgs_svg_text(svg, at, TOP - 10, "tick middle", text);
  }
  rge_text_format(svg, "<path class=\"line limit\" d=\"M%.1f %dV%d\"/>", rgs_axis_place(x, limit), TOP - 4, bottom);
  rgs_svg_text(svg, 6, TOP - 10, "label", label);
}

static void draw_name(rge_text *svg, const rge_case *item, double y) {
  char name[NAME_LETTERS * 4 + 8];
  /* Cut between letters, not inside the bytes of one. */
  size_t used = 0, letters = 0;
  for (const char *c = item->name; *c != '\0' && used + 4 < sizeof name; c++) {
    if (((unsigned char)*c & 0xC0) != 0x80 && letters++ == NAME_LETTERS) break;
    name[used++] = *c;
  }
  name[used] = '\0';
  rgs_svg_text(svg, LEFT - 8, y + 4, "tick end", name);
}

json_t *rgs_chart_ratio(const rge_entry *entry, const char *id) {
  const int rows = count_rows(entry);
  if (rows == 0) return json_null();
  rgs_axis x = {.low = 1, .high = 1.1, .from = LEFT, .to = WIDTH - RIGHT};
  for (int c = 0; c < entry->num_cases; c++) {
    if (!is_drawn(&entry->cases[c])) continue;
    x.low = fmin(x.low, entry->cases[c].ratio);
    x.high = fmax(x.high, entry->cases[c].ratio);
  }
  rge_text svg = {0};
  char description[256], text[24];
  snprintf(description, sizeof description, "%d cases: geometric mean %.3f, worst %.3f. 1 is the limit of the machine.",
           rows, entry->ratio, entry->worst_ratio);
  rgs_svg_begin(&svg, id, WIDTH, TOP + rows * ROW + BOTTOM, "Latency over floor, per case", description);
  draw_frame(&svg, &x, rows, 1, "latency / floor");
  for (int c = 0, row = 0; c < entry->num_cases && row < rows; c++) {
    const rge_case *item = &entry->cases[c];
    if (!is_drawn(item)) continue;
    const double y = TOP + row++ * ROW + ROW / 2.0, from = rgs_axis_place(&x, 1), to = rgs_axis_place(&x, item->ratio);
    draw_name(&svg, item, y);
    rgs_svg_add(&svg, "<rect class=\"bar\" x=\"@\" y=\"@\" width=\"@\" height=\"10\"/>", fmin(from, to), y - 5,
                fmax(fabs(to - from), 1.5));
    snprintf(text, sizeof text, "%.3f", item->ratio);
    rgs_svg_text(&svg, fmax(from, to) + 5, y + 4, "tick", text);
  }
  return rgs_svg_end(&svg);
}

json_t *rgs_chart_samples(const rge_entry *entry, const char *id) {
  const int rows = count_rows(entry);
  int samples = 0;
  rgs_axis x = {.low = 0.95, .high = 1.05, .from = LEFT, .to = WIDTH - RIGHT};
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    samples += item->sample.count;
    if (!is_drawn(item) || item->sample.count == 0) continue;
    x.low = fmin(x.low, fmax(item->sample.low / item->latency_us, 0.5));
    x.high = fmax(x.high, fmin(item->sample.upper / item->latency_us * 1.2, 2));
  }
  if (rows == 0 || samples == 0) return json_null();
  rge_text svg = {0};
  char description[256];
  snprintf(description, sizeof description,
           "%d raw samples of %d cases, each divided by the latency of its case. Box: the middle half; bar in it: the "
           "median; whiskers: least and largest, an arrow where the largest lies beyond the picture.",
           samples, rows);
  rgs_svg_begin(&svg, id, WIDTH, TOP + rows * ROW + BOTTOM, "Distribution of the raw samples, per case", description);
  draw_frame(&svg, &x, rows, 1, "sample / latency");
  for (int c = 0, row = 0; c < entry->num_cases && row < rows; c++) {
    const rge_case *item = &entry->cases[c];
    if (!is_drawn(item)) continue;
    const double y = TOP + row++ * ROW + ROW / 2.0, unit = item->latency_us;
    const rge_quantiles *q = &item->sample;
    draw_name(&svg, item, y);
    if (q->count == 0) continue;
    const double lower = rgs_axis_place(&x, q->lower / unit), upper = rgs_axis_place(&x, q->upper / unit);
    const double high = rgs_axis_place(&x, q->high / unit);
    rgs_svg_add(&svg, "<path class=\"whisker\" d=\"M@ @H@\"/>", rgs_axis_place(&x, q->low / unit), y, high);
    rgs_svg_add(&svg, "<rect class=\"box\" x=\"@\" y=\"@\" width=\"@\" height=\"10\"/>", lower, y - 5,
                fmax(upper - lower, 1));
    rgs_svg_add(&svg, "<path class=\"median\" d=\"M@ @v12\"/>", rgs_axis_place(&x, q->median / unit), y - 6);
    if (q->high / unit <= x.high) continue;
    rgs_svg_add(&svg, "<path class=\"arrow\" d=\"M@ @l6 4l-6 4z\"/>", high, y - 4);
    char text[24];
    snprintf(text, sizeof text, "%.1fx", q->high / unit);
    rgs_svg_text(&svg, high + 9, y + 4, "tick", text);
  }
  return rgs_svg_end(&svg);
}
