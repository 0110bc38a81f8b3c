#include "harness/evidence/aggregate.h"

#include <math.h>
#include <string.h>

#include "harness/evidence/peers.h"
#include "harness/evidence/samples.h"

void rge_aggregate(rge_entry *entry) {
  double latency = 0, floor = 0, ratio = 0, speed = 0;
  int with_floor = 0, with_bytes = 0;
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    entry->has_peers = entry->has_peers || item->num_peers > 0;
    if (!item->timed) continue;
    entry->num_timed++;
    latency += log(item->latency_us);
    entry->mean_latency_us += item->latency_us;
    if (item->read_bytes + item->write_bytes > 0) {
      speed += log((double)(item->read_bytes + item->write_bytes) * 1e-3 / item->latency_us);
      with_bytes++;
    }
    if (item->ratio <= 0) continue;
    with_floor++;
    floor += log(item->floor_us);
    ratio += log(item->ratio);
    entry->mean_floor_us += item->floor_us;
    if (item->ratio > entry->worst_ratio) {
      entry->worst_ratio = item->ratio;
      entry->worst_case = item->name;
    }
  }
  if (entry->num_timed == 0) return;
  entry->latency_us = exp(latency / entry->num_timed);
  entry->mean_latency_us /= entry->num_timed;
  if (with_bytes > 0) entry->gigabytes_per_second = exp(speed / with_bytes);
  if (with_floor == 0) return;
  entry->floor_us = exp(floor / with_floor);
  entry->mean_floor_us /= with_floor;
  entry->ratio = exp(ratio / with_floor);
}

static void expect(rge_entry *entry, const json_t *stated, const char *key, double recomputed) {
  const json_t *value = json_object_get(stated, key);
  if (value == NULL || (json_is_null(value) && recomputed == 0)) return;
  if (json_is_number(value) && rge_same(json_number_value(value), recomputed)) return;
  if (json_is_null(value)) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s%s: %s of the summary is null, but the cases give %.12g",
                    entry->op->name, entry->in_place ? " in place" : "", key, recomputed);
  } else {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s%s: %s of the summary is %.12g, but the cases give %.12g",
                    entry->op->name, entry->in_place ? " in place" : "", key, json_number_value(value), recomputed);
  }
}

/* A summary row names its variant, or its threads, only where a record holds several. */
static bool is_about(const json_t *row, const rge_entry *entry) {
  const char *op = json_string_value(json_object_get(row, "op"));
  const char *variant = json_string_value(json_object_get(row, "variant"));
  const json_t *threads = json_object_get(row, "threads");
  return op != NULL && strcmp(op, entry->op->name) == 0 &&
         json_is_true(json_object_get(row, "in_place")) == entry->in_place &&
         (variant == NULL || strcmp(variant, entry->variant) == 0) &&
         (threads == NULL || entry->threads == 0 || json_integer_value(threads) == entry->threads);
}

static void check_row(const json_t *row, rge_entry *entry) {
  expect(entry, row, "cases", entry->num_timed);
  expect(entry, row, "geomean_latency_us", entry->latency_us);
  expect(entry, row, "geomean_floor_us", entry->floor_us);
  expect(entry, row, "ratio", entry->ratio);
  expect(entry, row, "worst_ratio", entry->worst_ratio);
  const char *worst = json_string_value(json_object_get(row, "worst_case"));
  if (worst != NULL && *worst != '\0' && entry->worst_case != NULL && strcmp(worst, entry->worst_case) != 0) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s: the summary names %.60s as the worst case, but it is %s",
                    entry->op->name, worst, entry->worst_case);
  }
  rge_peers_check_summary(row, entry);
}

/* How many rows are about the entry; checks each. */
static int check_rows_of(const json_t *summary, rge_entry *entry) {
  int rows = 0;
  for (size_t i = 0; i < json_array_size(summary); i++) {
    if (!is_about(json_array_get(summary, i), entry)) continue;
    rows++;
    check_row(json_array_get(summary, i), entry);
  }
  return rows;
}

static bool is_about_any(const json_t *row, const rge_record *record) {
  for (int e = 0; e < record->num_entries; e++) {
    if (record->entries[e].num_timed > 0 && is_about(row, &record->entries[e])) return true;
  }
  return false;
}

void rge_check_summary(const json_t *summary, rge_record *record) {
  if (!json_is_array(summary)) return;
  for (int e = 0; e < record->num_entries; e++) {
    rge_entry *entry = &record->entries[e];
    const int rows = entry->num_timed > 0 ? check_rows_of(summary, entry) : 1;
    if (rows == 1) continue;
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s%s: the summary %s", entry->op->name,
                    entry->in_place ? " in place" : "", rows == 0 ? "does not have it" : "has it more than once");
  }
  for (size_t i = 0; i < json_array_size(summary); i++) {
    if (is_about_any(json_array_get(summary, i), record)) continue;
    rge_problem_add(&record->problems, RGE_LOWERS, "summary[%zu]: no timed case of the record belongs to it", i);
  }
}
