#include "harness/buffers/buffers.h"

#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "harness/buffers/buffers_device.h"
#include "harness/cases/fill.h"

/* The unit in which memory is set, copied and hashed by several threads. */
enum { PIECE_BYTES = 1 << 20, ALIGNMENT = 4096 };

static int team_of(const rgh_buffers *buffers, size_t bytes) {
  if (bytes <= PIECE_BYTES) return 1;
  return buffers->threads > 0 ? buffers->threads : omp_get_max_threads();
}

static size_t piece_at(size_t begin, size_t bytes) { return bytes - begin < PIECE_BYTES ? bytes - begin : PIECE_BYTES; }

static void poison_bytes(const rgh_buffers *buffers, unsigned char *memory, size_t bytes) {
#pragma omp parallel for schedule(static) num_threads(team_of(buffers, bytes))
  for (size_t begin = 0; begin < bytes; begin += PIECE_BYTES) rgh_poison_fill(memory + begin, piece_at(begin, bytes));
}

static void copy_bytes(const rgh_buffers *buffers, unsigned char *to, const unsigned char *from, size_t bytes) {
#pragma omp parallel for schedule(static) num_threads(team_of(buffers, bytes))
  for (size_t begin = 0; begin < bytes; begin += PIECE_BYTES) memcpy(to + begin, from + begin, piece_at(begin, bytes));
}

/* The digests of the pieces, each seeded with its place, added up: the same for any number of threads. */
static uint64_t hash_bytes(const rgh_buffers *buffers, const unsigned char *memory, size_t bytes) {
  uint64_t sum = 0;
#pragma omp parallel for schedule(static) num_threads(team_of(buffers, bytes)) reduction(+ : sum)
  for (size_t begin = 0; begin < bytes; begin += PIECE_BYTES) {
    sum += XXH3_64bits_withSeed(memory + begin, piece_at(begin, bytes), begin);
  }
  return sum;
}

/* ---- making ---- */

static unsigned char *body_of(const rgh_buffer *buffer) { return buffer->memory + RGH_GUARD_BYTES; }

static unsigned char *allocate(size_t bytes) {
  return aligned_alloc(ALIGNMENT, (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
}

static bool is_dense(const rgh_buffer *buffer, int rank) {
  int64_t run = 1;
  for (int a = rank - 1; a >= 0; --a) {
    if (buffer->shape[a] > 1 && buffer->stride[a] != run) return false;
    run *= buffer->shape[a];
  }
  return buffer->origin == 0;
}

/* Points the view of a tensor, and those of the outputs that share its memory, at the present start. */
static void place_view(rgh_buffers *buffers, int tensor) {
  const rgh_buffer *owner = &buffers->buffer[tensor];
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    if (t != tensor && rgh_case_alias(buffers->item, t) != tensor) continue;
    rgh_buffer *buffer = &buffers->buffer[t];
    unsigned char *memory = owner->device_memory != NULL ? owner->device_memory : owner->memory;
    buffer->view.data = memory + RGH_GUARD_BYTES + owner->shift;
    buffer->view.byte_offset = (uint64_t)buffer->origin * rg_dtype_size(buffers->item->dtype[t]);
  }
}

static void fill_input(rgh_buffers *buffers, int tensor) {
  const rgh_case *item = buffers->item;
  rgh_buffer *buffer = &buffers->buffer[tensor];
  const rg_dtype dtype = item->dtype[tensor];
  const int64_t size = (int64_t)rg_dtype_size(dtype);
  rg_tensor target = {.data = body_of(buffer), .dtype = dtype, .rank = 1, .stride = {1}};
  target.shape[0] = (int64_t)buffer->body_bytes / size;
  if (!buffer->flat) {
    poison_bytes(buffers, body_of(buffer), buffer->body_bytes);
    target.data = body_of(buffer) + buffer->shift + buffer->origin * size;
    target.rank = item->op->tensors[tensor].rank;
    memcpy(target.shape, buffer->shape, sizeof target.shape);
    memcpy(target.stride, buffer->stride, sizeof target.stride);
  }
  rgh_fill_tensor(item, tensor, buffers->seed, &target, buffers->threads);
  if (buffer->kept != NULL) copy_bytes(buffers, buffer->kept, body_of(buffer), buffer->body_bytes);
  rgh_device_send(buffers, tensor);
}

/* Asked before anything is allocated: a system that hands out more memory than it has would kill the process later. */
static bool check_memory(const rgh_case *item, size_t slack_bytes, rgh_message *why) {
  const int64_t has = (int64_t)sysconf(_SC_PHYS_PAGES) * sysconf(_SC_PAGESIZE);
  int64_t needs = rgh_case_bytes(item) + (int64_t)slack_bytes * item->op->num_tensors;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    /* Inputs written in place are kept a second time. */
    const int input = rgh_case_alias(item, t);
    int64_t stride[RG_MAX_RANK], origin;
    if (input < 0 || (rgh_case_given(item) & RG_BIT(t)) == 0) continue;
    needs += rgh_case_strides(item, input, stride, &origin) * (int64_t)rg_dtype_size(item->dtype[input]);
  }
  if (needs <= has) return true;
  return rgh_fail(why, "its tensors take %.1f GB, and this machine has %.1f GB of memory", needs * 1e-9, has * 1e-9);
}

static bool create_tensor(rgh_buffers *buffers, int tensor, rgh_message *why) {
  const rgh_case *item = buffers->item;
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  const rg_dtype dtype = item->dtype[tensor];
  rgh_buffer *buffer = &buffers->buffer[tensor];
  rgh_case_shape(item, tensor, buffer->shape);
  const int64_t span = rgh_case_strides(item, tensor, buffer->stride, &buffer->origin);
  buffer->view = (DLTensor){.device = buffers->device != NULL ? buffers->device->device : (DLDevice){kDLCPU, 0},
                            .ndim = spec->rank,
                            .dtype = rg_dtype_to_dlpack(dtype),
                            .shape = buffer->shape,
                            .strides = buffer->stride};
  rg_dev_set_tensor(item->op, buffers->args, tensor, &buffer->view);
  if (rgh_case_alias(item, tensor) >= 0) return true;

  buffer->tensor_bytes = (size_t)span * rg_dtype_size(dtype);
  buffer->body_bytes = buffer->tensor_bytes + buffers->slack_bytes;
  buffer->memory = allocate(buffer->body_bytes + 2 * RGH_GUARD_BYTES);
  bool written = false; /* in place */
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if ((rgh_case_given(item) & RG_BIT(t)) != 0 && rgh_case_alias(item, t) == tensor) written = true;
  }
  if (written && buffer->memory != NULL) buffer->kept = allocate(buffer->body_bytes + 1);
  if (buffer->memory == NULL || (written && buffer->kept == NULL)) {
    return rgh_fail(why, "no memory for the %zu bytes of %s", buffer->body_bytes, spec->name);
  }
  memset(buffer->memory, RGH_GUARD_BYTE, RGH_GUARD_BYTES);
  memset(body_of(buffer) + buffer->body_bytes, RGH_GUARD_BYTE, RGH_GUARD_BYTES);
  buffer->flat = spec->role == RG_INPUT && rgh_fill_is_flat(&item->fill[tensor]) && is_dense(buffer, spec->rank);
  return rgh_device_create(buffers, tensor, why);
}

bool rgh_buffers_create(rgh_buffers *buffers, const rgh_case *item, uint64_t seed, size_t slack_bytes, int threads,
                        rgh_message *why) {
  return rgh_buffers_create_on(NULL, buffers, item, seed, slack_bytes, threads, why);
}

bool rgh_buffers_create_on(rgh_memory *device, rgh_buffers *buffers, const rgh_case *item, uint64_t seed,
                           size_t slack_bytes, int threads, rgh_message *why) {
  memset(buffers, 0, sizeof *buffers);
  buffers->device = device;
  if (!check_memory(item, slack_bytes, why)) return false;
  buffers->item = item;
  buffers->seed = seed;
  buffers->threads = threads;
  buffers->slack_bytes = slack_bytes;
  buffers->args = calloc(1, item->op->args_size);
  if (buffers->args == NULL) return rgh_fail(why, "no memory");
  rgh_case_set_params(item, buffers->args);
  const uint32_t given = rgh_case_given(item);
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if ((given & RG_BIT(t)) != 0 && !create_tensor(buffers, t, why)) {
      rgh_buffers_destroy(buffers);
      return false;
    }
  }
  for (int t = 0; t < item->op->num_tensors; ++t) {
    rgh_buffer *buffer = &buffers->buffer[t];
    if (buffer->memory == NULL) continue;
    place_view(buffers, t);
    if (item->op->tensors[t].role == RG_INPUT) {
      fill_input(buffers, t);
    } else {
      poison_bytes(buffers, body_of(buffer), buffer->body_bytes);
      rgh_device_poison(buffers, t);
    }
  }
  if (rgh_buffers_sound(buffers, why)) return true;
  rgh_buffers_destroy(buffers);
  return false;
}

void rgh_buffers_destroy(rgh_buffers *buffers) {
  for (int t = 0; t < RG_MAX_TENSORS; ++t) {
    free(buffers->buffer[t].memory);
    free(buffers->buffer[t].kept);
    rgh_device_destroy(buffers, t);
  }
  free(buffers->args);
  memset(buffers, 0, sizeof *buffers);
}

/* ---- between runs ---- */

void rgh_buffers_move(rgh_buffers *buffers, int tensor, size_t shift) {
  rgh_buffer *buffer = &buffers->buffer[tensor];
  if (buffer->memory == NULL || buffer->shift == shift) return;
  buffer->shift = shift;
  place_view(buffers, tensor);
  if (buffers->item->op->tensors[tensor].role == RG_INPUT && !buffer->flat) fill_input(buffers, tensor);
}

void rgh_buffers_refill(rgh_buffers *buffers, uint64_t seed) {
  buffers->seed = seed;
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    if (buffers->buffer[t].memory == NULL || buffers->item->op->tensors[t].role != RG_INPUT) continue;
    fill_input(buffers, t);
  }
}

void rgh_buffers_restore(rgh_buffers *buffers) {
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    rgh_buffer *buffer = &buffers->buffer[t];
    if (buffer->memory == NULL || buffer->kept == NULL) continue;
    if (buffers->device != NULL) {
      rgh_device_restore(buffers, t);
    } else {
      copy_bytes(buffers, body_of(buffer), buffer->kept, buffer->body_bytes);
    }
  }
}

void rgh_buffers_prepare(rgh_buffers *buffers) {
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    rgh_buffer *buffer = &buffers->buffer[t];
    if (buffer->memory == NULL || buffers->item->op->tensors[t].role != RG_OUTPUT) continue;
    if (buffers->device != NULL) {
      rgh_device_poison(buffers, t);
    } else {
      poison_bytes(buffers, body_of(buffer), buffer->body_bytes);
    }
  }
  rgh_buffers_restore(buffers);
}

/* ---- after a run ---- */

void *rgh_buffers_pristine(const rgh_buffers *buffers, int tensor, void *data) {
  const rgh_buffer *buffer = &buffers->buffer[tensor];
  if (buffer->kept == NULL) return data;
  return buffer->kept + ((unsigned char *)data - body_of(buffer));
}

void rgh_buffers_hash_inputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]) {
  for (int t = 0; t < RG_MAX_TENSORS; ++t) {
    const rgh_buffer *buffer = &buffers->buffer[t];
    hash[t] = 0;
    if (buffer->memory == NULL || buffer->kept != NULL || buffers->item->op->tensors[t].role != RG_INPUT) continue;
    hash[t] = hash_bytes(buffers, buffer->memory, buffer->body_bytes + 2 * RGH_GUARD_BYTES);
  }
}

void rgh_buffers_hash_outputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]) {
  for (int t = 0; t < RG_MAX_TENSORS; ++t) {
    hash[t] = 0;
    if (t >= buffers->item->op->num_tensors || buffers->item->op->tensors[t].role != RG_OUTPUT) continue;
    const int input = rgh_case_alias(buffers->item, t);
    const rgh_buffer *owner = &buffers->buffer[input >= 0 ? input : t];
    if (owner->memory != NULL) hash[t] = hash_bytes(buffers, body_of(owner), owner->body_bytes);
  }
}
