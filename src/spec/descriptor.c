#include "src/spec/descriptor.h"

#include <inttypes.h>

/* Sizes are kept this far under 2^63 so that byte offsets of any tensor fit as well. */
static const int64_t MAX_ELEMENTS = INT64_MAX / 64;

static rg_status read_descriptor(const rg_operator *op, int index, const DLTensor *given, DLDevice device,
                                 rg_tensor *tensor, rg_error *error) {
  const rg_tensor_spec *spec = &op->tensors[index];
  if (given->ndim != spec->rank) {
    return RG_FAIL_ARGUMENT(RG_ERR_RANK, spec->name, "expected %d dimensions, got %d", spec->rank, given->ndim);
  }
  if (given->shape == NULL) return RG_FAIL_ARGUMENT(RG_ERR_NULL, spec->name, "%s", "its shape is NULL");
  tensor->dtype = rg_dtype_from_dlpack(given->dtype);
  if (tensor->dtype == RG_DTYPE_NONE) {
    static const char *const kinds[] = {"int", "uint", "float", "opaque", "bfloat", "complex", "bool"}; /* by code */
    const DLDataType dtype = given->dtype;
    const char *kind = dtype.code < sizeof kinds / sizeof kinds[0] ? kinds[dtype.code] : "another";
    return RG_FAIL_ARGUMENT(RG_ERR_DTYPE, spec->name,
                            "expected %s, got the DLPack dtype {code %d (%s), bits %d, lanes %d}",
                            rg_dtype_rule_text(spec->dtypes), dtype.code, kind, dtype.bits, dtype.lanes);
  }
  /* Page-locked host memory is host memory. */
  const DLDeviceType type = given->device.device_type == kDLCUDAHost ? kDLCPU : given->device.device_type;
  const bool same_index = type == kDLCPU || given->device.device_id == device.device_id;
  if (type != device.device_type || !same_index) {
    return RG_FAIL_ARGUMENT(
        RG_ERR_DEVICE, spec->name, "expected a tensor on DLPack device {%d, %d} as the context, got {%d, %d}",
        (int)device.device_type, (int)device.device_id, (int)given->device.device_type, (int)given->device.device_id);
  }
  tensor->rank = spec->rank;
  int64_t elements = 1;
  for (int a = spec->rank - 1; a >= 0; --a) {
    const int64_t size = given->shape[a];
    if (size < 0)
      return RG_FAIL_ARGUMENT(RG_ERR_SHAPE, spec->name, "dimension %d has the negative size %" PRId64, a, size);
    tensor->shape[a] = size;
    /* Nobody steps along an axis of one element: the row-major stride there spares all that follows a wild one. */
    tensor->stride[a] = given->strides && size > 1 ? given->strides[a] : elements;
    if (__builtin_mul_overflow(elements, size > 0 ? size : 1, &elements) || elements > MAX_ELEMENTS) {
      return RG_FAIL_ARGUMENT(RG_ERR_OVERFLOW, spec->name,
                              "dimension %d of size %" PRId64 " makes more elements than memory can hold", a, size);
    }
  }
  int64_t reach = 0;
  for (int a = 0; a < spec->rank; ++a) {
    int64_t span;
    const int64_t stride = tensor->stride[a] < 0 ? -(tensor->stride[a] + 1) : tensor->stride[a];
    if (__builtin_mul_overflow(tensor->shape[a] > 0 ? tensor->shape[a] - 1 : 0, stride, &span) ||
        __builtin_add_overflow(reach, span, &reach) || reach > MAX_ELEMENTS) {
      return RG_FAIL_ARGUMENT(RG_ERR_OVERFLOW, spec->name,
                              "dimension %d of size %" PRId64 " and stride %" PRId64 " reaches past the address space",
                              a, tensor->shape[a], tensor->stride[a]);
    }
  }
  tensor->data = given->data == NULL ? NULL : (char *)given->data + given->byte_offset;
  return RG_OK;
}

/* A call that follows much other work finds the descriptors out of the caches. Asked for together they arrive together,
 * instead of one after the other as the checks come to them. */
static void prefetch_descriptors(const rg_operator *op, const void *args) {
  for (int t = 0; t < op->num_tensors; ++t) {
    __builtin_prefetch(&op->tensors[t]);
    const DLTensor *given = rg_dev_get_tensor(op, args, t);
    if (given != NULL) __builtin_prefetch(given);
  }
  for (int t = 0; t < op->num_tensors; ++t) {
    const DLTensor *given = rg_dev_get_tensor(op, args, t);
    if (given == NULL) continue;
    __builtin_prefetch(given->shape);
    __builtin_prefetch(given->strides);
    __builtin_prefetch(given->data);
  }
}

rg_status rg_read_descriptors(const rg_operator *op, const void *args, DLDevice device, rg_problem *problem,
                              uint32_t *wanted, rg_error *error) {
  *wanted = 0;
  prefetch_descriptors(op, args);
  for (int t = 0; t < op->num_tensors; ++t) {
    const DLTensor *given = rg_dev_get_tensor(op, args, t);
    problem->tensor[t].dtype = RG_DTYPE_NONE;
    if (given == NULL) continue;
    const rg_status status = read_descriptor(op, t, given, device, &problem->tensor[t], error);
    if (status != RG_OK) return status;
    if (op->tensors[t].role == RG_OUTPUT) *wanted |= RG_BIT(t);
  }
  return RG_OK;
}
