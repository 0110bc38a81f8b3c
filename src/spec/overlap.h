/* Do strided tensors share memory? */
#ifndef ROPEGRAD_SRC_SPEC_OVERLAP_H
#define ROPEGRAD_SRC_SPEC_OVERLAP_H

#include "ropegrad/ropegrad_dev.h"

/* True where two indices of the tensor name the same element. Exact but for layouts so tangled that deciding takes too
 * long: those count as overlapping. */
bool rg_overlaps_itself(const rg_tensor *tensor);

/* True where the tensors share a byte; interleaved views of one buffer, such as q and k in a fused qkv buffer, do not.
 * Exact with the same exception. */
bool rg_overlap(const rg_tensor *a, const rg_tensor *b);

#endif
