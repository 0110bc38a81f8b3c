#include "harness/timing/floor_cpu.h"

#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PAGE_BYTES = 4096,
  WORDS_PER_LINE = RGH_LINE_BYTES / sizeof(uint64_t),
  /* Waking a thread costs about as much as moving this. */
  BYTES_PER_THREAD = 64 * 1024,
  /* Above this one thread is never the fastest; leaving it out saves time. */
  ONE_THREAD_MAX_BYTES = 1024 * 1024,
};

/* Streams and lines per block: prefetchers differ in how many places they follow at a time and in how far ahead. */
static const struct {
  int streams;
  int64_t block_lines;
} shapes[] = {{1, 64}, {2, 16}, {4, 64}};
enum { NUM_SHAPES = sizeof shapes / sizeof shapes[0] };

static void add_copies(rgh_cpu_floor *floor, const rgh_floor_kernels *kernels, int threads) {
  const rgh_floor_kernel kernel[] = {kernels->ordinary, kernels->streaming};
  static const char *const how[] = {"ordinary", "streaming"};
  for (int k = 0; k < 2; k++) {
    for (int s = 0; s < NUM_SHAPES && kernel[k] != NULL; s++) {
      rgh_cpu_floor_copy *copy = &floor->copy[floor->num_copies++];
      copy->kernel = kernel[k];
      copy->streams = shapes[s].streams;
      copy->block_lines = shapes[s].block_lines;
      copy->threads = threads;
      snprintf(copy->name, sizeof copy->name, "%s, %s, %d stream%s, %d thread%s", kernels->name, how[k], copy->streams,
               copy->streams == 1 ? "" : "s", threads, threads == 1 ? "" : "s");
    }
  }
}

/* The wider vectors are not always the faster ones, so the two widest that this machine has are tried. */
static void add_widths(rgh_cpu_floor *floor, int threads) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) add_copies(floor, &rgh_floor_kernels_avx512, threads);
  if (__builtin_cpu_supports("avx2")) {
    add_copies(floor, &rgh_floor_kernels_avx2, threads);
    return;
  }
#endif
  add_copies(floor, &rgh_floor_kernels_baseline, threads);
}

/* Writes what it allocates, so that every page is memory of its own and not the kernel's one page of zeros. */
static unsigned char *allocate(int64_t bytes, size_t slack_bytes, int threads) {
  const size_t all = ((size_t)bytes + slack_bytes + PAGE_BYTES) / PAGE_BYTES * PAGE_BYTES;
  unsigned char *memory = aligned_alloc(PAGE_BYTES, all);
  if (memory == NULL) return NULL;
#pragma omp parallel for schedule(static) num_threads(threads)
  for (size_t begin = 0; begin < all; begin += PAGE_BYTES) memset(memory + begin, 1, PAGE_BYTES);
  return memory;
}

bool rgh_cpu_floor_create(rgh_cpu_floor *floor, int64_t read_bytes, int64_t write_bytes, size_t slack_bytes,
                          int threads, rgh_message *why) {
  memset(floor, 0, sizeof *floor);
  floor->read_bytes = read_bytes;
  floor->write_bytes = write_bytes;
  floor->slack_bytes = slack_bytes;
  floor->source = allocate(read_bytes, slack_bytes, threads);
  floor->target = allocate(write_bytes, slack_bytes, threads);
  floor->seen = aligned_alloc(RGH_LINE_BYTES, (size_t)threads * RGH_LINE_BYTES);
  if (floor->source == NULL || floor->target == NULL || floor->seen == NULL) {
    rgh_cpu_floor_destroy(floor);
    return rgh_fail(why, "no memory for a plain copy of the case's %lld bytes", (long long)(read_bytes + write_bytes));
  }
  memset(floor->seen, 0, (size_t)threads * RGH_LINE_BYTES);

  const int64_t bytes = read_bytes + write_bytes;
  const int64_t worth = bytes / BYTES_PER_THREAD;
  add_widths(floor, threads);
  if (worth > 1 && worth < threads) add_widths(floor, (int)worth);
  if (threads > 1 && bytes <= ONE_THREAD_MAX_BYTES) add_widths(floor, 1);
  return true;
}

void rgh_cpu_floor_destroy(rgh_cpu_floor *floor) {
  free(floor->source);
  free(floor->target);
  free(floor->seen);
  memset(floor, 0, sizeof *floor);
}

/* Lines [total * rank / team, total * (rank + 1) / team). */
static int64_t share_begin(int64_t total, int team, int rank) { return total * rank / team; }

static void run_share(rgh_cpu_floor *floor, const rgh_cpu_floor_copy *copy, const unsigned char *source,
                      unsigned char *target, int team, int rank) {
  const int64_t reads = floor->read_bytes / RGH_LINE_BYTES, writes = floor->write_bytes / RGH_LINE_BYTES;
  const int64_t read = share_begin(reads, team, rank), write = share_begin(writes, team, rank);
  const rgh_floor_job job = {.source = source + read * RGH_LINE_BYTES,
                             .target = target + write * RGH_LINE_BYTES,
                             .read_lines = share_begin(reads, team, rank + 1) - read,
                             .write_lines = share_begin(writes, team, rank + 1) - write,
                             .block_lines = copy->block_lines,
                             .streams = copy->streams};
  uint64_t seen = copy->kernel(&job);
  if (rank == team - 1) { /* the bytes after the last whole line */
    for (int64_t i = reads * RGH_LINE_BYTES; i < floor->read_bytes; i++) seen ^= source[i];
    for (int64_t i = writes * RGH_LINE_BYTES; i < floor->write_bytes; i++) target[i] = (unsigned char)seen;
  }
  floor->seen[rank * WORDS_PER_LINE] = seen;
}

void rgh_cpu_floor_run(rgh_cpu_floor *floor, int copy, size_t source_shift, size_t target_shift) {
  const rgh_cpu_floor_copy *chosen = &floor->copy[copy];
  const unsigned char *source = floor->source + source_shift;
  unsigned char *target = floor->target + target_shift;
  if (chosen->threads == 1) {
    run_share(floor, chosen, source, target, 1, 0);
    return;
  }
#pragma omp parallel num_threads(chosen->threads)
  run_share(floor, chosen, source, target, omp_get_num_threads(), omp_get_thread_num());
}
