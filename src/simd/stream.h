/* When and where to write past the caches. */
#ifndef ROPEGRAD_SRC_SIMD_STREAM_H
#define ROPEGRAD_SRC_SIMD_STREAM_H

#include "src/simd/vec.h"

/* A streamed store saves the read of the line that an ordinary store causes, a third of the traffic of a copy, but what
 * it wrote is then not in the cache for the next operator. It pays where the output would not stay there anyway. */
enum { RG_STREAM_MIN_BYTES = 128 * 1024 };

RG_INLINE bool rg_stream_pays(int64_t written_bytes) { return written_bytes >= RG_STREAM_MIN_BYTES; }

/* How many of the n elements at p to write in the ordinary way so that the next one begins a whole streamed vector. */
RG_INLINE int64_t rg_stream_head(rg_dtype t, const void *p, int64_t n) {
  const uintptr_t vector_bytes = RG_VF_WIDTH * RG_SIZE(t);
  const uintptr_t past = (uintptr_t)p % vector_bytes;
  const int64_t head = past == 0 ? 0 : (int64_t)((vector_bytes - past) / RG_SIZE(t));
  return head < n ? head : n;
}

#endif
