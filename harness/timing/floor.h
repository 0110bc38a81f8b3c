/* floor.h: the time that merely moving a case's bytes takes on a device, the honest limit of its latency. A floor is a
 * list of plain copies that read exactly the case's compulsory input bytes and write exactly its output bytes, between
 * buffers of its own in the same kind of memory as the tensors; bench.h finds the fastest. */
#ifndef ROPEGRAD_HARNESS_TIMING_FLOOR_H
#define ROPEGRAD_HARNESS_TIMING_FLOOR_H

#include <stddef.h>
#include <stdint.h>

#include "harness/base/message.h"

enum { RGH_MAX_FINALISTS = 4 };
enum { RGH_MAX_FLOOR_COPIES = 160, RGH_FLOOR_NAME_BYTES = 64 };

typedef struct rgh_floor {
  int num_copies;
  int finalists; /* how many of the fastest are worth timing beside the operator; at most RGH_MAX_FINALISTS */
  char name[RGH_MAX_FLOOR_COPIES][RGH_FLOOR_NAME_BYTES]; /* "avx512, streaming, 4 streams, 2 threads" */
  void *state;
  /* Runs copy number `copy` once, from source_shift bytes into the source to target_shift bytes into the target:
   * multiples of 256 and at most the slack that the floor was made with. */
  bool (*run)(struct rgh_floor *floor, int copy, size_t source_shift, size_t target_shift, rgh_message *why);
  void (*destroy)(struct rgh_floor *floor); /* NULL: nothing was made */
} rgh_floor;

/* What a floor moves. */
typedef struct rgh_floor_bytes {
  int64_t read, write;
  size_t slack; /* a multiple of 256 */
} rgh_floor_bytes;

/* `threads` is how many the operator may use. */
bool rgh_floor_create_cpu(rgh_floor *floor, const rgh_floor_bytes *bytes, int threads, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_TIMING_FLOOR_H */
