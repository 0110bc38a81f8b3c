#include "harness/evidence/rank.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/provenance.h"
#include "harness/evidence/samples.h"

/* Two runs on a machine so busy that anything agrees with anything verify nothing. */
static const double LEAST_NOISE = 0.03, MOST_NOISE = 0.10;

/* ---- noise ---- */

static double typical_spread(const rge_entry *entry) {
  double *spread = malloc((size_t)(entry->num_cases + 1) * sizeof *spread);
  int count = 0;
  if (spread == NULL) return 0;
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    if (item->timed) spread[count++] = item->spread > item->floor_spread ? item->spread : item->floor_spread;
  }
  const double median = count > 0 ? rge_median_of(spread, count) : 0;
  free(spread);
  return median;
}

double rge_noise_between(const rge_entry *a, const rge_entry *b) {
  const double x = typical_spread(a), y = typical_spread(b);
  return fmin(MOST_NOISE, fmax(LEAST_NOISE, fmax(x, y)));
}

/* ---- who may rank ---- */

static bool has_evidence(const rge_entry *entry) {
  return !rge_problems_reach(&entry->problems, RGE_LOWERS) &&
         !rge_problems_reach(&entry->record->problems, RGE_LOWERS) && entry->num_timed > 0;
}

bool rge_entry_counts(const rge_entry *entry, const char **why) {
  *why = "";
  if (entry->num_timed == 0) {
    *why = "no case was timed";
  } else if (!has_evidence(entry)) {
    *why = "its evidence is not complete";
  } else if (entry->ratio <= 0) {
    *why = "no floor was measured beside it";
  } else if (entry->record->warm) {
    *why = "its caches were warm";
  }
  return **why == '\0';
}

bool rge_entry_ranks(const rge_entry *entry, const char **why) {
  if (!rge_entry_counts(entry, why)) return false;
  if (entry->suite_cases == 0) {
    *why = "its suite is not known here";
  } else if (entry->num_timed < entry->suite_cases) {
    *why = "cases of the suite are missing";
  }
  return **why == '\0';
}

/* ---- agreement ---- */

bool rge_entries_alike(const rge_entry *a, const rge_entry *b) {
  const rge_record *x = a->record, *y = b->record;
  return a->op == b->op && a->in_place == b->in_place && strcmp(a->hardware, b->hardware) == 0 &&
         strcmp(a->setting, b->setting) == 0 && strcmp(x->suite, y->suite) == 0 &&
         strcmp(x->suite_digest, y->suite_digest) == 0;
}

/* Another run, of the same source, that measured the same thing and came to the same ratio. The ratio and not the time,
 * because the speed of a shared machine drifts and takes the floor along. */
static bool agrees(const rge_entry *a, const rge_entry *b) {
  const rge_record *x = a->record, *y = b->record;
  return rge_entries_alike(a, b) && strcmp(a->variant, b->variant) == 0 && strcmp(x->utc, y->utc) != 0 &&
         strcmp(x->digest, y->digest) != 0 && a->num_timed == b->num_timed && a->ratio > 0 && has_evidence(b) &&
         b->ratio > 0 && fabs(log(a->ratio / b->ratio)) <= rge_noise_between(a, b);
}

static void lift(rge_entry *entry, const rge_index *index) {
  for (int r = 0; r < index->num_records && entry->tier < RGE_REPLICATED; r++) {
    const rge_record *record = &index->records[r];
    if (record == entry->record || strcmp(record->commit, entry->record->commit) != 0) continue;
    for (int e = 0; e < record->num_entries; e++) {
      const rge_entry *other = &record->entries[e];
      if (!agrees(entry, other)) continue;
      const rge_tier tier = rge_same_machine(entry->record, record) ? RGE_VERIFIED : RGE_REPLICATED;
      if (tier <= entry->tier) continue;
      entry->tier = tier;
      entry->witness = other;
    }
  }
}

void rge_rank(rge_index *index) {
  for (int r = 0; r < index->num_records; r++) {
    rge_record *record = &index->records[r];
    for (int e = 0; e < record->num_entries; e++) {
      rge_entry *entry = &record->entries[e];
      entry->tier = has_evidence(entry) ? RGE_REPRODUCIBLE : RGE_REPORTED;
      entry->witness = NULL;
      if (entry->tier == RGE_REPRODUCIBLE) lift(entry, index);
    }
  }
}
