#include "harness/evidence/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "harness/base/statistics.h"

/* No time is less; what is divided by one stays finite. */
static const double LEAST_US = 1e-6;

/* Shell's sort: a record has tens of thousands of samples in short lists, where qsort's calls for each comparison take
 * most of the time of reading it. */
static void sort(double *values, int count) {
  int gap = 1;
  while (gap < count / 3) gap = 3 * gap + 1;
  for (; gap > 0; gap /= 3) {
    for (int i = gap; i < count; i++) {
      const double value = values[i];
      int at = i;
      for (; at >= gap && values[at - gap] > value; at -= gap) values[at] = values[at - gap];
      values[at] = value;
    }
  }
}

double rge_median_of(double *values, int count) {
  sort(values, count);
  return (values[(count - 1) / 2] + values[count / 2]) / 2;
}

bool rge_same(double a, double b) { return fabs(a - b) <= 1e-6 * fmax(fabs(a), fabs(b)) + 1e-3; }

static uint64_t hash_of(const double *samples, int count, double *scratch) {
  for (int i = 0; i < count; i++) scratch[i] = floor(samples[i] * 1000 + 0.5);
  return XXH3_64bits(scratch, (size_t)count * sizeof *scratch);
}

/* The median distance from the median of sorted values: the distances grow to both sides of the middle, so that the
 * smallest half of them is found by walking outwards. */
static double median_distance(const double *sorted, int count, double median) {
  int left = (count - 1) / 2, right = left + 1;
  double last = 0, before = 0;
  for (int taken = 0; taken <= count / 2; taken++) {
    const double to_left = left >= 0 ? median - sorted[left] : INFINITY;
    const double to_right = right < count ? sorted[right] - median : INFINITY;
    before = last;
    last = fmin(to_left, to_right);
    if (to_left <= to_right) {
      left--;
    } else {
      right++;
    }
  }
  return count % 2 == 1 ? last : (before + last) / 2;
}

static rge_quantiles quantiles_of(const double *sorted, int count) {
  return (rge_quantiles){.count = count,
                         .low = sorted[0],
                         .lower = sorted[(count - 1) / 4],
                         .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
                         .upper = sorted[count - 1 - (count - 1) / 4],
                         .high = sorted[count - 1]};
}

/* Sorts values of which `runs` equal parts are sorted already; `scratch` has room for as many. */
static void merge_runs(double *values, int count, int runs, double *scratch) {
  const int each = count / runs;
  if (runs > 8) { /* merging one after the other would be slower */
    sort(values, count);
    return;
  }
  for (int done = each; done < count; done += each) {
    memcpy(scratch, values, (size_t)done * sizeof *values);
    int a = 0, b = done;
    for (int out = 0; a < done; out++) {
      values[out] = b < done + each && values[b] < scratch[a] ? values[b++] : scratch[a++];
    }
  }
}

bool rge_series_read(const json_t *list, int repetitions, rge_series *series, rgh_message *why) {
  *series = (rge_series){0};
  const size_t count = json_array_size(list);
  if (count == 0) return rgh_fail(why, "there are no samples");
  if (repetitions < 1 || count > INT32_MAX || count % (size_t)repetitions != 0) {
    return rgh_fail(why, "%zu samples are not %d repetitions of equal length", count, repetitions);
  }
  series->samples = malloc(3 * count * sizeof *series->samples);
  series->medians = malloc((size_t)repetitions * sizeof *series->medians);
  if (series->samples == NULL || series->medians == NULL) {
    rge_series_free(series);
    return rgh_fail(why, "no memory");
  }
  for (size_t i = 0; i < count; i++) series->samples[i] = json_number_value(json_array_get(list, i));
  double *scratch = series->samples + count;
  series->hash = hash_of(series->samples, (int)count, scratch);
  memcpy(scratch, series->samples, count * sizeof *scratch);
  series->count = (int)count;
  series->repetitions = repetitions;
  const int each = (int)count / repetitions;
  for (int r = 0; r < repetitions; r++) series->medians[r] = rge_median_of(scratch + (size_t)r * (size_t)each, each);
  series->us = rgh_mean(series->medians, repetitions);
  if (series->us < LEAST_US) {
    rge_series_free(series);
    return rgh_fail(why, "its samples are no times: their median is below a picosecond");
  }
  series->spread = rgh_spread(series->medians, repetitions);
  merge_runs(scratch, (int)count, repetitions, scratch + count);
  series->quantiles = quantiles_of(scratch, (int)count);
  series->quantiles.deviation = 1.4826 * median_distance(scratch, (int)count, series->quantiles.median);
  return true;
}

void rge_series_free(rge_series *series) {
  free(series->samples);
  free(series->medians);
  *series = (rge_series){0};
}
