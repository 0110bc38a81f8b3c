/* ropegrad: rotary position embeddings (RoPE), forward and backward.
 *
 * This header holds what every operator shares: status codes, the context, and how tensors are passed. Each operator
 * has a header of its own, <ropegrad/NAME.h>, with the arguments, shapes, units and formulas of its two passes;
 * <ropegrad/operators.h> includes them all.
 *
 * Tensors. Every tensor is a DLPack `DLTensor` that the caller owns: ropegrad reads the descriptor during the call,
 * never writes it, and keeps no pointer after the call returns. Strides count elements, may be 0 or negative on inputs,
 * and NULL strides mean row-major. `byte_offset` is honoured; the address of the first element must be a multiple of
 * the element size. A tensor with a size of 0 may have a NULL `data`.
 *
 * Wanted outputs. An output given as NULL is not computed, and what only it needs is not read and may be NULL too.
 *
 * Errors. Every function that can fail returns an `rg_status`. On anything but RG_OK nothing was written to any tensor,
 * and `rg_last_error` names the tensor, the dimension, what was expected and what was given.
 *
 * Threads. A context belongs to one host thread at a time; different contexts may be used at the same time. The library
 * keeps no global mutable state but what CUDA itself has once a process (the driver and the loaded kernels), never prints
 * and never ends the process; on the CPU its threads are OpenMP's, whose runtime does both when the system refuses it a
 * thread. A child made by fork() after a call that used several threads must make itself a context of 1 thread: OpenMP's
 * threads do not survive the fork. Kernels run in float32 arithmetic (float64 for float64 tensors) and assume the default
 * floating-point environment.
 *
 * CUDA. Tensors live in memory that the context's device can reach. A call checks its arguments on the host, launches
 * on the context's stream and returns; it waits for nothing and allocates nothing, so it can be captured in a CUDA
 * graph. It runs on the context's device whatever device is current, and leaves the current one as it was. Calls of one
 * context must not overlap on the GPU: they share its workspace, so streams are changed only between calls that have
 * ended. Errors that only the GPU can see are told by rg_context_check.
 *
 * Determinism. The same inputs on the same machine and build give the same bits, whatever the number of threads. */
#ifndef ROPEGRAD_ROPEGRAD_H
#define ROPEGRAD_ROPEGRAD_H

#include <dlpack/dlpack.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RG_API __attribute__((visibility("default")))
#else
#define RG_API
#endif

#define RG_VERSION_MAJOR 0
#define RG_VERSION_MINOR 1
#define RG_VERSION_PATCH 0

#ifdef __cplusplus
extern "C" {
#endif

/* Pinned: a value never changes its meaning. Tens group the codes: 10 the caller's argument, 30 not supported here,
 * 50 resources, 70 the device, 90 ropegrad itself. */
typedef enum rg_status {
  RG_OK = 0,
  RG_ERR_NULL = 10,      /* a needed pointer is NULL, or no output is wanted */
  RG_ERR_RANK = 11,      /* a tensor has the wrong number of dimensions */
  RG_ERR_SHAPE = 12,     /* a size disagrees with another tensor's, is negative, or is not a multiple as required */
  RG_ERR_DTYPE = 13,     /* a dtype, or a pairing of dtypes, that the operator does not take */
  RG_ERR_STRIDE = 14,    /* the first element's address is no multiple of the element size */
  RG_ERR_ALIAS = 15,     /* an output overlaps itself, an input or another output */
  RG_ERR_RANGE = 16,     /* an option or an index lies outside its range */
  RG_ERR_OVERFLOW = 17,  /* sizes or strides whose product does not fit the address space */
  RG_ERR_DEVICE = 18,    /* a tensor lives on another device than the context */
  RG_ERR_VARIANT = 30,   /* no variant of that name */
  RG_ERR_NOT_BUILT = 31, /* the variant or device exists but this build left it out */
  RG_ERR_HARDWARE = 32,  /* this machine lacks what the variant or device needs */
  RG_ERR_ALLOC = 50,     /* memory could not be allocated */
  RG_ERR_CUDA = 70,      /* the CUDA driver reported an error */
  RG_ERR_INTERNAL = 90   /* a defect in ropegrad: please report it */
} rg_status;

/* The library's version, "MAJOR.MINOR.PATCH". Never NULL; lives as long as the program. */
RG_API const char *rg_version(void);

/* A short English sentence for `status`, "unknown status" for a value not listed above. Never NULL. */
RG_API const char *rg_status_string(rg_status status);

/* A device, its resources and the last error: one per stream or host thread. Opaque. */
typedef struct rg_context rg_context;

/* Where a context takes its memory from. Both functions or neither (NULL: malloc and free). `allocate` returns NULL
 * when it has none; the memory must be aligned as malloc's is. `user` is handed back to both. */
typedef struct rg_allocator {
  void *(*allocate)(void *user, size_t bytes);
  void (*release)(void *user, void *memory);
  void *user;
} rg_allocator;

/* What rg_context_create may be told; a zeroed struct asks for the defaults. */
typedef struct rg_context_options {
  int32_t threads;     /* CPU threads of one call, at most 1024; 0: as many as this process may use */
  const char *variant; /* force one, such as "cpu.avx2" (see `ropegrad list`); NULL: the fastest that runs here */
  rg_allocator allocator;
} rg_context_options;

/* Makes a context for `device`: {kDLCPU, 0} or {kDLCUDA, index}. `options` may be NULL. On failure *context is NULL;
 * rg_device_status says more about a device that cannot be used. On CUDA it loads the kernels and takes 4 MiB of the
 * GPU's memory, so that no later call allocates.
 * RG_ERR_NULL: context is NULL. RG_ERR_RANGE: threads is negative or above 1024, or only one of the allocator's
 * functions is given.
 * RG_ERR_DEVICE: a device type other than CPU and CUDA, or a CPU index other than 0. RG_ERR_VARIANT, RG_ERR_NOT_BUILT,
 * RG_ERR_HARDWARE: the forced variant or the device cannot run here. RG_ERR_ALLOC: no memory. RG_ERR_CUDA: the driver
 * failed. */
RG_API rg_status rg_context_create(rg_context **context, DLDevice device, const rg_context_options *options);

/* Whether a context can be made for `device`: the status that rg_context_create would return. `why`, of `why_bytes`
 * bytes, receives one line of text on failure ("no NVIDIA driver is installed: ..."), else ""; it may be NULL. */
RG_API rg_status rg_device_status(DLDevice device, char *why, size_t why_bytes);

/* Releases the context, on CUDA after waiting for its stream. NULL is allowed and does nothing. */
RG_API void rg_context_destroy(rg_context *context);

/* CUDA: the stream of the context's device, as the driver's or the runtime's handle, that later calls run on; NULL: the
 * device's default stream, which is what a new context has. The caller keeps the stream alive while calls run on it.
 * RG_ERR_NULL: context is NULL. RG_ERR_DEVICE: it is a context of the CPU. */
RG_API rg_status rg_context_set_stream(rg_context *context, void *stream);

/* CUDA: waits for the context's stream, then returns and clears the error that calls on it have left behind:
 * RG_ERR_RANGE, an index tensor held a place past the end (what it should have picked is zero); RG_ERR_CUDA, the driver
 * reported an error. Not while the stream is being captured. On the CPU, where a call has ended when it returns, always
 * RG_OK. RG_ERR_NULL: context is NULL. */
RG_API rg_status rg_context_check(rg_context *context);

/* What the last failed call on this context said: which tensor, which dimension, what was expected, what was given.
 * "" when the last call succeeded, a fixed sentence when context is NULL. Valid until the next call on the context. */
RG_API const char *rg_last_error(const rg_context *context);

/* How the pairs that rotate together lie in the last dimension. */
typedef enum rg_style {
  RG_STYLE_ROTATE_HALF = 0, /* element j with element j + rotary_dim/2 (NeoX, Llama) */
  RG_STYLE_INTERLEAVED = 1  /* element 2j with element 2j+1 (GPT-J) */
} rg_style;

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROPEGRAD_H */
