#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/site/chart.h"

enum { WIDTH = 640, HEIGHT = 300, LEFT = 56, RIGHT = 24, TOP = 24, BOTTOM = 44, MAX_TICKS = 12, MAX_POINTS = 400 };
enum { NUM_SHAPES = 5, LEGEND_ROW = 18, MAX_LABELS = 10 };

/* Days since the epoch of "2026-12-01T12:34:56Z"; NAN for any other text. */
static double days_of(const char *utc) {
  struct tm parts = {0};
  if (sscanf(utc, "%d-%d-%dT%d:%d:%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday, &parts.tm_hour, &parts.tm_min,
             &parts.tm_sec) != 6 ||
      parts.tm_year < 1970 || parts.tm_year > 9999) {
    return NAN;
  }
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return (double)timegm(&parts) / 86400;
}

static int by_time(const void *a, const void *b) {
  return strcmp((*(const rge_entry *const *)a)->record->utc, (*(const rge_entry *const *)b)->record->utc);
}

static void draw_mark(rge_text *svg, int shape, double x, double y) {
  static const char *const paths[NUM_SHAPES] = {"m-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0", "m-4.5 -4.5h9v9h-9z",
                                                "m0 -6l5.5 10h-11z", "m0 -6l6 6l-6 6l-6 -6z", "m0 6l5.5 -10h-11z"};
  rge_text_format(svg, "<path class=\"mark series%d\" d=\"M%.1f %.1f%s\">", shape % NUM_SHAPES, x, y,
                  paths[shape % NUM_SHAPES]);
}

static void date_text(double days, char text[24]) {
  const time_t seconds = (time_t)(days * 86400);
  struct tm parts;
  gmtime_r(&seconds, &parts);
  strftime(text, 24, "%Y-%m-%d", &parts);
}

typedef struct picture {
  rge_text *svg;
  rgs_axis x, y;
  int labels_left; /* commits spelt out beside their marks */
} picture;

/* One hardware: its marks, and its best ratio so far as steps. */
static void draw_group(picture *p, const rgs_group *group, int shape) {
  const rge_entry **list = malloc((size_t)group->count * sizeof(const rge_entry *));
  if (list == NULL) return;
  memcpy(list, group->entries, (size_t)group->count * sizeof(const rge_entry *));
  qsort(list, (size_t)group->count, sizeof *list, by_time);
  double best = INFINITY;
  int drawn = 0;
  rge_text line = {0};
  for (int e = 0; e < group->count; e++) {
    const double days = days_of(list[e]->record->utc);
    if (isnan(days) || list[e]->ratio >= best) continue;
    best = list[e]->ratio;
    rge_text_format(&line, drawn++ == 0 ? "M%.1f %.1f" : "H%.1fV%.1f", rgs_axis_place(&p->x, days),
                    rgs_axis_place(&p->y, best));
  }
  if (drawn > 0)
    rge_text_format(p->svg, "<path class=\"line series%d\" d=\"%sH%d\"/>", shape, line.bytes, WIDTH - RIGHT);
  rge_text_free(&line);
  for (int e = group->count > MAX_POINTS ? group->count - MAX_POINTS : 0; e < group->count; e++) {
    const double days = days_of(list[e]->record->utc);
    if (isnan(days)) continue;
    const double x = rgs_axis_place(&p->x, days), y = rgs_axis_place(&p->y, list[e]->ratio);
    draw_mark(p->svg, shape, x, y);
    char commit[12];
    snprintf(commit, sizeof commit, "%.7s", list[e]->record->commit);
    rge_text_format(p->svg, "<title>%.3f, record %s, commit ", list[e]->ratio, list[e]->record->id);
    rge_text_add_escaped(p->svg, commit);
    rge_text_add(p->svg, "</title></path>");
    if (p->labels_left-- <= 0) continue;
    rgs_svg_text(p->svg, x > WIDTH - RIGHT - 60 ? x - 9 : x + 9, y - 7, x > WIDTH - RIGHT - 60 ? "tick end" : "tick",
                 commit);
  }
  free(list);
}

static void draw_frame(picture *p) {
  double ticks[MAX_TICKS];
  char text[24];
  const int count = rgs_axis_ticks(&p->y, ticks, MAX_TICKS);
  for (int t = 0; t < count; t++) {
    const double at = rgs_axis_place(&p->y, ticks[t]);
    rge_text_format(p->svg, "<path class=\"grid\" d=\"M%d %.1fH%d\"/>", LEFT, at, WIDTH - RIGHT);
    rgs_tick_text(ticks[t], false, text);
    rgs_svg_text(p->svg, LEFT - 8, at + 4, "tick end", text);
  }
  date_text(p->x.low, text);
  rgs_svg_text(p->svg, LEFT, HEIGHT - BOTTOM + 20, "tick", text);
  date_text(p->x.high, text);
  rgs_svg_text(p->svg, WIDTH - RIGHT, HEIGHT - BOTTOM + 20, "tick end", text);
  rgs_svg_text(p->svg, 6, 14, "label", "latency / floor");
  rge_text_format(p->svg, "<path class=\"line limit\" d=\"M%d %.1fH%d\"/>", LEFT, rgs_axis_place(&p->y, 1),
                  WIDTH - RIGHT);
}

json_t *rgs_chart_history(const rgs_board *board, const char *id) {
  rge_text svg = {0};
  picture p = {.svg = &svg,
               .x = {.low = INFINITY, .high = -INFINITY, .from = LEFT, .to = WIDTH - RIGHT},
               .y = {.low = 1, .high = 1.1, .from = HEIGHT - BOTTOM, .to = TOP},
               .labels_left = board->num_ranked <= MAX_LABELS ? MAX_LABELS : 0};
  for (int e = 0; e < board->num_ranked; e++) {
    const double days = days_of(board->ranked[e]->record->utc);
    if (isnan(days)) continue;
    p.x.low = fmin(p.x.low, days);
    p.x.high = fmax(p.x.high, days);
    p.y.low = fmin(p.y.low, board->ranked[e]->ratio);
    p.y.high = fmax(p.y.high, board->ranked[e]->ratio);
  }
  if (isinf(p.x.low)) return json_null();
  p.x.low -= 0.5 + 0.02 * (p.x.high - p.x.low);
  p.x.high += 0.5;
  const int shown = board->num_groups < RGS_SHOWN_GROUPS ? board->num_groups : RGS_SHOWN_GROUPS;
  char description[256];
  snprintf(description, sizeof description,
           "%d records on %d kinds of hardware, from the first to the newest; the line is the best so far. Each mark "
           "names its record and commit.",
           board->num_ranked, board->num_groups);
  rgs_svg_begin(&svg, id, WIDTH, HEIGHT + shown * LEGEND_ROW, "Record history: ratio over time", description);
  draw_frame(&p);
  for (int g = 0; g < shown; g++) {
    draw_group(&p, &board->groups[g], g % NUM_SHAPES);
    draw_mark(&svg, g, LEFT + 5, HEIGHT - 4 + g * LEGEND_ROW);
    rge_text_add(&svg, "</path>");
    rgs_svg_text(&svg, LEFT + 18, HEIGHT + g * LEGEND_ROW, "label", board->groups[g].hardware);
  }
  return rgs_svg_end(&svg);
}
