/* floor_params.h: what a plain copy kernel of floor.cu is given. Both sides include this.
 *
 * Words are as wide as the kernel's accesses, and a chunk is what a block moves at a time: (threads) * (pieces of a
 * thread) words. There are as many chunks as the longer side, reads or writes, takes. Of the shorter side
 *   front    chunk c has the same words as of the longer one, as long as there are any: word i is read and written by
 *            the same thread, and the last chunks read or write alone;
 *   spread   every chunk has as many as every other, or one less: short_share + (c < short_rest). */
#ifndef ROPEGRAD_HARNESS_CUDA_FLOOR_PARAMS_H
#define ROPEGRAD_HARNESS_CUDA_FLOOR_PARAMS_H

typedef struct rgh_floor_params {
  const unsigned char *source;
  unsigned char *target;
  unsigned reads, writes; /* whole words */
  unsigned short_share, short_rest;
  unsigned never; /* a thread whose words' XOR is this adds it to `seen`: so what is read must arrive */
  unsigned tails; /* bytes after the last whole word, fewer than a word has: to read, and 256 * to write */
  unsigned all;   /* for tests: every thread adds, so that `seen` takes the XOR of all 32-bit words read */
  unsigned *seen;
} rgh_floor_params;

#endif
