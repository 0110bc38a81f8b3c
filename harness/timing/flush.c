#include "harness/timing/flush.h"

#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 64, PAGE_BYTES = 4096 };

bool rgh_flush_create(rgh_flush *flush, size_t bytes, int threads, rgh_message *why) {
  bytes = (bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
  *flush = (rgh_flush){.bytes = bytes, .threads = threads};
  if (bytes == 0) return true;
  flush->memory = aligned_alloc(PAGE_BYTES, bytes);
  if (flush->memory == NULL) return rgh_fail(why, "no memory for the %zu bytes that flush the caches", bytes);
  memset(flush->memory, 1, bytes);
  return true;
}

void rgh_flush_destroy(rgh_flush *flush) {
  free(flush->memory);
  *flush = (rgh_flush){0};
}

void rgh_flush_run(rgh_flush *flush) {
  unsigned char *memory = flush->memory;
#pragma omp parallel for schedule(static) num_threads(flush->threads)
  for (size_t i = 0; i < flush->bytes; i += LINE_BYTES) memory[i]++;
}
