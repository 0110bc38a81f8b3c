#include <stdlib.h>
#include <string.h>

#include "tools/site/template.h"

/* ---- filters ---- */

static void add_us(const json_t *value, rge_text *out) {
  const double us = json_number_value(value);
  rge_text_format(out, us >= 1000 ? "%.0f" : us >= 100 ? "%.1f" : us >= 10 ? "%.2f" : "%.3f", us);
}

static void add_ratio(const json_t *value, rge_text *out) {
  const double ratio = json_number_value(value);
  rge_text_format(out, ratio < 10 ? "%.3f" : "%.1f", ratio);
}

static void add_speed(const json_t *value, rge_text *out) {
  const double speed = json_number_value(value);
  rge_text_format(out, speed >= 100 ? "%.0f" : speed >= 1 ? "%.1f" : "%.3f", speed);
}

static void add_percent(const json_t *value, rge_text *out) {
  rge_text_format(out, "%.1f %%", 100 * json_number_value(value));
}

static void add_bytes(const json_t *value, rge_text *out) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double bytes = json_number_value(value);
  int unit = 0;
  for (; bytes >= 1024 && unit < 4; unit++) bytes /= 1024;
  rge_text_format(out, bytes >= 100 || unit == 0 ? "%.0f %s" : "%.1f %s", bytes, units[unit]);
}

static void add_start(const json_t *value, size_t count, rge_text *out) {
  const char *text = json_string_value(value);
  if (text != NULL) rge_text_add_bytes(out, text, strnlen(text, count));
}

static void add_date(const json_t *value, rge_text *out) { add_start(value, strlen("2026-01-31"), out); }
static void add_short(const json_t *value, rge_text *out) { add_start(value, 10, out); }

bool rgs_format(const char *filter, const json_t *value, rge_text *out) {
  static const struct {
    const char *name;
    void (*add)(const json_t *value, rge_text *out);
  } filters[] = {{"us", add_us},       {"ratio", add_ratio}, {"gb_per_s", add_speed}, {"percent", add_percent},
                 {"bytes", add_bytes}, {"date", add_date},   {"short", add_short}};
  for (size_t f = 0; f < sizeof filters / sizeof filters[0]; f++) {
    if (strcmp(filters[f].name, filter) != 0) continue;
    if (value != NULL && !json_is_null(value)) filters[f].add(value, out);
    return true;
  }
  return false;
}

/* ---- JSON ---- */

void rgs_add_json(const json_t *value, rge_text *out) {
  char *json = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(9));
  if (json == NULL) {
    out->failed = true;
    return;
  }
  const char *plain = json;
  for (const char *c = json; *c != '\0'; c++) {
    if (*c != '<' && *c != '>' && *c != '&') continue; /* these stand in strings alone */
    rge_text_add_bytes(out, plain, (size_t)(c - plain));
    rge_text_format(out, "\\u%04x", (unsigned)*c);
    plain = c + 1;
  }
  rge_text_add(out, plain);
  free(json);
}
