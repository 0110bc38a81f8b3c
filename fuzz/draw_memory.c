#include "fuzz/draw_memory.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_ELEMENTS = 1 << 14, MAX_BLOCK_BYTES = 1 << 18 };

/* How far the descriptor reaches from its first element, in bytes; false when the library has to refuse it whatever its
 * data is, or when a call would take too long: it then gets none. */
static bool extent(const drawn_tensor *t, int64_t *below, int64_t *above, int64_t *elements) {
  const int64_t size = t->view.dtype.bits / 8 * (int64_t)t->view.dtype.lanes;
  if (t->view.ndim < 0 || t->view.ndim > RG_MAX_RANK || t->view.shape == NULL) return false;
  *below = *above = 0;
  *elements = 1;
  for (int a = 0; a < t->view.ndim; ++a) {
    if (t->shape[a] < 0 || t->shape[a] > MAX_ELEMENTS) return false;
    *elements *= t->shape[a]; /* at most MAX_ELEMENTS^2 before the next line */
    if (*elements > MAX_ELEMENTS) return false;
  }
  if (*elements == 0) return true;
  int64_t dense = 1;
  for (int a = t->view.ndim - 1; a >= 0; --a) {
    const int64_t stride = t->view.strides ? t->stride[a] : dense;
    dense *= t->shape[a];
    if (stride > MAX_BLOCK_BYTES || stride < -MAX_BLOCK_BYTES) {
      if (t->shape[a] == 1) continue;
      return false;
    }
    const int64_t span = (t->shape[a] - 1) * stride * size;
    if (span < 0) *below -= span;
    if (span > 0) *above += span;
  }
  *above += size;
  return *below + *above <= MAX_BLOCK_BYTES;
}

static void fill_block(drawn_tensor *t, byte_source *s) {
  static const float floats[] = {0.5f, -1.25f, 3.0f, 1e6f, -0.0f, 1e-40f};
  static const uint16_t halves[] = {0x3f80, 0x3c00, 0x7f80, 0x7fc0, 0x8001, 0x4120};
  const size_t size = t->view.dtype.bits / 8u;
  const bool integers = t->view.dtype.code == kDLInt;
  const uint32_t first = byte(s), step = byte(s) % 3;
  const bool odd = one_in(s, 8);
  for (size_t i = 0; i + size <= t->block_bytes; i += size > 0 ? size : 1) {
    const uint32_t n = (uint32_t)(i / (size > 0 ? size : 1));
    int64_t bits = (int64_t)(first % 4 + n * step);
    if (integers && odd) bits = n % 3 == 1 ? -1 : wild(s);
    if (!integers && size == 4) memcpy(&bits, &floats[(n + first) % 6], 4);
    if (!integers && size == 2) bits = halves[(n * step + first) % (odd ? 6 : 2)];
    if (!integers && size == 8) memcpy(&bits, &(double){(double)floats[(n + first) % 6]}, 8);
    if (size > 0 && size <= sizeof bits) memcpy(t->block + i, &bits, size);
  }
}

bool draw_memory(drawn_call *call, int index, byte_source *s) {
  drawn_tensor *t = &call->tensor[index];
  int64_t below, above, elements;
  if (!extent(t, &below, &above, &elements)) return true;
  const size_t bytes = (size_t)(below + above) + t->view.byte_offset;
  if (index > 0 && one_in(s, 16)) {
    const drawn_tensor *host = &call->tensor[byte(s) % (uint32_t)index];
    if (host->block != NULL && host->block_bytes >= bytes) {
      const size_t slack = host->block_bytes - bytes, at = byte(s) * 4u;
      t->view.data = host->block + (at < slack ? at : slack) + below;
      ++call->broken;
      return true;
    }
  }
  if (elements == 0 && one_in(s, 2)) return true; /* nothing to hold: data may be NULL */
  t->block = malloc(bytes > 0 ? bytes : 1);
  t->kept = malloc(bytes > 0 ? bytes : 1);
  if (t->block == NULL || t->kept == NULL) return false;
  t->block_bytes = bytes;
  memset(t->block, 0, bytes);
  fill_block(t, s);
  memcpy(t->kept, t->block, bytes);
  t->view.data = t->block + below;
  return true;
}
