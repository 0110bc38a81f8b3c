/* buffers.h: the host memory of one case. Each tensor has an allocation of its own:
 *
 *   [ guard, 4 KiB ][ body: the tensor, its gaps, and slack_bytes to move in ][ guard, 4 KiB ]
 *
 * Guards hold one byte pattern, a body that nobody has written another (a NaN in every float dtype), so that a stray
 * write, a write into a gap of a strided layout and an element left unwritten can all be seen. In place, an output has
 * no allocation: it is the input's. */
#ifndef ROPEGRAD_HARNESS_BUFFERS_H
#define ROPEGRAD_HARNESS_BUFFERS_H

#include "harness/case.h"

enum { RGH_GUARD_BYTES = 4096, RGH_MOVE_BYTES = 256 };

/* What guards and unwritten bodies hold. No operator makes an element of poison by itself (its NaNs have other bits),
 * so one that holds it was never written. */
enum { RGH_GUARD_BYTE = 0xA5, RGH_POISON_BYTE = 0xFF };

typedef struct rgh_buffer {
  unsigned char *memory; /* guard, body, guard; NULL: not given, or in place */
  size_t body_bytes;     /* tensor and slack */
  size_t tensor_bytes;   /* tensor alone: offset, elements and gaps */
  size_t shift;          /* where in the body the tensor starts now; a multiple of RGH_MOVE_BYTES */
  unsigned char *kept;   /* inputs written in place: a copy of the body as it was filled */
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
  void *args; /* the call's arguments struct, pointing at the views */
} rgh_buffers;

/* Allocates the tensors, fills the inputs and poisons the outputs. slack_bytes is 0 or a multiple of RGH_MOVE_BYTES.
 * `item` must outlive the buffers, and the struct must stay where it is: args points into it. On failure (no memory)
 * everything is released. */
bool rgh_buffers_create(rgh_buffers *buffers, const rgh_case *item, uint64_t seed, size_t slack_bytes, int threads,
                        rgh_message *why);
void rgh_buffers_destroy(rgh_buffers *buffers);

/* Moves a tensor's start to `shift` bytes into its body (a multiple of RGH_MOVE_BYTES, at most slack_bytes). Flat float
 * inputs need nothing else; other inputs are written again at the new start. An in-place output follows its input. */
void rgh_buffers_move(rgh_buffers *buffers, int tensor, size_t shift);

/* Draws every input anew from another seed, at the present starts. */
void rgh_buffers_refill(rgh_buffers *buffers, uint64_t seed);

/* Makes the buffers ready for a run: outputs poisoned, inputs that an in-place run has written put back. */
void rgh_buffers_prepare(rgh_buffers *buffers);

/* After a run: every guard, and every byte of an output's body that no element owns, is as it was. */
bool rgh_buffers_intact(const rgh_buffers *buffers, rgh_message *why);

/* A digest of each read-only input's allocation, guards and gaps included (0 elsewhere); of each output's body. */
void rgh_buffers_hash_inputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]);
void rgh_buffers_hash_outputs(const rgh_buffers *buffers, uint64_t hash[RG_MAX_TENSORS]);

/* The tensor's memory from a place as `rg_dev_resolve` gives it, but in the kept copy where an in-place run has
 * overwritten the input: what the reference must read. */
void *rgh_buffers_pristine(const rgh_buffers *buffers, int tensor, void *data);

#endif /* ROPEGRAD_HARNESS_BUFFERS_H */
