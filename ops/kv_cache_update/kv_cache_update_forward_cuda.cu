/* kv_cache_update_forward on CUDA. Bound by memory: an element of the suite's new keys takes 3 flops and 4 bytes, and all
 * else is copied. */
#include "ops/kv_cache_update/kv_cache_update_forward_dense.cuh"
#include "ops/kv_cache_update/kv_cache_update_forward_general.cuh"

using namespace kv_cache_update;

#define KERNEL(name, how, threads, blocks, ...)                                         \
  extern "C" __global__ void __launch_bounds__(threads, blocks)                         \
      kv_cache_update_forward_##name##__##how(const __grid_constant__ dense_params p) { \
    __VA_ARGS__(p);                                                                     \
  }

/* head_dim 128 has 16 lanes of 4 columns in each half, or 8 of 8. Threads of a block, and blocks that a multiprocessor
 * shall hold, to which the registers of a thread are cut: the numbers are for compute capability 9.0, the compilers of
 * others need more registers. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 900
#define RESIDENT(blocks) (blocks)
#else
#define RESIDENT(blocks) ((blocks)*3 / 4)
#endif
#define TUNED(name, T, WIDEST, LANES, IN_PLACE, OUT_OF_PLACE)                                              \
  KERNEL(name, in_place, 128, RESIDENT(IN_PLACE), in_place<new_rows_shape<T, 4, 16, 1, 8, false, 2>>)      \
  KERNEL(name, out_of_place, 256, RESIDENT(OUT_OF_PLACE),                                                  \
         out_of_place<cache_rows_shape<T, WIDEST, LANES, 1, false, 2>>)                                    \
  KERNEL(name, in_place_any_size, 256, RESIDENT(3), in_place<new_rows_shape<T, WIDEST, 0, 2, 4, true, 4>>) \
  KERNEL(name, out_of_place_any_size, 256, RESIDENT(3), out_of_place<cache_rows_shape<T, WIDEST, 0, 1, true, 4>>)
TUNED(f32, float, 4, 16, 6, 4)
TUNED(bf16, __nv_bfloat16, 8, 8, 10, 4)
TUNED(f16, __half, 8, 8, 10, 3)

#define GENERAL(name, ...)                                                                              \
  extern "C" __global__ void kv_cache_update_forward_##name(const __grid_constant__ forward_params p) { \
    __VA_ARGS__(p);                                                                                     \
  }
GENERAL(any__copy, general_copy)
GENERAL(any__mark, general_mark)
GENERAL(any__unmark, general_unmark)
GENERAL(any__put, general_put<float>)
GENERAL(f64__put, general_put<double>)
