/* record.h: what was verified and timed, as JSON. schema/ describes both files for machines. */
#ifndef ROPEGRAD_HARNESS_RECORD_RECORD_H
#define ROPEGRAD_HARNESS_RECORD_RECORD_H

#include <jansson.h>

#include "harness/record/gpu.h"
#include "harness/record/machine.h"
#include "harness/timing/bench.h"

/* A case and what became of it. */
typedef struct rgh_row {
  const rgh_case *item;
  rgh_measurement measurement; /* of a verify run only the verdict */
} rgh_row;

/* A run of the tool. */
typedef struct rgh_run {
  const char *suite, *suite_digest; /* its name, and the digest of its file */
  const char *device;               /* "cpu", "cuda:0" */
  const char *variant;              /* "cpu.avx2" */
  int repeats;                      /* verify: runs compared bit for bit */
  rgh_bench_options options;
  const rgh_timer *timer; /* bench */
  const rgh_machine *machine;
  const rgh_gpu *gpu; /* NULL: the device is the CPU */
  const char *const *argv;
  const rgh_row *rows;
  int num_rows;
} rgh_run;

/* The cases of one operator and one mode that were timed. */
typedef struct rgh_summary {
  const rg_operator *op;
  bool in_place;
  int cases;
  double latency_us, floor_us, ratio; /* geometric means */
  double worst_ratio;
  const char *worst_case;
} rgh_summary;

/* One per operator and mode that has a timed case, in the order of the rows. Returns how many; at most 2 * RG_NUM_OPERATORS.
 */
int rgh_summarise(const rgh_run *run, rgh_summary summary[2 * RG_NUM_OPERATORS]);

/* Compulsory bytes over the bandwidth of the device's datasheet; 0: none is known. */
double rgh_roofline_us(const rgh_run *run, const rgh_measurement *measurement);

/* Timed, and faster than that. */
bool rgh_below_roofline(const rgh_run *run, const rgh_measurement *measurement);

/* How many rows have the status. */
int rgh_count(const rgh_run *run, rgh_status status);

/* "ropegrad-verify-1" and "ropegrad-record-1". The caller owns the result. NULL: no memory. */
json_t *rgh_verify_json(const rgh_run *run);
json_t *rgh_record_json(const rgh_run *run);

#endif /* ROPEGRAD_HARNESS_RECORD_RECORD_H */
