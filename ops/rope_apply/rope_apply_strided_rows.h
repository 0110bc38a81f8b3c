/* Rows of a tensor as the kernels for vectors are given them, in both directions. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_STRIDED_ROWS_H
#define ROPEGRAD_OPS_ROPE_APPLY_STRIDED_ROWS_H

#include <stdint.h>

/* Rows of contiguous elements: [B, heads, S], or [B, S] of a table, where the batch stride is 0 if one serves every
 * batch. Strides in bytes; a batch spans less than 4 GiB. */
typedef struct rope_apply_rows {
  char *data; /* NULL: not wanted, or not needed */
  int64_t batch;
  uint32_t head, position;
} rope_apply_rows;

#endif
