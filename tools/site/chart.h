/* chart.h: pictures as inline SVG: they scale, print, follow the colours of the page, and carry a title and a
 * description for those who do not see them. Nothing is told by colour alone: each kind of mark has its own shape. */
#ifndef ROPEGRAD_TOOLS_SITE_CHART_H
#define ROPEGRAD_TOOLS_SITE_CHART_H

#include "harness/evidence/text.h"
#include "tools/site/board.h"

/* Each returns SVG as a JSON string for the template; null when there is nothing to draw. `id` is the picture's own. */

/* Latency over bytes moved, both axes logarithmic, with the floor and the datasheet's roofline. */
json_t *rgs_chart_latency(const rge_entry *entry, const char *id);

/* The ratio of every case, the limit at 1. */
json_t *rgs_chart_ratio(const rge_entry *entry, const char *id);

/* The spread of the raw samples of every case about its latency. */
json_t *rgs_chart_samples(const rge_entry *entry, const char *id);

/* The ratio of each record over time, one mark per hardware, the best so far as a line. */
json_t *rgs_chart_history(const rgs_board *board, const char *id);

/* Adds the first three to `data`, the JSON of the entry's cases, under its "key". */
void rgs_draw_entry(const rge_entry *entry, json_t *data);

/* ---- axis.c: what they share ---- */

typedef struct rgs_axis {
  double low, high; /* values at the ends */
  double from, to;  /* pixels at the ends */
  bool logarithmic;
} rgs_axis;

double rgs_axis_place(const rgs_axis *axis, double value);

/* Widens the axis to round ends and returns the values of its ticks, at most `room`. */
int rgs_axis_ticks(rgs_axis *axis, double *ticks, int room);

/* "12", "0.5", "1,000", with K, M, G for `binary` bytes. */
void rgs_tick_text(double value, bool bytes, char text[24]);

/* <svg> with title and description; the matching end. */
void rgs_svg_begin(rge_text *svg, const char *id, int width, int height, const char *title, const char *description);
json_t *rgs_svg_end(rge_text *svg);

/* Markup in which each @ stands for the next of the numbers, all of them doubles. */
void rgs_svg_add(rge_text *svg, const char *markup, ...);

/* <text class="..." x y>escaped</text> */
void rgs_svg_text(rge_text *svg, double x, double y, const char *class_name, const char *text);

#endif /* ROPEGRAD_TOOLS_SITE_CHART_H */
