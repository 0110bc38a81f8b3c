#include "harness/verify/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/buffers/poison.h"

enum { RUN = 256 }; /* elements converted at a time */

void rgh_comparison_init(rgh_comparison *comparison) { *comparison = (rgh_comparison){.tensor = -1}; }

/* Is a, of tensor ta at index ia, to be reported rather than b? */
static bool worse(double a, int ta, const int64_t *ia, const rgh_comparison *b) {
  if (b->tensor < 0) return true;
  if (a != b->allowance_used) return a > b->allowance_used;
  if (ta != b->tensor) return ta < b->tensor;
  for (int axis = 0; axis < RG_MAX_RANK; ++axis) {
    if (ia[axis] != b->index[axis]) return ia[axis] < b->index[axis];
  }
  return false;
}

void rgh_comparison_merge(rgh_comparison *into, const rgh_comparison *from) {
  const int64_t compared = into->compared + from->compared;
  const int64_t out_of_contract = into->out_of_contract + from->out_of_contract;
  if (from->tensor >= 0 && worse(from->allowance_used, from->tensor, from->index, into)) *into = *from;
  into->compared = compared;
  into->out_of_contract = out_of_contract;
}

/* `count` elements, `stride` apart, as doubles. The dtype is looked at once and not per element. */
static void read_run(const rg_tensor *tensor, int64_t first, int64_t stride, int64_t count, double *value) {
  switch (tensor->dtype) {
    case RG_F32: {
      const float *in = (const float *)tensor->data + first;
      for (int64_t i = 0; i < count; ++i) value[i] = in[i * stride];
      break;
    }
    case RG_BF16: {
      const uint16_t *in = (const uint16_t *)tensor->data + first;
      for (int64_t i = 0; i < count; ++i) {
        const uint32_t bits = (uint32_t)in[i * stride] << 16;
        float single;
        memcpy(&single, &bits, sizeof single);
        value[i] = single;
      }
      break;
    }
    default:
      for (int64_t i = 0; i < count; ++i) value[i] = rg_dtype_read(tensor->dtype, tensor->data, first + i * stride);
  }
}

/* The poison is a NaN, so only NaNs need be looked at byte by byte. */
static bool holds_poison(const rg_tensor *tensor, int64_t place, double value) {
  if (!isnan(value)) return false;
  const int64_t bytes = (int64_t)rg_dtype_size(tensor->dtype);
  return rgh_poison_holds((const unsigned char *)tensor->data + place * bytes, (size_t)bytes);
}

void rgh_compare(const rg_tensor *actual, const rg_reference_output *reference, int tensor,
                 const int64_t first[RG_MAX_RANK], rgh_comparison *comparison) {
  const int last = actual->rank - 1;
  const int64_t elements = rg_tensor_elements(actual);
  const int64_t row = elements > 0 ? actual->shape[last] : 1, stride = actual->stride[last];
  rgh_comparison *c = comparison;
  c->compared += elements;
  double value[RUN];
  int64_t index[RG_MAX_RANK] = {0};
  for (int64_t begin = 0; begin < elements; begin += row) {
    int64_t place = 0, rest = begin / row;
    for (int a = last - 1; a >= 0; --a) {
      index[a] = rest % actual->shape[a] + first[a];
      place += rest % actual->shape[a] * actual->stride[a];
      rest /= actual->shape[a];
    }
    for (int64_t done = 0; done < row; done += RUN) {
      const int64_t count = row - done < RUN ? row - done : RUN;
      read_run(actual, place + done * stride, stride, count, value);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t e = begin + done + i;
        double used = rg_dev_allowance_used(actual->dtype, value[i], reference->value[e], reference->magnitude[e],
                                            reference->terms);
        const bool unwritten = holds_poison(actual, place + (done + i) * stride, value[i]);
        if (unwritten) used = (double)INFINITY;
        if (used > 1.0) ++c->out_of_contract;
        if (c->tensor >= 0 && used < c->allowance_used) continue;
        index[last] = done + i + first[last];
        if (!worse(used, tensor, index, c)) continue;
        c->allowance_used = used;
        c->tensor = tensor;
        memcpy(c->index, index, sizeof index);
        c->got = value[i];
        c->expected = reference->value[e];
        c->unwritten = unwritten;
      }
    }
  }
}

void rgh_index_text(const int64_t *index, int rank, char *text) {
  char *end = text;
  *end++ = '[';
  for (int a = 0; a < rank; ++a) end += sprintf(end, a == 0 ? "%" PRId64 : ",%" PRId64, index[a]);
  strcpy(end, "]");
}
