#include "harness/base/statistics.h"

#include <stdlib.h>
#include <string.h>

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double rgh_median(const double *values, int count) {
  double sorted[RGH_MAX_SAMPLES];
  memcpy(sorted, values, (size_t)count * sizeof *values);
  qsort(sorted, (size_t)count, sizeof *sorted, by_size);
  return (sorted[(count - 1) / 2] + sorted[count / 2]) / 2;
}

double rgh_mean(const double *values, int count) {
  double sum = 0;
  for (int i = 0; i < count; i++) sum += values[i];
  return sum / count;
}

double rgh_spread(const double *values, int count) {
  double low = values[0], high = values[0];
  for (int i = 1; i < count; i++) {
    if (values[i] < low) low = values[i];
    if (values[i] > high) high = values[i];
  }
  return (high - low) / rgh_mean(values, count);
}
