/* poison.h: what memory holds that nobody has written: 16-bit words that make a NaN of every float dtype. It is neither
 * the NaN that CPUs make (0x7FC0... or, on x86, 0xFFC0...) nor the one that GPUs make (0x7FFF...), nor either with its
 * sign turned, so that no operator writes it. */
#ifndef ROPEGRAD_HARNESS_BUFFERS_POISON_H
#define ROPEGRAD_HARNESS_BUFFERS_POISON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RGH_POISON UINT16_C(0xFFF5)

/* `bytes` is even, as every element size is. */
static inline void rgh_poison_fill(void *memory, size_t bytes) {
  uint16_t *word = (uint16_t *)memory;
  for (size_t i = 0; i < bytes / sizeof *word; ++i) word[i] = RGH_POISON;
}

static inline bool rgh_poison_holds(const void *memory, size_t bytes) {
  const uint16_t poison = RGH_POISON;
  if (bytes == 0) return true;
  const unsigned char *at = (const unsigned char *)memory;
  return memcmp(at, &poison, sizeof poison) == 0 && memcmp(at, at + sizeof poison, bytes - sizeof poison) == 0;
}

#endif /* ROPEGRAD_HARNESS_BUFFERS_POISON_H */
