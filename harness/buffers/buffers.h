/* buffers.h: the memory of one case. Each tensor has an allocation of its own:
 *
 *   [ guard, 4 KiB ][ body: the tensor, its gaps, and slack_bytes to move in ][ guard, 4 KiB ]
 *
 * Guards hold one byte pattern, a body that nobody has written another (a NaN in every float dtype), so that a stray
 * write, a write into a gap of a strided layout and an element left unwritten can all be seen. In place, an output has
 * no allocation: it is the input's.
 *
 * For a device with memory of its own there is a second allocation of the same layout on it. The tensors lie there;
 * inputs are made on the host and uploaded, and rgh_buffers_fetch brings the device's bytes, guards included, back to
 * where everything that looks at them finds them. What fails on the way is kept, and told by the next
 * rgh_buffers_fetch or rgh_buffers_sound. */
#ifndef ROPEGRAD_HARNESS_BUFFERS_BUFFERS_H
#define ROPEGRAD_HARNESS_BUFFERS_BUFFERS_H

#include "harness/buffers/memory.h"
#include "harness/buffers/poison.h"
#include "harness/cases/case.h"

enum { RGH_GUARD_BYTES = 4096, RGH_MOVE_BYTES = 256 };

/* What guards hold. Unwritten bodies hold poison. */
enum { RGH_GUARD_BYTE = 0xA5 };

typedef struct rgh_buffer {
  unsigned char *memory;        /* guard, body, guard, on the host; NULL: not given, or in place */
  size_t body_bytes;            /* tensor and slack */
  size_t tensor_bytes;          /* tensor alone: offset, elements and gaps */
  size_t shift;                 /* where in the body the tensor starts now; a multiple of RGH_MOVE_BYTES */
  unsigned char *kept;          /* inputs written in place: a copy of the body as it was filled */
  unsigned char *device_memory; /* as memory, on the device; NULL: the tensors lie on the host */
  unsigned char *device_kept;   /* as kept, on the device */
  DLTensor view;
  int64_t shape[RG_MAX_RANK];
  int64_t stride[RG_MAX_RANK]; /* elements */
  int64_t origin;              /* elements from the start of the tensor's memory to element [0, ..., 0] */
  bool flat;                   /* a moved start reads other valid random input: no refill is needed */
} rgh_buffer;

typedef struct rgh_buffers {
  const rgh_case *item;
  uint64_t seed;
  int threads; /* that the harness itself uses; 0: as many as OpenMP would */
  size_t slack_bytes;
  rgh_buffer buffer[RG_MAX_TENSORS];
  void *args;         /* the call's arguments struct, pointing at the views */
  rgh_memory *device; /* where the tensors lie; NULL: on the host */
  bool failed;        /* the device's memory failed, as `failure` says */
  rgh_message failure;
} rgh_buffers;

/* Allocates the tensors, fills the inputs and poisons the outputs. slack_bytes is 0 or a multiple of RGH_MOVE_BYTES.
 * `item` must outlive the buffers, and the struct must stay where it is: args points into it. On failure (no memory)
 * everything is released. */
bool rgh_buffers_create(rgh_buffers *buffers, const rgh_case *item, uint64_t seed, size_t slack_bytes, int threads,
                        rgh_message *why);
/* The same on a device; NULL: on the host. */
bool rgh_buffers_create_on(rgh_memory *device, rgh_buffers *buffers, const rgh_case *item, uint64_t seed,
                           size_t slack_bytes, int threads, rgh_message *why);
void rgh_buffers_destroy(rgh_buffers *buffers);

/* Moves a tensor's start to `shift` bytes into its body (a multiple of RGH_MOVE_BYTES, at most slack_bytes). Flat float
 * inputs need nothing else; other inputs are written again at the new start. An in-place output follows its input. */
void rgh_buffers_move(rgh_buffers *buffers, int tensor, size_t shift);

/* Draws every input anew from another seed, at the present starts. */
void rgh_buffers_refill(rgh_buffers *buffers, uint64_t seed);

/* Makes the buffers ready for a run: outputs poisoned, inputs that an in-place run has written put back. */
void rgh_buffers_prepare(rgh_buffers *buffers);

/* Only the second of the two. */
void rgh_buffers_restore(rgh_buffers *buffers);

/* Whether the device's memory has done all that was asked of it. */
bool rgh_buffers_sound(const rgh_buffers *buffers, rgh_message *why);

/* After a run: brings back what the outputs' allocations hold and, where inputs_too is set, those of the inputs that no
 * run may write; those that it may are outputs. On the host there is nothing to do. */
bool rgh_buffers_fetch(rgh_buffers *buffers, bool inputs_too, rgh_message *why);

/* After a run, once fetched: every guard, and every byte of an output's body that no element owns, is as it was. */
bool rgh_buffers_intact(const rgh_buffers *buffers, rgh_message *why);

/* A digest of each read-only input's allocation, guards and gaps included (0 elsewhere); of each output's body. */
void rgh_buffers_hash_inputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]);
void rgh_buffers_hash_outputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]);

/* Resolves the call as rg_dev_resolve does, with every tensor's data on the host, where it can be read. On failure the
 * context's last error says why. */
rg_status rgh_buffers_resolve(const rgh_buffers *buffers, rg_context *context, rg_problem *problem);

/* The place in the kept copy, where an in-place run has overwritten the input, of `data` as rgh_buffers_resolve gives
 * it: what the reference must read. Elsewhere `data` itself. */
void *rgh_buffers_pristine(const rgh_buffers *buffers, int tensor, void *data);

/* Bytes of the device's memory that rgh_buffers_create_on takes for the case. */
size_t rgh_buffers_device_bytes(const rgh_case *item, size_t slack_bytes);

#endif /* ROPEGRAD_HARNESS_BUFFERS_BUFFERS_H */
