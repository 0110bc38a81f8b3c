/* Looks for bytes that a run wrote outside the elements of its outputs. */
#include <string.h>

#include "harness/buffers/buffers.h"

static bool is_filled(const unsigned char *memory, unsigned char byte, size_t bytes) {
  return bytes == 0 || (memory[0] == byte && memcmp(memory, memory + 1, bytes - 1) == 0);
}

static bool check_guards(const rgh_buffer *buffer, const char *name, rgh_message *why) {
  const unsigned char *after = buffer->memory + RGH_GUARD_BYTES + buffer->body_bytes;
  if (!is_filled(buffer->memory, RGH_GUARD_BYTE, RGH_GUARD_BYTES)) {
    return rgh_fail(why, "%s: bytes before its memory were overwritten", name);
  }
  if (!is_filled(after, RGH_GUARD_BYTE, RGH_GUARD_BYTES)) {
    return rgh_fail(why, "%s: bytes after its memory were overwritten", name);
  }
  return true;
}

/* A body being walked in the order of its addresses. */
typedef struct walk {
  const unsigned char *body;
  const unsigned char *kept; /* what the gaps must hold; NULL: the poison */
  size_t done;               /* bytes that have been accounted for */
} walk;

/* The bytes from where the walk stands up to `begin` are a gap; those up to `end` belong to elements. */
static bool pass(walk *w, size_t begin, size_t end) {
  const size_t gap = begin - w->done;
  const bool intact = w->kept != NULL ? memcmp(w->body + w->done, w->kept + w->done, gap) == 0
                                      : rgh_poison_holds(w->body + w->done, gap);
  if (intact) w->done = end;
  return intact;
}

static bool pass_rows(walk *w, const rgh_buffer *buffer, const int8_t *order, int rank, size_t element_bytes,
                      size_t first) {
  const int axis = order[0];
  const size_t stride = (size_t)buffer->stride[axis] * element_bytes;
  const size_t size = (size_t)buffer->shape[axis];
  if (rank == 1 && stride == element_bytes) return pass(w, first, first + size * element_bytes);
  for (size_t i = 0; i < size; ++i) {
    const size_t place = first + i * stride;
    if (rank == 1 ? !pass(w, place, place + element_bytes)
                  : !pass_rows(w, buffer, order + 1, rank - 1, element_bytes, place)) {
      return false;
    }
  }
  return true;
}

/* An output, or an input written in place: its layout neither expands nor reverses an axis, so that its elements lie in
 * the order of the layout's axes. */
static bool check_gaps(const rgh_buffers *buffers, int tensor, rgh_message *why) {
  static const int8_t row_major[RG_MAX_RANK] = {0, 1, 2, 3};
  const rgh_case *item = buffers->item;
  const rgh_buffer *buffer = &buffers->buffer[tensor];
  const rgh_layout *layout = &item->layout[tensor];
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  const size_t element_bytes = rg_dtype_size(item->dtype[tensor]);
  const size_t first = buffer->shift + (size_t)buffer->origin * element_bytes;
  walk w = {.body = buffer->memory + RGH_GUARD_BYTES, .kept = buffer->kept};
  bool empty = false;
  for (int a = 0; a < spec->rank; ++a) empty |= buffer->shape[a] == 0;
  const bool intact = (empty || pass_rows(&w, buffer, layout->reordered ? layout->order : row_major, spec->rank,
                                          element_bytes, first)) &&
                      pass(&w, buffer->body_bytes, buffer->body_bytes);
  if (intact) return true;
  return rgh_fail(why, "%s: a byte that no element owns, after byte %zu of its memory, was overwritten", spec->name,
                  w.done);
}

bool rgh_buffers_intact(const rgh_buffers *buffers, rgh_message *why) {
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    const rgh_buffer *buffer = &buffers->buffer[t];
    const rg_tensor_spec *spec = &buffers->item->op->tensors[t];
    if (buffer->memory == NULL) continue;
    if (!check_guards(buffer, spec->name, why)) return false;
    const bool written = spec->role == RG_OUTPUT || buffer->kept != NULL;
    if (written && !check_gaps(buffers, t, why)) return false;
  }
  return true;
}
