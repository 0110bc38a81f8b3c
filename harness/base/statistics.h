/* statistics.h: how samples become the numbers of a record. */
#ifndef ROPEGRAD_HARNESS_BASE_STATISTICS_H
#define ROPEGRAD_HARNESS_BASE_STATISTICS_H

/* The median of 1 to RGH_MAX_SAMPLES values; the mean of the middle two when their number is even. */
enum { RGH_MAX_SAMPLES = 64 };
double rgh_median(const double *values, int count);

double rgh_mean(const double *values, int count);

/* (largest - smallest) / mean. */
double rgh_spread(const double *values, int count);

#endif /* ROPEGRAD_HARNESS_BASE_STATISTICS_H */
