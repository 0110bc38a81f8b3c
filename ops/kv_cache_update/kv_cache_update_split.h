/* How the work of a call on the CPU is split up: bits that say which rows are named, and parts that threads take. Built
 * once per level, as part of both directions. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_SPLIT_H
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_SPLIT_H

#include <string.h>

#include "src/simd/kernel.h"

/* ---- bits ---- */

static inline void clear_bits(uint64_t *bits, int64_t count) {
  memset(bits, 0, (size_t)((count + 63) / 64) * sizeof *bits);
}

RG_INLINE bool bit_at(const uint64_t *bits, int64_t i) { return bits[i / 64] >> i % 64 & 1; }
RG_INLINE void set_bit(uint64_t *bits, int64_t i) { bits[i / 64] |= UINT64_C(1) << i % 64; }

/* The end of the run of equal bits that begins with bit i; at most `end`. */
static inline int64_t bit_run_end(const uint64_t *bits, int64_t i, int64_t end) {
  const uint64_t same = bit_at(bits, i) ? UINT64_MAX : 0;
  while (i < end) {
    const uint64_t different = (bits[i / 64] ^ same) >> i % 64;
    if (different != 0) {
      i += __builtin_ctzll(different);
      break;
    }
    i += 64 - i % 64;
  }
  return i < end ? i : end;
}

/* ---- parts ---- */

/* Each step's items are cut into as many parts, and a thread takes the same parts of both. */
enum { PARTS = 4096 };

static inline int64_t part_begin(int64_t items, int64_t part) {
  return items / PARTS * part + items % PARTS * part / PARTS;
}

/* Keys and values are passed by turns, of about as many bytes each: two streams at a time keep memory busier than one.
 */
enum { TURN_BYTES = 4096 };

static inline int64_t rows_of_turn(int64_t row_bytes) {
  return row_bytes > 0 && row_bytes < TURN_BYTES ? TURN_BYTES / row_bytes : 1;
}

#endif
