/* How vision_rotary's blocks pass partial sums on within one launch: without atomics, so that sums are added in a fixed
 * order, and without a fence or a counter, each of which costs a round trip to the second-level cache (H200, first
 * tries, geometric mean over the suite: 3.5 us against 4.3 with a ticket).
 *
 * A sum is its own flag: zero bits mean that it has not been written, and a sum of +0 is written as -0. Collectors poll
 * until a cell is full, and leave it zero for the next call.
 *
 * Nothing waits in a circle: a worker waits for nobody, and the collectors have the highest block numbers. The hardware
 * starts blocks in the order of their numbers (what the single-pass scan of NVIDIA's CUB rests on, too), so when a
 * collector takes its place on a multiprocessor, every worker has had one: it does not matter how few blocks the device
 * has room for, or which other kernels hold the rest. */
#ifndef ROPEGRAD_OPS_VISION_ROTARY_PARTIALS_CUH
#define ROPEGRAD_OPS_VISION_ROTARY_PARTIALS_CUH

#include "ops/vision_rotary/vision_rotary_cuda.h"
#include "src/cuda/element.cuh"

enum { WARP = 32 };

static __device__ __forceinline__ void pass(void *to, float sum) {
  const uint32_t bits = __float_as_uint(sum) == 0 ? 0x80000000u : __float_as_uint(sum);
  asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to), "r"(bits) : "memory");
}

static __device__ __forceinline__ void pass(void *to, double sum) {
  const long long bits = __double_as_longlong(sum) == 0 ? INT64_MIN : __double_as_longlong(sum);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(bits) : "memory");
}

/* Each element of the vector is read at once; there is no order among them. */
static __device__ __forceinline__ uint4 peek_floats(const uint4 *cell) {
  uint4 bits;
  asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(bits.x), "=r"(bits.y), "=r"(bits.z), "=r"(bits.w)
               : "l"(cell)
               : "memory");
  return bits;
}

static __device__ __forceinline__ longlong2 peek_doubles(const uint4 *cell) {
  longlong2 bits;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(bits.x), "=l"(bits.y) : "l"(cell) : "memory");
  return bits;
}

static __device__ __forceinline__ void clear(uint4 *cell) {
  asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %1, %1, %1};" ::"l"(cell), "r"(0) : "memory");
}

#endif
