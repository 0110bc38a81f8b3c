/* The GPU's memory: places in the pool, and copies by way of page-locked memory, which alone go at the speed of the
 * bus. */
#include <stdint.h>
#include <string.h>

#include "harness/cuda/gpu_state.h"

/* What one thread copies at a time between ordinary and page-locked memory. */
enum { PIECE_BYTES = 1 << 20 };

static CUdeviceptr address(const unsigned char *at) { return (CUdeviceptr)(uintptr_t)at; }

static bool in_pool(const rgh_cuda *cuda, const unsigned char *at) {
  return cuda->pool_bytes > 0 && address(at) >= cuda->pool && address(at) < cuda->pool + cuda->pool_bytes;
}

static unsigned char *allocate(rgh_memory *memory, size_t bytes) {
  rgh_cuda *cuda = memory->state;
  bytes = (bytes + RGH_MEMORY_ALIGNMENT - 1) / RGH_MEMORY_ALIGNMENT * RGH_MEMORY_ALIGNMENT;
  CUdeviceptr at = 0;
  if (bytes <= cuda->pool_bytes - cuda->pool_used) {
    at = cuda->pool + cuda->pool_used;
    cuda->pool_used += bytes;
    cuda->pool_live++;
  } else if (cuda->driver->cuMemAlloc(&at, bytes) != CUDA_SUCCESS) {
    return NULL;
  }
  return (unsigned char *)(uintptr_t)at;
}

static void release(rgh_memory *memory, unsigned char *at) {
  rgh_cuda *cuda = memory->state;
  if (at == NULL) return;
  cuda->driver->cuStreamSynchronize(cuda->stream);
  if (!in_pool(cuda, at)) {
    cuda->driver->cuMemFree(address(at));
  } else if (--cuda->pool_live == 0) {
    cuda->pool_used = 0;
  }
}

static size_t part_at(size_t begin, size_t bytes, size_t most) { return bytes - begin < most ? bytes - begin : most; }

/* On several threads: one alone is slower than the bus. */
static void copy_on_host(const rgh_cuda *cuda, unsigned char *to, const unsigned char *from, size_t bytes) {
  const int team = bytes > PIECE_BYTES ? cuda->threads : 1;
#pragma omp parallel for schedule(static) num_threads(team)
  for (size_t begin = 0; begin < bytes; begin += PIECE_BYTES) {
    memcpy(to + begin, from + begin, part_at(begin, bytes, PIECE_BYTES));
  }
}

static bool upload(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes, rgh_message *why) {
  rgh_cuda *cuda = memory->state;
  const rg_cuda_driver *driver = cuda->driver;
  int stage = 0;
  for (size_t begin = 0; begin < bytes; begin += RGH_STAGE_BYTES, stage = (stage + 1) % RGH_STAGES) {
    const size_t part = part_at(begin, bytes, RGH_STAGE_BYTES);
    CUresult result = driver->cuEventSynchronize(cuda->staged[stage]);
    copy_on_host(cuda, cuda->stage[stage], from + begin, part);
    if (result == CUDA_SUCCESS) {
      result = driver->cuMemcpyHtoDAsync(address(to) + begin, cuda->stage[stage], part, cuda->stream);
    }
    if (result == CUDA_SUCCESS) result = driver->cuEventRecord(cuda->staged[stage], cuda->stream);
    if (!rgh_cuda_good(cuda, result, "copying to the GPU", why)) return false;
  }
  return rgh_cuda_wait(cuda, "copying to the GPU", why);
}

static bool download(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes, rgh_message *why) {
  rgh_cuda *cuda = memory->state;
  const rg_cuda_driver *driver = cuda->driver;
  const size_t parts = (bytes + RGH_STAGE_BYTES - 1) / RGH_STAGE_BYTES;
  /* Part p is on its way while part p - 1 is copied out of its stage. */
  for (size_t p = 0; p <= parts && bytes > 0; p++) {
    CUresult result = CUDA_SUCCESS;
    if (p < parts) {
      const size_t begin = p * RGH_STAGE_BYTES;
      result = driver->cuMemcpyDtoHAsync(cuda->stage[p % RGH_STAGES], address(from) + begin,
                                         part_at(begin, bytes, RGH_STAGE_BYTES), cuda->stream);
      if (result == CUDA_SUCCESS) result = driver->cuEventRecord(cuda->staged[p % RGH_STAGES], cuda->stream);
    }
    if (p > 0 && result == CUDA_SUCCESS) {
      const size_t begin = (p - 1) * RGH_STAGE_BYTES;
      result = driver->cuEventSynchronize(cuda->staged[(p - 1) % RGH_STAGES]);
      copy_on_host(cuda, to + begin, cuda->stage[(p - 1) % RGH_STAGES], part_at(begin, bytes, RGH_STAGE_BYTES));
    }
    if (!rgh_cuda_good(cuda, result, "copying from the GPU", why)) return false;
  }
  return true;
}

static bool copy(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes, rgh_message *why) {
  const rgh_cuda *cuda = memory->state;
  if (bytes == 0) return true;
  const CUresult result = cuda->driver->cuMemcpyDtoDAsync(address(to), address(from), bytes, cuda->stream);
  return rgh_cuda_good(cuda, result, "copying on the GPU", why);
}

/* Half a 32-bit word, at an even address. */
static CUresult set_half(const rgh_cuda *cuda, const unsigned char *at, uint16_t word) {
  const CUresult result = cuda->driver->cuMemsetD8Async(address(at), (unsigned char)word, 1, cuda->stream);
  if (result != CUDA_SUCCESS) return result;
  return cuda->driver->cuMemsetD8Async(address(at) + 1, (unsigned char)(word >> 8), 1, cuda->stream);
}

static bool set(rgh_memory *memory, unsigned char *at, uint16_t word, size_t bytes, rgh_message *why) {
  const rgh_cuda *cuda = memory->state;
  const uint32_t twice = (uint32_t)word << 16 | word;
  unsigned char *end = at + bytes;
  CUresult result = CUDA_SUCCESS;
  if (at < end && address(at) % sizeof twice != 0) {
    result = set_half(cuda, at, word);
    at += sizeof word;
  }
  const size_t whole = (size_t)(end - at) / sizeof twice;
  if (whole > 0 && result == CUDA_SUCCESS) {
    result = cuda->driver->cuMemsetD32Async(address(at), twice, whole, cuda->stream);
  }
  at += whole * sizeof twice;
  if (at < end && result == CUDA_SUCCESS) result = set_half(cuda, at, word);
  return rgh_cuda_good(cuda, result, "setting memory of the GPU", why);
}

void rgh_cuda_memory_init(rgh_cuda *cuda) {
  cuda->memory = (rgh_memory){.state = cuda,
                              .allocate = allocate,
                              .release = release,
                              .upload = upload,
                              .download = download,
                              .copy = copy,
                              .set = set};
}
