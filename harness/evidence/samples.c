#include "harness/evidence/samples.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "harness/statistics.h"

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

static rge_quantiles quantiles_of(double *scratch, int count) {
  rge_quantiles q = {.count = count};
  q.median = rge_median_of(scratch, count);
  q.low = scratch[0];
  q.high = scratch[count - 1];
  q.lower = scratch[(count - 1) / 4];
  q.upper = scratch[count - 1 - (count - 1) / 4];
  for (int i = 0; i < count; i++) scratch[i] = fabs(scratch[i] - q.median);
  q.deviation = 1.4826 * rge_median_of(scratch, count);
  return q;
}

bool rge_series_read(const json_t *list, int repetitions, rge_series *series, rgh_message *why) {
  *series = (rge_series){0};
  const size_t count = json_array_size(list);
  if (count == 0) return rgh_fail(why, "there are no samples");
  if (repetitions < 1 || count > INT32_MAX || count % (size_t)repetitions != 0) {
    return rgh_fail(why, "%zu samples are not %d repetitions of equal length", count, repetitions);
  }
  series->samples = malloc(2 * count * sizeof *series->samples);
  series->medians = malloc((size_t)repetitions * sizeof *series->medians);
  if (series->samples == NULL || series->medians == NULL) {
    rge_series_free(series);
    return rgh_fail(why, "no memory");
  }
  for (size_t i = 0; i < count; i++) series->samples[i] = json_number_value(json_array_get(list, i));
  double *scratch = series->samples + count;
  memcpy(scratch, series->samples, count * sizeof *scratch);
  series->count = (int)count;
  series->repetitions = repetitions;
  const int each = (int)count / repetitions;
  for (int r = 0; r < repetitions; r++) series->medians[r] = rge_median_of(scratch + (size_t)r * (size_t)each, each);
  series->us = rgh_mean(series->medians, repetitions);
  series->spread = series->us > 0 ? rgh_spread(series->medians, repetitions) : 0;
  series->quantiles = quantiles_of(scratch, (int)count);
  return true;
}

void rge_series_free(rge_series *series) {
  free(series->samples);
  free(series->medians);
  *series = (rge_series){0};
}
