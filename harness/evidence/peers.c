#include "harness/evidence/peers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/expect.h"

static const char *text_of(const json_t *source, const char *key) {
  return json_string_value(json_object_get(source, key));
}

/* Whether it has a time of its own that can be believed at all. */
static bool was_timed(const json_t *source) {
  const char *status = text_of(json_object_get(source, "verify"), "status");
  return text_of(source, "name") != NULL && status != NULL && strcmp(status, "pass") == 0 &&
         json_number_value(json_object_get(source, "latency_us")) > 0;
}

/* ropegrad_us is what the same run gave for the same outputs as the peer has. They may be fewer than the case's, so that
 * it does not follow from the case's samples; the ratio follows from it. */
static double ratio_of(const json_t *source, const rge_series *series, const char *whose, rge_entry *entry,
                       const rge_case *item) {
  const double rival_us = json_number_value(json_object_get(source, "ropegrad_us"));
  if (rival_us > 0) {
    rge_expect(entry, item, source, whose, "ratio", series->us / rival_us);
    return series->us / rival_us;
  }
  if (json_is_number(json_object_get(source, "ratio"))) {
    rge_case_problem(entry, item, RGE_LOWERS, "ratio %shas no ropegrad_us to follow from", whose);
  }
  return 0;
}

/* Reads one peer into the next place of the list. False: no memory. */
static bool read_one(const json_t *source, int repetitions, rge_entry *entry, rge_case *item) {
  char whose[96];
  rge_series series;
  rgh_message why;
  const char *name = text_of(source, "name"), *column = text_of(source, "column");
  snprintf(whose, sizeof whose, "of the peer %.64s ", name);
  if (!rge_series_read(json_object_get(source, "samples_us"), repetitions, &series, &why)) {
    rge_case_problem(entry, item, RGE_LOWERS, "the time %scannot be recomputed: %s", whose, why.text);
    return true;
  }
  rge_expect(entry, item, source, whose, "latency_us", series.us);
  rge_expect(entry, item, source, whose, "spread", series.spread);
  rge_expect_medians(entry, item, source, whose, &series);
  rge_peer *peer = &item->peers[item->num_peers++];
  *peer = (rge_peer){.name = strdup(name),
                     .column = strdup(column != NULL ? column : name),
                     .latency_us = series.us,
                     .ratio = ratio_of(source, &series, whose, entry, item),
                     .fastest_form = !json_is_false(json_object_get(source, "fastest_form"))};
  rge_series_free(&series);
  return peer->name != NULL && peer->column != NULL;
}

/* A form that is not the fastest stands for nothing, so that a slow one cannot stand for its peer. */
static void check_forms(rge_entry *entry, const rge_case *item) {
  for (int p = 0; p < item->num_peers; p++) {
    const rge_peer *slow = &item->peers[p];
    for (int q = 0; slow->fastest_form && q < item->num_peers; q++) {
      const rge_peer *fast = &item->peers[q];
      if (strcmp(slow->column, fast->column) != 0 || fast->latency_us >= slow->latency_us) continue;
      rge_case_problem(entry, item, RGE_LOWERS,
                       "the peer %.64s is called the fastest form of %.64s, and %.64s is faster", slow->name,
                       slow->column, fast->name);
      break;
    }
  }
}

static void keep_fastest_forms(rge_case *item) {
  int kept = 0;
  for (int p = 0; p < item->num_peers; p++) {
    if (item->peers[p].fastest_form) {
      item->peers[kept++] = item->peers[p];
    } else {
      free(item->peers[p].name);
      free(item->peers[p].column);
    }
  }
  item->num_peers = kept;
}

bool rge_peers_read(const json_t *list, int repetitions, rge_entry *entry, rge_case *item) {
  item->peers = calloc(json_array_size(list) + 1, sizeof *item->peers);
  bool good = item->peers != NULL;
  for (size_t p = 0; good && p < json_array_size(list); p++) {
    const json_t *source = json_array_get(list, p);
    if (was_timed(source)) good = read_one(source, repetitions, entry, item);
  }
  if (good) check_forms(entry, item);
  keep_fastest_forms(item);
  return good;
}

/* ---- the summary ---- */

typedef struct totals {
  int cases;
  double latency, ratio, lowest; /* sums of logarithms, then means; the lowest ratio */
} totals;

static totals add_up(const rge_entry *entry, const char *column) {
  totals sum = {.lowest = INFINITY};
  for (int c = 0; c < entry->num_cases; c++) {
    for (int p = 0; p < entry->cases[c].num_peers; p++) {
      const rge_peer *peer = &entry->cases[c].peers[p];
      if (strcmp(peer->column, column) != 0 || peer->ratio <= 0) continue;
      sum.cases++;
      sum.latency += log(peer->latency_us);
      sum.ratio += log(peer->ratio);
      sum.lowest = fmin(sum.lowest, peer->ratio);
    }
  }
  if (sum.cases == 0) return sum;
  sum.latency = exp(sum.latency / sum.cases);
  sum.ratio = exp(sum.ratio / sum.cases);
  return sum;
}

void rge_peers_check_summary(const json_t *row, rge_entry *entry) {
  const json_t *list = json_object_get(row, "peers");
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *stated = json_array_get(list, i);
    const char *column = text_of(stated, "name");
    if (column == NULL) continue;
    const totals sum = add_up(entry, column);
    const struct {
      const char *key;
      double recomputed;
    } all[] = {{"cases", sum.cases},
               {"geomean_latency_us", sum.latency},
               {"ratio", sum.ratio},
               {"lowest_ratio", sum.cases > 0 ? sum.lowest : 0}};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
      const json_t *value = json_object_get(stated, all[k].key);
      if (value == NULL || rge_same(json_number_value(value), all[k].recomputed)) continue;
      rge_problem_add(&entry->problems, RGE_LOWERS,
                      "%s: %s of the peer %.64s in the summary is %.12g, but the cases give %.12g", entry->op->name,
                      all[k].key, column, json_number_value(value), all[k].recomputed);
    }
  }
}

void rge_peers_free(rge_case *item) {
  for (int p = 0; p < item->num_peers; p++) {
    free(item->peers[p].name);
    free(item->peers[p].column);
  }
  free(item->peers);
}
