/* floor_params.h: what a plain copy kernel of floor.cu is given. Both sides include this.
 *
 * Words are as wide as the kernel's accesses. The longer side is cut into chunks of (threads of a block) * (pieces of a
 * thread) words, and the shorter one into as many, as equal as can be: chunk c has short_share + (c < short_rest) of its
 * words. So reads and writes keep the same mixture from beginning to end. */
#ifndef ROPEGRAD_HARNESS_CUDA_FLOOR_PARAMS_H
#define ROPEGRAD_HARNESS_CUDA_FLOOR_PARAMS_H

typedef struct rgh_floor_params {
  const unsigned char *source;
  unsigned char *target;
  unsigned *seen; /* for tests: with `all` set, takes the XOR of every 32-bit word of whole words that was read */
  long long long_words;
  long long short_share, short_rest;
  long long chunks;
  int read_tail, write_tail; /* bytes after the last whole word, fewer than a word has */
  unsigned never;            /* a thread whose words' XOR is this stores it in `seen`: what is read must arrive */
  unsigned all;
} rgh_floor_params;

#endif
