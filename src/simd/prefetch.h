/* prefetch.h: asks for memory ahead of its use. */
#ifndef ROPEGRAD_SRC_SIMD_PREFETCH_H
#define ROPEGRAD_SRC_SIMD_PREFETCH_H

#include "src/simd/vec.h"

/* Where the lines go. The second level keeps more of them on their way at a time than the first. */
typedef enum rg_cache_level { RG_FIRST_LEVEL, RG_SECOND_LEVEL } rg_cache_level;

/* The lines of `bytes` bytes from `first` on. A number and not a pointer: it may lie outside every tensor, which a
 * prefetch does not mind. */
RG_INLINE void rg_prefetch(rg_cache_level level, uintptr_t first, int64_t bytes) {
  for (int64_t b = 0; b < bytes; b += RG_CACHE_LINE_BYTES) {
    const void *line = (const void *)(first + (uintptr_t)b);
    if (level == RG_FIRST_LEVEL) {
      __builtin_prefetch(line, 0, 3);
    } else {
      __builtin_prefetch(line, 0, 2);
    }
  }
}

#endif
