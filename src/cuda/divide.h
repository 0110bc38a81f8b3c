/* divide.h: division of a 32-bit number by one that the host knows: two multiplications, in a fraction of the time. */
#ifndef ROPEGRAD_SRC_CUDA_DIVIDE_H
#define ROPEGRAD_SRC_CUDA_DIVIDE_H

#include <stdint.h>

typedef struct rg_divider {
  uint64_t inverse; /* 2^64 / divisor rounded up; not used for a divisor of 1 */
  uint32_t divisor;
} rg_divider;

/* 0 < divisor < 2^32 */
static inline rg_divider rg_divider_of(int64_t divisor) {
  return (rg_divider){divisor > 1 ? UINT64_MAX / (uint64_t)divisor + 1 : 0, (uint32_t)divisor};
}

#ifdef __CUDACC__
/* n / divisor rounded down, for every n: the inverse is less than 1 too large, so n times it less than 2^-32. */
static __device__ __forceinline__ uint32_t rg_divide(uint32_t n, const rg_divider &by) {
  const uint32_t low = static_cast<uint32_t>(by.inverse), high = static_cast<uint32_t>(by.inverse >> 32);
  const uint64_t product = __umulhi(n, low) + static_cast<uint64_t>(n) * high;
  return by.divisor == 1 ? n : static_cast<uint32_t>(product >> 32);
}
#endif

#endif
