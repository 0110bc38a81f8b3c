/* flush.h: empties the caches of the CPU of everything useful, so that the next call finds its tensors in memory. */
#ifndef ROPEGRAD_HARNESS_TIMING_FLUSH_H
#define ROPEGRAD_HARNESS_TIMING_FLUSH_H

#include <stddef.h>

#include "harness/base/message.h"

typedef struct rgh_flush {
  unsigned char *memory;
  size_t bytes;
  int threads;
} rgh_flush;

/* `bytes` of memory to walk over on `threads` threads; with 0 bytes a flush does nothing. */
bool rgh_flush_create(rgh_flush *flush, size_t bytes, int threads, rgh_message *why);
void rgh_flush_destroy(rgh_flush *flush);

/* Reads and writes every line of it. The team of threads is the one that a call on as many threads uses, so that the
 * call finds it awake, as the operator before it in a training step would have left it. */
void rgh_flush_run(rgh_flush *flush);

#endif /* ROPEGRAD_HARNESS_TIMING_FLUSH_H */
