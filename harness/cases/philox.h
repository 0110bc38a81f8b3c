/* philox.h: Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw ("Parallel random numbers: as
 * easy as 1, 2, 3", 2011). A block of four 32-bit words is a pure function of a 128-bit counter and a 64-bit key, so
 * any thread can make any element. */
#ifndef ROPEGRAD_HARNESS_CASES_PHILOX_H
#define ROPEGRAD_HARNESS_CASES_PHILOX_H

#include <stdint.h>

enum { RGH_PHILOX_ROUNDS = 10 };

/* One round on the counter c[0], c[stride], c[2 * stride], c[3 * stride]: strided so that a loop over many counters,
 * word by word in memory, becomes vector code. */
static inline void rgh_philox_round(uint32_t *c, int stride, uint32_t key0, uint32_t key1) {
  const uint64_t product0 = (uint64_t)c[0] * UINT32_C(0xD2511F53);
  const uint64_t product1 = (uint64_t)c[2 * stride] * UINT32_C(0xCD9E8D57);
  c[0] = (uint32_t)(product1 >> 32) ^ c[stride] ^ key0;
  c[2 * stride] = (uint32_t)(product0 >> 32) ^ c[3 * stride] ^ key1;
  c[stride] = (uint32_t)product1;
  c[3 * stride] = (uint32_t)product0;
}

/* The key of the next round: a Weyl sequence by the golden ratio and by sqrt(3) - 1. */
static inline void rgh_philox_bump(uint32_t key[2]) {
  key[0] += UINT32_C(0x9E3779B9);
  key[1] += UINT32_C(0xBB67AE85);
}

/* Replaces a counter by its block. */
static inline void rgh_philox4x32_10(uint32_t counter[4], const uint32_t key[2]) {
  uint32_t k[2] = {key[0], key[1]};
  for (int round = 0; round < RGH_PHILOX_ROUNDS; ++round, rgh_philox_bump(k)) {
    rgh_philox_round(counter, 1, k[0], k[1]);
  }
}

#endif /* ROPEGRAD_HARNESS_CASES_PHILOX_H */
