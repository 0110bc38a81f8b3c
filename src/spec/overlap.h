/* Do strided tensors share memory? */
#ifndef ROPEGRAD_SRC_SPEC_OVERLAP_H
#define ROPEGRAD_SRC_SPEC_OVERLAP_H

#include "ropegrad/ropegrad_dev.h"

/* True where two indices of the tensor name the same element. Exact but for layouts so tangled that deciding takes too
 * long: those count as overlapping. */
bool rg_overlaps_itself(const rg_tensor *tensor);

/* Addresses of the first and the last byte of a tensor, gaps between them included. Of an empty one: 1 and 0. */
typedef struct rg_extent {
  uintptr_t first, last;
} rg_extent;
rg_extent rg_extent_of(const rg_tensor *tensor);

/* Only tensors whose extents meet can share memory. */
static inline bool rg_extents_meet(rg_extent a, rg_extent b) { return a.first <= b.last && b.first <= a.last; }

/* True where the tensors share a byte; interleaved views of one buffer, such as q and k in a fused qkv buffer, do not.
 * Exact with the same exception. */
bool rg_overlap(const rg_tensor *a, const rg_tensor *b);

#endif
