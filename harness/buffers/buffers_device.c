#include "harness/buffers/buffers_device.h"

/* Two guard bytes. */
enum { GUARD = RGH_GUARD_BYTE << 8 | RGH_GUARD_BYTE };

/* The first failure stays; what is asked after it is not done. */
static void keep(rgh_buffers *buffers, bool good) {
  if (!good) buffers->failed = true;
}

static unsigned char *body_of(const rgh_buffer *buffer) { return buffer->device_memory + RGH_GUARD_BYTES; }

static size_t allocation_bytes(const rgh_buffer *buffer) { return buffer->body_bytes + 2 * RGH_GUARD_BYTES; }

bool rgh_device_create(rgh_buffers *buffers, int tensor, rgh_message *why) {
  rgh_memory *device = buffers->device;
  rgh_buffer *buffer = &buffers->buffer[tensor];
  if (device == NULL) return true;
  buffer->device_memory = device->allocate(device, allocation_bytes(buffer));
  if (buffer->kept != NULL) buffer->device_kept = device->allocate(device, buffer->body_bytes + 1);
  if (buffer->device_memory == NULL || (buffer->kept != NULL && buffer->device_kept == NULL)) {
    return rgh_fail(why, "the device has no memory for the %zu bytes of %s", buffer->body_bytes,
                    buffers->item->op->tensors[tensor].name);
  }
  return device->set(device, buffer->device_memory, GUARD, RGH_GUARD_BYTES, why) &&
         device->set(device, body_of(buffer) + buffer->body_bytes, GUARD, RGH_GUARD_BYTES, why);
}

void rgh_device_destroy(rgh_buffers *buffers, int tensor) {
  rgh_memory *device = buffers->device;
  if (device == NULL) return;
  device->release(device, buffers->buffer[tensor].device_memory);
  device->release(device, buffers->buffer[tensor].device_kept);
}

void rgh_device_send(rgh_buffers *buffers, int tensor) {
  rgh_memory *device = buffers->device;
  const rgh_buffer *buffer = &buffers->buffer[tensor];
  if (device == NULL || buffers->failed) return;
  keep(buffers, device->upload(device, body_of(buffer), buffer->memory + RGH_GUARD_BYTES, buffer->body_bytes,
                               &buffers->failure) &&
                    (buffer->kept == NULL || device->copy(device, buffer->device_kept, body_of(buffer),
                                                          buffer->body_bytes, &buffers->failure)));
}

void rgh_device_restore(rgh_buffers *buffers, int tensor) {
  rgh_memory *device = buffers->device;
  const rgh_buffer *buffer = &buffers->buffer[tensor];
  if (device == NULL || buffers->failed) return;
  keep(buffers, device->copy(device, body_of(buffer), buffer->device_kept, buffer->body_bytes, &buffers->failure));
}

void rgh_device_poison(rgh_buffers *buffers, int tensor) {
  rgh_memory *device = buffers->device;
  const rgh_buffer *buffer = &buffers->buffer[tensor];
  if (device == NULL || buffers->failed) return;
  keep(buffers, device->set(device, body_of(buffer), RGH_POISON, buffer->body_bytes, &buffers->failure));
}

bool rgh_buffers_sound(const rgh_buffers *buffers, rgh_message *why) {
  return buffers->failed ? rgh_fail(why, "%s", buffers->failure.text) : true;
}

bool rgh_buffers_fetch(rgh_buffers *buffers, bool inputs_too, rgh_message *why) {
  rgh_memory *device = buffers->device;
  if (device == NULL) return true;
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    const rgh_buffer *buffer = &buffers->buffer[t];
    const bool written = buffers->item->op->tensors[t].role == RG_OUTPUT || buffer->kept != NULL;
    if (buffers->failed || buffer->memory == NULL || (!written && !inputs_too)) continue;
    keep(buffers,
         device->download(device, buffer->memory, buffer->device_memory, allocation_bytes(buffer), &buffers->failure));
  }
  return rgh_buffers_sound(buffers, why);
}

rg_status rgh_buffers_resolve(const rgh_buffers *buffers, rg_context *context, rg_problem *problem) {
  const rg_status status = rg_dev_resolve(context, buffers->item->op, buffers->args, problem);
  if (status != RG_OK || buffers->device == NULL) return status;
  for (int t = 0; t < buffers->item->op->num_tensors; ++t) {
    rg_tensor *tensor = &problem->tensor[t];
    const int input = rgh_case_alias(buffers->item, t);
    const rgh_buffer *owner = &buffers->buffer[input >= 0 ? input : t];
    if (tensor->dtype == RG_DTYPE_NONE) continue;
    tensor->data = owner->memory + ((unsigned char *)tensor->data - owner->device_memory);
  }
  return RG_OK;
}

static size_t aligned(size_t bytes) {
  return (bytes + RGH_MEMORY_ALIGNMENT - 1) / RGH_MEMORY_ALIGNMENT * RGH_MEMORY_ALIGNMENT;
}

size_t rgh_buffers_device_bytes(const rgh_case *item, size_t slack_bytes) {
  const uint32_t given = rgh_case_given(item);
  size_t sum = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if ((given & RG_BIT(t)) == 0) continue;
    /* An output in place stands for the kept copy of its input. */
    const int input = rgh_case_alias(item, t);
    const int owner = input >= 0 ? input : t;
    int64_t stride[RG_MAX_RANK], origin;
    const int64_t span = rgh_case_strides(item, owner, stride, &origin);
    sum += aligned((size_t)span * rg_dtype_size(item->dtype[owner]) + slack_bytes + 2 * RGH_GUARD_BYTES);
  }
  return sum;
}
