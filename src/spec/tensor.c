/* Tensor arithmetic, and the members of an arguments struct, as the operators and all above them use them. */
#include <string.h>

#include "src/spec/operator.h"

int64_t rg_tensor_elements(const rg_tensor *tensor) {
  int64_t elements = 1;
  for (int a = 0; a < tensor->rank; ++a) elements *= tensor->shape[a];
  return elements;
}

bool rg_tensor_is_dense(const rg_tensor *tensor) {
  int64_t expected = 1;
  for (int a = tensor->rank - 1; a >= 0; --a) {
    if (tensor->shape[a] != 1 && tensor->stride[a] != expected) return false;
    expected *= tensor->shape[a];
  }
  return true;
}

int64_t rg_tensor_distinct_bytes(const rg_tensor *tensor) {
  if (tensor->dtype == RG_DTYPE_NONE) return 0;
  int64_t elements = 1;
  for (int a = 0; a < tensor->rank; ++a) {
    if (tensor->stride[a] != 0 || tensor->shape[a] == 0) elements *= tensor->shape[a];
  }
  return elements * (int64_t)rg_dtype_size(tensor->dtype);
}

int rg_dev_find_tensor(const rg_operator *op, const char *name) {
  for (int t = 0; t < op->num_tensors; ++t) {
    if (strcmp(op->tensors[t].name, name) == 0) return t;
  }
  return -1;
}

int rg_dev_find_param(const rg_operator *op, const char *name) {
  for (int p = 0; p < op->num_params; ++p) {
    if (strcmp(op->params[p].name, name) == 0) return p;
  }
  return -1;
}

const DLTensor *rg_dev_get_tensor(const rg_operator *op, const void *args, int tensor) {
  return *(const DLTensor *const *)((const char *)args + op->tensors[tensor].offset);
}

void rg_dev_set_tensor(const rg_operator *op, void *args, int tensor, const DLTensor *value) {
  *(const DLTensor **)((char *)args + op->tensors[tensor].offset) = value;
}

void rg_dev_set_param(const rg_operator *op, void *args, int param, rg_param_value value) {
  char *place = (char *)args + op->params[param].offset;
  switch (op->params[param].kind) {
    case RG_PARAM_DOUBLE:
      *(double *)place = value.number;
      break;
    case RG_PARAM_INT64:
      *(int64_t *)place = value.integer;
      break;
    case RG_PARAM_BOOL:
      *(bool *)place = value.flag;
      break;
    case RG_PARAM_ENUM:
      *(int *)place = value.choice;
      break;
  }
}

bool rg_dev_in_place(const rg_operator *op, const void *args) {
  if (op->in_place_param < 0) return false;
  return *(const bool *)((const char *)args + op->params[op->in_place_param].offset);
}
