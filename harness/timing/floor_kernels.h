/* floor_kernels.h: the plain copies that the floor is measured with: vector loads and stores, no arithmetic but the XOR
 * that keeps a load from being dropped. One source, floor_kernels.c, is built once per width of vector. */
#ifndef ROPEGRAD_HARNESS_TIMING_FLOOR_KERNELS_H
#define ROPEGRAD_HARNESS_TIMING_FLOOR_KERNELS_H

#include <stdint.h>

enum { RGH_LINE_BYTES = 64 };

/* One thread's share: read_lines cache lines from source, write_lines to target, both aligned to a line. The longer
 * side is cut into blocks of block_lines and the shorter one into as many, so that reads and writes keep the same
 * mixture from beginning to end; one block (block_lines huge) copies first and reads or writes what is left over after
 * that. With several `streams` the blocks are taken in turn from as many places, far apart. */
typedef struct rgh_floor_job {
  const unsigned char *source;
  unsigned char *target;
  int64_t read_lines, write_lines;
  int64_t block_lines;
  int streams;
} rgh_floor_job;

/* Returns the XOR of what was read but not stored. */
typedef uint64_t (*rgh_floor_kernel)(const rgh_floor_job *job);

/* Ordinary stores, and stores that bypass the caches (NULL where the instruction set has none). */
typedef struct rgh_floor_kernels {
  const char *name; /* of the vectors: "avx512" */
  rgh_floor_kernel ordinary;
  rgh_floor_kernel streaming;
} rgh_floor_kernels;

extern const rgh_floor_kernels rgh_floor_kernels_baseline;
extern const rgh_floor_kernels rgh_floor_kernels_avx2;   /* x86-64 builds only */
extern const rgh_floor_kernels rgh_floor_kernels_avx512; /* x86-64 builds only */

#endif /* ROPEGRAD_HARNESS_TIMING_FLOOR_KERNELS_H */
