/* floor.h: the time that merely moving a case's bytes takes on this machine, the honest limit of its latency. A floor
 * owns two buffers of the case's compulsory read and write bytes, in the same kind of memory as the tensors, and a list
 * of plain copies of one to the other; bench.h finds the fastest. */
#ifndef ROPEGRAD_HARNESS_FLOOR_H
#define ROPEGRAD_HARNESS_FLOOR_H

#include <stddef.h>

#include "harness/floor_kernels.h"
#include "harness/message.h"

enum { RGH_MAX_FLOOR_COPIES = 64, RGH_FLOOR_NAME_BYTES = 48 };

typedef struct rgh_floor_copy {
  char name[RGH_FLOOR_NAME_BYTES]; /* "avx512, streaming, 4 streams, 2 threads" */
  rgh_floor_kernel kernel;
  int64_t block_lines;
  int streams;
  int threads;
} rgh_floor_copy;

typedef struct rgh_floor {
  int64_t read_bytes, write_bytes;
  size_t slack_bytes;
  unsigned char *source, *target;
  uint64_t *seen; /* a line per thread: what it read but did not store, so that no read can be dropped */
  rgh_floor_copy copy[RGH_MAX_FLOOR_COPIES];
  int num_copies;
} rgh_floor;

/* `threads` is how many the operator may use. slack_bytes is a multiple of RGH_LINE_BYTES. */
bool rgh_floor_create(rgh_floor *floor, int64_t read_bytes, int64_t write_bytes, size_t slack_bytes, int threads,
                      rgh_message *why);
void rgh_floor_destroy(rgh_floor *floor);

/* Reads exactly read_bytes, source_shift bytes into the source, and writes exactly write_bytes, target_shift bytes into
 * the target. Shifts are multiples of RGH_LINE_BYTES and at most slack_bytes. */
void rgh_floor_run(rgh_floor *floor, int copy, size_t source_shift, size_t target_shift);

#endif /* ROPEGRAD_HARNESS_FLOOR_H */
