#include "harness/evidence/expect.h"

#include <stdarg.h>
#include <stdio.h>

void rge_case_problem(rge_entry *entry, const rge_case *item, rge_weight weight, const char *format, ...) {
  char text[384];
  va_list values;
  va_start(values, format);
  vsnprintf(text, sizeof text, format, values);
  va_end(values);
  rge_problem_add(&entry->problems, weight, "%s %s: %s", entry->op->name, item->name, text);
}

void rge_expect(rge_entry *entry, const rge_case *item, const json_t *source, const char *whose, const char *key,
                double recomputed) {
  const json_t *stated = json_object_get(source, key);
  if (stated == NULL || (json_is_number(stated) && rge_same(json_number_value(stated), recomputed))) return;
  if (json_is_number(stated)) {
    rge_case_problem(entry, item, RGE_LOWERS, "%s %sis %.12g, but the samples give %.12g", key, whose,
                     json_number_value(stated), recomputed);
  } else {
    rge_case_problem(entry, item, RGE_LOWERS, "%s %sis not stated, but the samples give %.12g", key, whose, recomputed);
  }
}

void rge_expect_medians(rge_entry *entry, const rge_case *item, const json_t *source, const char *whose,
                        const rge_series *series) {
  const json_t *stated = json_object_get(source, "medians_us");
  if (stated == NULL) return;
  bool same = json_array_size(stated) == (size_t)series->repetitions;
  for (int r = 0; same && r < series->repetitions; r++) {
    same = rge_same(json_number_value(json_array_get(stated, (size_t)r)), series->medians[r]);
  }
  if (!same) rge_case_problem(entry, item, RGE_LOWERS, "the medians %sdo not follow from its samples", whose);
}
