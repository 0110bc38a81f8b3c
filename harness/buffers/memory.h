/* memory.h: memory of a device that the host can neither read nor write, and the ways there and back. buffers.h keeps a
 * host copy of what it places there, so that filling, comparing and hashing are the same for every device.
 *
 * Everything happens in the order of the calls, and in order with the operator's own work on the device. */
#ifndef ROPEGRAD_HARNESS_BUFFERS_MEMORY_H
#define ROPEGRAD_HARNESS_BUFFERS_MEMORY_H

#include <dlpack/dlpack.h>
#include <stddef.h>
#include <stdint.h>

#include "harness/base/message.h"

/* What every allocation is a multiple of, and where it starts. */
enum { RGH_MEMORY_ALIGNMENT = 4096 };

typedef struct rgh_memory {
  DLDevice device; /* as tensors in it name it */
  void *state;
  /* NULL: there is none left. What it holds at first is anything. */
  unsigned char *(*allocate)(struct rgh_memory *memory, size_t bytes);
  void (*release)(struct rgh_memory *memory, unsigned char *at); /* NULL is allowed */
  /* Between the host and the device. They return when the bytes have arrived. */
  bool (*upload)(struct rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes,
                 rgh_message *why);
  bool (*download)(struct rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes,
                   rgh_message *why);
  /* On the device. They may return earlier. */
  bool (*copy)(struct rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes, rgh_message *why);
  /* 16-bit words; `bytes` is even. */
  bool (*set)(struct rgh_memory *memory, unsigned char *at, uint16_t word, size_t bytes, rgh_message *why);
} rgh_memory;

#endif /* ROPEGRAD_HARNESS_BUFFERS_MEMORY_H */
