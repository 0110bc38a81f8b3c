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

static rge_verdict judge(double latency, double noise, double ratio, double ratio_noise) {
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

const rge_case *rge_timed_case(const rge_entry *entry, const char *name) {
  for (int c = 0; c < entry->num_cases; c++) {
    if (entry->cases[c].timed && strcmp(entry->cases[c].name, name) == 0) return &entry->cases[c];
  }
  return NULL;
}

rge_change rge_entry_change(const rge_entry *before, const rge_entry *after, int *matched) {
  double *noise = malloc(2 * ((size_t)before->num_cases + 1) * sizeof *noise);
  double *ratio_noise = noise != NULL ? noise + before->num_cases + 1 : NULL;
  double latency = 0, ratio = 0;
  int with_ratio = 0;
  *matched = 0;
  for (int c = 0; noise != NULL && c < before->num_cases; c++) {
    const rge_case *old = &before->cases[c];
    const rge_case *new = old->timed ? rge_timed_case(after, old->name) : NULL;
    if (new == NULL) continue;
    const rge_change change = rge_case_change(old, new);
    noise[*matched] = change.noise;
    ratio_noise[(*matched)++] = ratio_noise_of(old, new, change.noise);
    latency += log1p(change.latency);
    if (isnan(change.ratio)) continue;
    ratio += log1p(change.ratio);
    with_ratio++;
  }
  rge_change whole = {.ratio = NAN};
  if (*matched > 0) {
    whole.latency = expm1(latency / *matched);
    whole.noise = rge_median_of(noise, *matched);
    if (with_ratio == *matched) whole.ratio = expm1(ratio / with_ratio);
    whole.verdict = judge(whole.latency, whole.noise, whole.ratio, rge_median_of(ratio_noise, *matched));
  }
  free(noise);
  return whole;
}

const rge_entry *rge_counterpart(const rge_record *record, const rge_entry *entry) {
  const rge_entry *found = NULL;
  for (int e = 0; e < record->num_entries; e++) {
    const rge_entry *other = &record->entries[e];
    if (other->op != entry->op || other->in_place != entry->in_place) continue;
    /* Another variant is compared only where the same one is not there: that is how a new one shows its worth. */
    if (found == NULL || strcmp(other->variant, entry->variant) == 0) found = other;
  }
  return found;
}

static bool differs(const char *what, const char *a, const char *b, rgh_message *why) {
  return strcmp(a, b) != 0 && !rgh_fail(why, "the %s differs: %.100s, then %.100s", what, a, b);
}

bool rge_comparable(const rge_entry *before, const rge_entry *after, rgh_message *why) {
  const rge_record *x = before->record, *y = after->record;
  if (differs("hardware", before->hardware, after->hardware, why) || differs("timer", x->method, y->method, why) ||
      differs("suite", x->suite, y->suite, why)) {
    return false;
  }
  if (x->warm != y->warm) return rgh_fail(why, "one has warm caches and the other cold ones");
  if (before->threads == after->threads) return true;
  return rgh_fail(why, "the threads differ: %lld, then %lld", (long long)before->threads, (long long)after->threads);
}
