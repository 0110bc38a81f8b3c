/* vision_rotary on CUDA. A reduction: 12 bytes and one sine and cosine an angle in the suite's dtypes, and Q sums in
 * the end. At the suite's sizes time goes into latencies, one after the other: load, sine, sum within the block, sum
 * across blocks. */
#include "ops/vision_rotary/vision_rotary_dense.cuh"
#include "ops/vision_rotary/vision_rotary_general.cuh"

/* Vector, slots and rows as vision_rotary_tune.h has them; what may follow is the cells that a collector's lane looks
 * at together. The second launch bound keeps the compiler from sharing a multiprocessor at the price of spills. */
#define KERNEL(name, body, T, quarter, vector, slots, rows, many, ...)                                \
  extern "C" __global__ void __launch_bounds__(quarter != 0 ? slots * 4 * quarter / vector : 1024, 1) \
      vision_rotary_##name(const __grid_constant__ vision_rotary_dense_params p) {                    \
    body<dense_shape<T, quarter, vector, slots, rows, many> __VA_ARGS__>(p);                          \
  }
#define COMMA ,
#define KERNELS(dtype, T)                                                \
  KERNEL(dtype##__d72_cluster16, clustered, T, 18, 2, 16, 1, false)      \
  KERNEL(dtype##__d72_cluster24, clustered, T, 18, 2, 24, 1, false)      \
  KERNEL(dtype##__d72_cluster48, clustered, T, 18, 2, 24, 2, false)      \
  KERNEL(dtype##__d72_blocks16, blocks, T, 18, 2, 16, 1, false, COMMA 2) \
  KERNEL(dtype##__d72_blocks24, blocks, T, 18, 2, 24, 1, false, COMMA 2) \
  KERNEL(dtype##__d72_blocks32, blocks, T, 18, 4, 32, 1, false, COMMA 2) \
  KERNEL(dtype##__d72_blocks64, blocks, T, 18, 4, 32, 2, false, COMMA 4) \
  KERNEL(dtype##__d72_blocks96, blocks, T, 18, 4, 48, 2, false, COMMA 4) \
  KERNEL(dtype##__d72_many, blocks, T, 18, 4, 32, 1, true, COMMA 4)      \
  KERNEL(dtype##__rows, blocks, T, 0, 4, 16, 2, true, COMMA 4)
KERNELS(f32, float)
KERNELS(bf16, __nv_bfloat16)
KERNELS(f16, __half)

extern "C" __global__ void __launch_bounds__(VISION_ROTARY_GENERAL_THREADS, 1)
    vision_rotary_any__general(const __grid_constant__ vision_rotary_general_params p) {
  general<float>(p);
}
extern "C" __global__ void __launch_bounds__(VISION_ROTARY_GENERAL_THREADS, 1)
    vision_rotary_f64__general(const __grid_constant__ vision_rotary_general_params p) {
  general<double>(p);
}
