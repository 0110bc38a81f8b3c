/* kv_cache_update on CUDA. Bound by memory: an element of the suite's new rows takes 7 flops and 14 bytes, and all
 * other rows are copied.
 *
 * Of the tuned kernels each is one launch. In place a block gathers new rows. Zeroing must then wait until every reader
 * of a row is through: a row that several entries of cache_position name is left to the block of the first of them.
 * Out of place there are blocks of two kinds, neither of which waits for the other: those that gather, and those that
 * copy what passes through. So each byte moves once. */
#include "ops/kv_cache_update/kv_cache_update_fixed.cuh"
#include "ops/kv_cache_update/kv_cache_update_general.cuh"
#include "ops/kv_cache_update/kv_cache_update_pass.cuh"
#include "ops/kv_cache_update/kv_cache_update_tiles.cuh"

using namespace kv_cache_update;

template <typename S>
static __device__ __forceinline__ void in_place(const dense_params &p) {
  __shared__ sum_space<S> space;
  gather_fixed(p, &space);
}

template <typename S>
static __device__ __forceinline__ void in_place_any_size(const dense_params &p) {
  __shared__ sum_space<S> space;
  gather_any_size(p, &space);
}

template <typename S>
static __device__ __forceinline__ void out_of_place_any_size(const dense_params &p) {
  __shared__ sum_space<S> space;
  if (blockIdx.x < p.gather_blocks) {
    gather_any_size(p, &space);
  } else {
    pass_any_size<S, 2>(p, blockIdx.x - p.gather_blocks, reinterpret_cast<char *>(&space));
  }
}

/* Bulk copies; the launcher takes other kernels where a device has none. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
template <typename S>
static __device__ __forceinline__ void out_of_place(const dense_params &p) {
  __shared__ union {
    sum_space<S> sums;
    pass_space pass;
  } space;
  if (blockIdx.x < p.gather_blocks) {
    gather_fixed(p, &space.sums);
  } else {
    pass_by_bulk<S>(p, blockIdx.x - p.gather_blocks, &space.pass);
  }
}

template <typename S>
static __device__ __forceinline__ void in_place_tiles(const dense_params &p) {
  __shared__ tile_space space;
  gather_tile<S>(p, &space);
}
#else
template <typename S>
static __device__ __forceinline__ void out_of_place(const dense_params &) {
  __trap();
}
template <typename S>
static __device__ __forceinline__ void in_place_tiles(const dense_params &) {
  __trap();
}
#endif

/* In launch bounds: threads of a block, and blocks that a multiprocessor shall hold, to which the registers of a
 * thread are cut. float32 takes twice the registers and gets half the blocks (SHARE). The numbers were found for
 * compute capability 9.0; the compilers of others need more registers. A row of head_dim 128 has 16 lanes. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ == 900
#define RESIDENT(blocks) (blocks)
#else
#define RESIDENT(blocks) ((blocks)*3 / 4 > 1 ? (blocks)*3 / 4 : 1)
#endif
#define TILE_ROWS(T) (KV_CACHE_UPDATE_TILE_BYTES / (KV_CACHE_UPDATE_FIXED_DIM * static_cast<int>(sizeof(T))))
#define TUNED(name, T, SHARE, FOUR)                                                             \
  extern "C" __global__ void __launch_bounds__(128, RESIDENT(8 / SHARE))                        \
      kv_cache_update_##name##__in_place_1(const __grid_constant__ dense_params p) {            \
    in_place<block_shape<T, 16, 1, 8, 1, true, 2>>(p);                                          \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(3 / SHARE))                        \
      kv_cache_update_##name##__in_place_2(const __grid_constant__ dense_params p) {            \
    in_place<block_shape<T, 16, 2, 8, 1, true, 2>>(p);                                          \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(4 / SHARE))                        \
      kv_cache_update_##name##__in_place_4(const __grid_constant__ dense_params p) {            \
    in_place<block_shape<T, 16, 4, 4, 2, true, 2>>(p);                                          \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(16 * TILE_ROWS(T))                               \
      kv_cache_update_##name##__in_place_tiles(const __grid_constant__ dense_params p) {        \
    in_place_tiles<block_shape<T, 16, 1, TILE_ROWS(T), 1, true, 2>>(p);                         \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(5 / SHARE))                        \
      kv_cache_update_##name##__out_of_place_2(const __grid_constant__ dense_params p) {        \
    out_of_place<block_shape<T, 16, 2, 8, 1, false, 2>>(p);                                     \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(FOUR))                             \
      kv_cache_update_##name##__out_of_place_4(const __grid_constant__ dense_params p) {        \
    out_of_place<block_shape<T, 16, 4, 4, 2, false, 2>>(p);                                     \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(3 / SHARE))                        \
      kv_cache_update_##name##__in_place_any_size(const __grid_constant__ dense_params p) {     \
    in_place_any_size<block_shape<T, 0, 2, 4, 0, true, 4>>(p);                                  \
  }                                                                                             \
  extern "C" __global__ void __launch_bounds__(256, RESIDENT(3 / SHARE))                        \
      kv_cache_update_##name##__out_of_place_any_size(const __grid_constant__ dense_params p) { \
    out_of_place_any_size<block_shape<T, 0, 2, 4, 0, false, 4>>(p);                             \
  }
TUNED(f32, float, 2, 2)
TUNED(bf16, __nv_bfloat16, 1, 4)
TUNED(f16, __half, 1, 3)

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
