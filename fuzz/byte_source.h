/* byte_source.h: choices drawn from a fuzzer's bytes. */
#ifndef ROPEGRAD_FUZZ_BYTE_SOURCE_H
#define ROPEGRAD_FUZZ_BYTE_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The fuzzer's bytes. It starts with few, too few to break anything, so past their end a sequence that hangs on them
 * all goes on. */
typedef struct byte_source {
  const uint8_t *next;
  size_t left;
  uint32_t beyond;
} byte_source;

static inline uint32_t byte(byte_source *s) {
  if (s->left > 0) {
    --s->left;
    return *s->next++;
  }
  s->beyond = s->beyond * UINT32_C(1664525) + UINT32_C(1013904223);
  return s->beyond >> 24;
}

static inline int64_t word(byte_source *s) {
  uint64_t bits = 0;
  for (int i = 0; i < 8; ++i) bits = bits << 8 | byte(s);
  return (int64_t)bits;
}

static inline bool one_in(byte_source *s, uint32_t n) { return byte(s) % n == n - 1; }

#define PICK(source, values) ((values)[byte(source) % (sizeof(values) / sizeof *(values))])

/* Around every limit that integer arithmetic has. */
static inline int64_t wild(byte_source *s) {
  static const int64_t values[] = {0,         -1,        INT64_MAX,           INT64_MIN,          INT64_MAX / 2,
                                   INT32_MAX, INT32_MIN, INT64_MAX / 64,      INT64_MAX / 64 + 1, INT64_C(1) << 31,
                                   1 << 16,   3,         -(INT64_C(1) << 62), INT64_C(1) << 62,   -7};
  return one_in(s, 4) ? word(s) : PICK(s, values);
}

#endif
