/* floor_cpu.h: the plain copies of the CPU, between two buffers of the case's compulsory read and write bytes. */
#ifndef ROPEGRAD_HARNESS_TIMING_FLOOR_CPU_H
#define ROPEGRAD_HARNESS_TIMING_FLOOR_CPU_H

#include <stddef.h>

#include "harness/timing/floor.h"
#include "harness/timing/floor_kernels.h"

enum { RGH_MAX_CPU_FLOOR_COPIES = 64 };

typedef struct rgh_cpu_floor_copy {
  char name[RGH_FLOOR_NAME_BYTES]; /* "avx512, streaming, 4 streams, 2 threads" */
  rgh_floor_kernel kernel;
  int64_t block_lines;
  int streams;
  int threads;
} rgh_cpu_floor_copy;

typedef struct rgh_cpu_floor {
  int64_t read_bytes, write_bytes;
  size_t slack_bytes;
  unsigned char *source, *target;
  uint64_t *seen; /* a line per thread: what it read but did not store, so that no read can be dropped */
  rgh_cpu_floor_copy copy[RGH_MAX_CPU_FLOOR_COPIES];
  int num_copies;
} rgh_cpu_floor;

/* `threads` is how many the operator may use. slack_bytes is a multiple of RGH_LINE_BYTES. */
bool rgh_cpu_floor_create(rgh_cpu_floor *floor, int64_t read_bytes, int64_t write_bytes, size_t slack_bytes,
                          int threads, rgh_message *why);
void rgh_cpu_floor_destroy(rgh_cpu_floor *floor);

/* Reads exactly read_bytes, source_shift bytes into the source, and writes exactly write_bytes, target_shift bytes into
 * the target. Shifts are multiples of RGH_LINE_BYTES and at most slack_bytes. */
void rgh_cpu_floor_run(rgh_cpu_floor *floor, int copy, size_t source_shift, size_t target_shift);

#endif /* ROPEGRAD_HARNESS_TIMING_FLOOR_CPU_H */
