/* draw_call.h: from fuzz bytes to a call of an operator. Most calls start out right: sizes, dtypes and layouts that go
 * together; then a few things are broken. Whatever comes out, a descriptor that the library may accept lies inside an
 * allocation that ends where it ends, so that AddressSanitizer sees the first byte outside. */
#ifndef ROPEGRAD_FUZZ_DRAW_CALL_H
#define ROPEGRAD_FUZZ_DRAW_CALL_H

#include "ropegrad/ropegrad_dev.h"

typedef struct drawn_tensor {
  DLTensor view;
  int64_t shape[RG_MAX_RANK];
  int64_t stride[RG_MAX_RANK];
  bool given;
  unsigned char *block; /* NULL: none, or another tensor's */
  unsigned char *kept;  /* a copy of the block as it was before the call */
  size_t block_bytes;
} drawn_tensor;

typedef struct drawn_call {
  const rg_operator *op;
  const char *variant;
  int broken; /* how many things were broken on purpose */
  void *args;
  drawn_tensor tensor[RG_MAX_TENSORS];
} drawn_call;

/* False when there is no memory. The caller releases the call in either case. */
bool draw_call(drawn_call *call, const uint8_t *data, size_t size);
void release_call(drawn_call *call);

#endif
