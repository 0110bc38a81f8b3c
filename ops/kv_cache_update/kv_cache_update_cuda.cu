/* kv_cache_update on CUDA. Bound by memory: an element of the suite's new rows takes 7 flops and 14 bytes, and all
 * other rows are copied. */
#include "ops/kv_cache_update/kv_cache_update_dense.cuh"
#include "ops/kv_cache_update/kv_cache_update_general.cuh"

using namespace kv_cache_update;

/* In launch bounds: threads of a block, and blocks that a multiprocessor shall hold, to which the registers of a
 * thread are cut. float32 takes twice the registers and gets half the blocks (SHARE). The numbers were found for
 * compute capability 9.0; the compilers of others need more registers. head_dim 128 has 16 lanes of 4 columns in each
 * half, or 8 of 8. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 900
#define RESIDENT(blocks) (blocks)
#else
#define RESIDENT(blocks) ((blocks)*3 / 4)
#endif
#define TUNED(name, T, SHARE)                                                                   \
  extern "C" __global__ void __launch_bounds__(128, RESIDENT(10 / SHARE))                       \
      kv_cache_update_##name##__in_place_few(const __grid_constant__ dense_params p) {          \
    in_place<block_shape<T, 16, 1, 8, true, false, 2>>(p);                                      \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(4 / SHARE))                        \
      kv_cache_update_##name##__in_place(const __grid_constant__ dense_params p) {              \
    in_place<block_shape<T, 16, 2, 8, true, false, 4>>(p);                                      \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(5 / SHARE))                        \
      kv_cache_update_##name##__out_of_place(const __grid_constant__ dense_params p) {          \
    out_of_place<block_shape<T, 16, 2, 8, false, false, 4>, 2>(p);                              \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(3 / SHARE))                        \
      kv_cache_update_##name##__in_place_any_size(const __grid_constant__ dense_params p) {     \
    in_place<block_shape<T, 0, 2, 4, true, true, 4>>(p);                                        \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(3 / SHARE))                        \
      kv_cache_update_##name##__out_of_place_any_size(const __grid_constant__ dense_params p) { \
    out_of_place<block_shape<T, 0, 2, 4, false, true, 4>, 2>(p);                                \
  }
TUNED(f32, float, 2)
TUNED(bf16, __nv_bfloat16, 1)
TUNED(f16, __half, 1)

#define WIDE(name, T)                                                                   \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(4))                        \
      kv_cache_update_##name##__in_place_wide(const __grid_constant__ dense_params p) { \
    in_place<block_shape<T, 8, 4, 8, true, false, 1, 8>>(p);                            \
  }
WIDE(bf16, __nv_bfloat16)
WIDE(f16, __half)

#define GENERAL(name, Real)                                                                               \
  extern "C" __global__ void kv_cache_update_##name##__gather(const __grid_constant__ general_params p) { \
    general_gather<Real>(p);                                                                              \
  }                                                                                                       \
  extern "C" __global__ void kv_cache_update_##name##__sum(const __grid_constant__ general_params p) {    \
    general_sum<Real>(p);                                                                                 \
  }
GENERAL(any, float)
GENERAL(f64, double)
extern "C" __global__ void kv_cache_update_any__clear(const __grid_constant__ general_params p) { general_clear(p); }
