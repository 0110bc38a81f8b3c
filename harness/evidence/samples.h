/* samples.h: from the raw samples of a record to its numbers. Any count of samples, unlike harness/base/statistics.h. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_SAMPLES_H
#define ROPEGRAD_HARNESS_EVIDENCE_SAMPLES_H

#include <jansson.h>

#include "harness/evidence/record.h"

/* The samples of one thing in the order of time, and what follows from them. */
typedef struct rge_series {
  double *samples;
  int count;
  double *medians; /* one per repetition */
  int repetitions;
  double us, spread; /* mean of the medians, and (largest - smallest) / mean */
  rge_quantiles quantiles;
  uint64_t hash; /* of the samples in their order, to the nanosecond that a record keeps */
} rge_series;

/* Reads a list of numbers and cuts it into `repetitions` equal parts. False, with an empty series: it is no such list,
 * or cannot be cut so; *why says which. */
bool rge_series_read(const json_t *list, int repetitions, rge_series *series, rgh_message *why);

void rge_series_free(rge_series *series);

/* Of 1 or more values, which it sorts. */
double rge_median_of(double *values, int count);

/* Whether two numbers are the same but for the digits that a record leaves out: samples are kept to the nanosecond. */
bool rge_same(double a, double b);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_SAMPLES_H */
