#include "harness/evidence/change.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/samples.h"

/* Two runs of one binary on one quiet machine differ by so much: code and tensors lie elsewhere. */
static const double LEAST_NOISE = 0.02;
static const double SIGMAS = 3;

const char *rge_verdict_name(rge_verdict verdict) {
  static const char *const names[RGE_NUM_VERDICTS] = {"noise", "slower", "faster", "drift"};
  return names[verdict];
}

/* Relative standard error of a median, from the robust sigma of its samples. */
static double error_of(const rge_quantiles *q) {
  return q->count > 0 && q->median > 0 ? 1.2533 * q->deviation / q->median / sqrt(q->count) : 0;
}

static double noise_of(const rge_quantiles *a, double spread_a, const rge_quantiles *b, double spread_b) {
  return fmax(fmax(LEAST_NOISE, fmax(spread_a, spread_b)), SIGMAS * hypot(error_of(a), error_of(b)));
}

/* Changes and noises are relative; they are compared as logarithms, so that a hundredth of a time is as much of a change
 * as a hundred times it. */
static rge_verdict judge(double latency, double noise, double ratio, double ratio_noise) {
  latency = log1p(latency);
  ratio = log1p(ratio);
  if (fabs(latency) <= noise) return RGE_SAME;
  if (isnan(ratio)) return latency > 0 ? RGE_SLOWER : RGE_FASTER;
  if (fabs(ratio) <= ratio_noise || (ratio > 0) != (latency > 0)) return RGE_DRIFT;
  return latency > 0 ? RGE_SLOWER : RGE_FASTER;
}

/* Noise of the ratio: the floor has some of its own. */
static double ratio_noise_of(const rge_case *before, const rge_case *after, double noise) {
  return fmax(noise, noise_of(&before->floor_sample, before->floor_spread, &after->floor_sample, after->floor_spread));
}

rge_change rge_case_change(const rge_case *before, const rge_case *after) {
  rge_change change = {.latency = after->latency_us / before->latency_us - 1, .ratio = NAN};
  change.noise = noise_of(&before->sample, before->spread, &after->sample, after->spread);
  if (before->ratio > 0 && after->ratio > 0) change.ratio = after->ratio / before->ratio - 1;
  change.verdict = judge(change.latency, change.noise, change.ratio, ratio_noise_of(before, after, change.noise));
  return change;
}

const rge_case *rge_case_named(const rge_entry *entry, const char *name) {
  for (int c = 0; c < entry->num_cases; c++) {
    if (strcmp(entry->cases[c].name, name) == 0) return &entry->cases[c];
  }
  return NULL;
}

bool rge_cases_comparable(const rg_operator *op, const rge_case *before, const rge_case *after, rgh_message *why) {
  for (int d = 0; d < op->num_dims; d++) {
    if (before->dim[d] == after->dim[d] || before->dim[d] < 0 || after->dim[d] < 0) continue;
    return rgh_fail(why, "its %s differs: %lld, then %lld", op->dims[d].name, (long long)before->dim[d],
                    (long long)after->dim[d]);
  }
  if (before->read_bytes != after->read_bytes || before->write_bytes != after->write_bytes) {
    return rgh_fail(why,
                    "it moves other bytes, as with another dtype or other outputs: %lld read and %lld written, "
                    "then %lld and %lld",
                    (long long)before->read_bytes, (long long)before->write_bytes, (long long)after->read_bytes,
                    (long long)after->write_bytes);
  }
  if (before->sample.count > 0 && after->sample.count > 0) return true;
  return rgh_fail(why, "the %s record has no samples of it", before->sample.count == 0 ? "old" : "new");
}

rge_whole rge_entry_change(const rge_entry *before, const rge_entry *after) {
  double *noise = malloc(2 * ((size_t)before->num_cases + 1) * sizeof *noise);
  double *ratio_noise = noise != NULL ? noise + before->num_cases + 1 : NULL;
  double ratio = 0;
  int with_ratio = 0;
  rge_whole whole = {.change.ratio = NAN};
  for (int c = 0; noise != NULL && c < before->num_cases; c++) {
    const rge_case *old = &before->cases[c], *new = rge_case_named(after, old->name);
    if (!old->timed || new == NULL || !new->timed || !rge_cases_comparable(before->op, old, new, NULL)) continue;
    const rge_change change = rge_case_change(old, new);
    noise[whole.cases] = change.noise;
    ratio_noise[whole.cases++] = ratio_noise_of(old, new, change.noise);
    whole.before_us += log(old->latency_us);
    whole.after_us += log(new->latency_us);
    if (isnan(change.ratio)) continue;
    ratio += log1p(change.ratio);
    with_ratio++;
  }
  if (whole.cases > 0) {
    whole.before_us = exp(whole.before_us / whole.cases);
    whole.after_us = exp(whole.after_us / whole.cases);
    rge_change *change = &whole.change;
    change->latency = whole.after_us / whole.before_us - 1;
    change->noise = rge_median_of(noise, whole.cases);
    if (with_ratio == whole.cases) change->ratio = expm1(ratio / with_ratio);
    change->verdict = judge(change->latency, change->noise, change->ratio, rge_median_of(ratio_noise, whole.cases));
  }
  free(noise);
  return whole;
}

static bool same(const char *a, const char *b) { return strcmp(a, b) == 0; }

const rge_entry *rge_counterpart(const rge_record *record, const rge_entry *entry) {
  const rge_entry *found = NULL;
  int best = -1;
  for (int e = 0; e < record->num_entries; e++) {
    const rge_entry *other = &record->entries[e];
    if (other->op != entry->op || other->in_place != entry->in_place) continue;
    /* Another variant is compared only where the same one is not there: that is how a new one shows its worth. */
    const int likeness = 2 * (same(other->hardware, entry->hardware) && same(other->setting, entry->setting)) +
                         same(other->variant, entry->variant);
    if (likeness <= best) continue;
    best = likeness;
    found = other;
  }
  return found;
}

static bool differs(const char *what, const char *a, const char *b, rgh_message *why) {
  return !same(a, b) && !rgh_fail(why, "the %s differs: %.100s; then %.100s", what, a, b);
}

bool rge_comparable(const rge_entry *before, const rge_entry *after, rgh_message *why) {
  return !differs("hardware", before->hardware, after->hardware, why) &&
         !differs("setting", before->setting, after->setting, why) &&
         !differs("suite", before->record->suite, after->record->suite, why);
}
