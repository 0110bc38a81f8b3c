/* Reading and writing for the float64 references: any dtype, any stride, one element at a time. */
#ifndef ROPEGRAD_SRC_SPEC_REFERENCE_H
#define ROPEGRAD_SRC_SPEC_REFERENCE_H

#include "src/spec/operator.h"

/* The element at [i, j, k, l] (as many indices as the tensor has axes; the rest 0) as a double. An axis of size 1 that
 * serves every batch is read at index 0. */
static inline double rg_ref_read(const rg_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l) {
  const int64_t index[RG_MAX_RANK] = {i, j, k, l};
  int64_t offset = 0;
  for (int a = 0; a < t->rank; ++a) offset += t->shape[a] == 1 ? 0 : index[a] * t->stride[a];
  return rg_dtype_read(t->dtype, t->data, offset);
}

/* The row-major place of [i, j, k, l] in an output of shape t->shape. */
static inline int64_t rg_ref_place(const rg_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l) {
  const int64_t index[RG_MAX_RANK] = {i, j, k, l};
  int64_t place = 0;
  for (int a = 0; a < t->rank; ++a) place = place * t->shape[a] + (t->shape[a] == 1 ? 0 : index[a]);
  return place;
}

#endif
