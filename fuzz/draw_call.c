#include "fuzz/draw_call.h"

#include <stdlib.h>
#include <string.h>

#include "fuzz/byte_source.h"
#include "fuzz/draw_memory.h"
#include "src/base/error.h"

/* ---- options and sizes ---- */

static void draw_params(drawn_call *call, byte_source *s) {
  static const double numbers[] = {1.0, 0.0, -2.5, 1e30, 0.1};
  static const int64_t integers[] = {0, 2, 0, 4, 0, 6};
  for (int p = 0; p < call->op->num_params; ++p) {
    const rg_param_spec *spec = &call->op->params[p];
    rg_param_value value = {0};
    const bool odd = one_in(s, 32);
    switch (spec->kind) {
      case RG_PARAM_DOUBLE:
        value.number = PICK(s, numbers);
        if (odd) memcpy(&value.number, &(int64_t){word(s)}, sizeof value.number);
        break;
      case RG_PARAM_INT64:
        value.integer = odd ? wild(s) : PICK(s, integers);
        break;
      case RG_PARAM_BOOL:
        value.flag = byte(s) & 1;
        break;
      case RG_PARAM_ENUM: {
        int count = 0;
        while (spec->values[count]) ++count;
        value.choice = odd ? (int)wild(s) : (int)(byte(s) % (uint32_t)count);
        break;
      }
    }
    rg_dev_set_param(call->op, call->args, p, value);
  }
}

static void draw_dims(const drawn_call *call, byte_source *s, int64_t dim[RG_MAX_DIMS]) {
  static const int64_t sizes[] = {1, 2, 3, 5, 4, 8, 0, 17};
  for (int d = 0; d < call->op->num_dims; ++d) {
    const int64_t multiple = call->op->dims[d].multiple_of > 1 ? call->op->dims[d].multiple_of : 1;
    dim[d] = PICK(s, sizes) * multiple;
    if (multiple > 1 && dim[d] == 0) dim[d] = 23 * multiple;
  }
  /* Sizes that follow from options: as the operator says, where it takes the options. */
  if (call->op->resolve == NULL) return;
  rg_problem problem = {.op = call->op, .args = call->args};
  memcpy(problem.dim, dim, sizeof problem.dim);
  rg_error error;
  if (call->op->resolve(&problem, &error) == RG_OK) memcpy(dim, problem.dim, sizeof problem.dim);
}

static rg_dtype draw_dtype(rg_dtype_rule rule, bool all_double, byte_source *s) {
  static const rg_dtype payload[] = {RG_F32, RG_BF16, RG_F16};
  switch (rule) {
    case RG_DTYPES_INT64:
      return RG_I64;
    case RG_DTYPES_INDEX:
      return byte(s) & 1 ? RG_I32 : RG_I64;
    case RG_DTYPES_POSITION:
      if (byte(s) & 1) return byte(s) & 1 ? RG_I32 : RG_I64;
      break;
    case RG_DTYPES_PAYLOAD:
      return all_double ? RG_F64 : PICK(s, payload);
    case RG_DTYPES_TABLE:
    case RG_DTYPES_ANGLE:
      break;
  }
  return all_double ? RG_F64 : RG_F32;
}

/* ---- descriptors ---- */

/* Right sizes, in one of the layouts that occur: dense, permuted, with gaps, reversed, expanded. */
static void draw_layout(drawn_tensor *t, const rg_tensor_spec *spec, byte_source *s) {
  int order[RG_MAX_RANK];
  for (int a = 0; a < spec->rank; ++a) order[a] = a;
  if (spec->rank > 1 && one_in(s, 3)) {
    const int a = (int)(byte(s) % (uint32_t)spec->rank), b = (int)(byte(s) % (uint32_t)spec->rank);
    order[a] = b;
    order[b] = a;
  }
  int64_t run = one_in(s, 6) ? 1 + byte(s) % 3 : 1;
  for (int k = spec->rank - 1; k >= 0; --k) {
    const int a = order[k];
    t->stride[a] = run;
    run *= t->shape[a] > 0 ? t->shape[a] : 1;
    if (one_in(s, 6)) run += byte(s) % 5;
    if (spec->role == RG_INPUT && one_in(s, 12)) t->stride[a] = -t->stride[a];
    if (spec->role == RG_INPUT && one_in(s, 12)) t->stride[a] = 0;
  }
}

/* `shared`: tables that may serve every batch do. */
static void draw_descriptor(drawn_call *call, int index, const int64_t dim[RG_MAX_DIMS], rg_dtype dtype, bool shared,
                            byte_source *s) {
  const rg_tensor_spec *spec = &call->op->tensors[index];
  drawn_tensor *t = &call->tensor[index];
  for (int a = 0; a < spec->rank; ++a) {
    const rg_axis axis = spec->axes[a];
    t->shape[a] = axis.dim == RG_AXIS_FIXED ? axis.divisor : dim[axis.dim] / axis.divisor;
  }
  if (spec->broadcast_first && shared != one_in(s, 32)) t->shape[0] = 1;
  draw_layout(t, spec, s);
  t->given = spec->role == RG_INPUT || !one_in(s, 8);
  t->view = (DLTensor){.device = {kDLCPU, 0},
                       .ndim = spec->rank,
                       .dtype = rg_dtype_to_dlpack(dtype),
                       .shape = t->shape,
                       .strides = t->stride,
                       .byte_offset = one_in(s, 4) ? byte(s) % 8 * rg_dtype_size(dtype) : 0};
}

/* What a careless or hostile caller gets wrong. */
static void break_something(drawn_call *call, byte_source *s) {
  drawn_tensor *t = &call->tensor[byte(s) % (uint32_t)call->op->num_tensors];
  const uint32_t a = byte(s) % RG_MAX_RANK;
  ++call->broken;
  switch (byte(s) % 11) {
    case 0:
      t->given = !t->given;
      break;
    case 1:
      t->view.ndim = one_in(s, 2) ? (int)wild(s) : (int)(byte(s) % (RG_MAX_RANK + 2));
      break;
    case 2:
      t->shape[a] = byte(s) % 9;
      break;
    case 3:
      t->shape[a] = wild(s);
      break;
    case 4:
      t->stride[a] = (int64_t)(byte(s) % 16) - 8;
      break;
    case 5:
      t->stride[a] = wild(s);
      break;
    case 6:
      t->view.dtype = rg_dtype_to_dlpack((rg_dtype)(byte(s) % RG_NUM_DTYPES));
      break;
    case 7:
      t->view.dtype = (DLDataType){(uint8_t)byte(s), (uint8_t)byte(s), (uint16_t)(1 + byte(s) % 2)};
      break;
    case 8:
      t->view.byte_offset = byte(s);
      break;
    case 9:
      t->view.device = (DLDevice){(DLDeviceType)(byte(s) % 16), (int)(byte(s) % 3)};
      break;
    case 10:
      t->view.shape = one_in(s, 2) ? NULL : t->shape;
      t->view.strides = NULL;
      break;
  }
}

/* ---- a call ---- */

/* With in_place, mostly hands the very input over as the output. */
static void tie_in_place(drawn_call *call, byte_source *s) {
  if (!rg_dev_in_place(call->op, call->args)) return;
  for (int i = 0; i < call->op->num_tensors; ++i) {
    const rg_tensor_spec *spec = &call->op->tensors[i];
    if (spec->role != RG_OUTPUT || !spec->in_place || one_in(s, 8)) continue;
    const DLTensor *input = rg_dev_get_tensor(call->op, call->args, spec->in_place_of);
    if (rg_dev_get_tensor(call->op, call->args, i) != NULL) rg_dev_set_tensor(call->op, call->args, i, input);
  }
}

static const char *draw_variant(byte_source *s) {
  rg_variant_info info;
  const uint32_t choice = byte(s) % (uint32_t)(rg_dev_num_variants() + 2);
  if (choice == 0) return NULL;
  if (choice == 1) return one_in(s, 16) ? "no such variant" : NULL;
  rg_dev_variant((int)choice - 2, &info);
  return info.name;
}

bool draw_call(drawn_call *call, const uint8_t *data, size_t size) {
  byte_source s = {.next = data, .left = size};
  for (size_t i = 0; i < size; ++i) s.beyond = (s.beyond ^ data[i]) * UINT32_C(16777619);
  memset(call, 0, sizeof *call);
  call->op = rg_dev_operator_at(byte(&s) % RG_NUM_OPERATORS);
  call->variant = draw_variant(&s);
  call->args = calloc(1, call->op->args_size);
  if (call->args == NULL) return false;

  int64_t dim[RG_MAX_DIMS] = {0};
  rg_dtype group_dtype[RG_MAX_TENSORS] = {RG_DTYPE_NONE};
  draw_params(call, &s);
  draw_dims(call, &s, dim);
  const bool all_double = one_in(&s, 5), shared = one_in(&s, 4);
  for (int t = 0; t < call->op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &call->op->tensors[t];
    rg_dtype *dtype = &group_dtype[spec->dtype_group];
    if (*dtype == RG_DTYPE_NONE) *dtype = draw_dtype(spec->dtypes, all_double, &s);
    draw_descriptor(call, t, dim, *dtype, shared, &s);
  }
  static const int how_many[] = {0, 0, 0, 0, 1, 1, 1, 2};
  for (int left = PICK(&s, how_many); left > 0; --left) break_something(call, &s);
  for (int t = 0; t < call->op->num_tensors; ++t) {
    if (!draw_memory(call, t, &s)) return false;
    rg_dev_set_tensor(call->op, call->args, t, call->tensor[t].given ? &call->tensor[t].view : NULL);
  }
  tie_in_place(call, &s);
  return true;
}

void release_call(drawn_call *call) {
  for (int t = 0; t < RG_MAX_TENSORS; ++t) {
    free(call->tensor[t].block);
    free(call->tensor[t].kept);
  }
  free(call->args);
}
