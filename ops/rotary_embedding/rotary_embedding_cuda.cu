/* rotary_embedding on CUDA: kernels. A row of the suite is 768 bytes and 64 sines and cosines, and 4 bytes out. */
#include "ops/rotary_embedding/rotary_embedding_any_d.cuh"
#include "ops/rotary_embedding/rotary_embedding_d128.cuh"
#include "ops/rotary_embedding/rotary_embedding_general.cuh"

/* The launch bounds leave room for all loads of a thread at once: with fewer registers the compiler asks for the
 * frequencies only when the angles have come (9 % at the small sizes). */
#define D128(name, T)                                                                                        \
  extern "C" __global__ void __launch_bounds__(512, 3)                                                       \
      rotary_embedding_##name##__d128_lanes16(const __grid_constant__ rotary_embedding_rows_params p) {      \
    d128<T, 16, false>(p);                                                                                   \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(512, 2)                                                       \
      rotary_embedding_##name##__d128_lanes8(const __grid_constant__ rotary_embedding_rows_params p) {       \
    d128<T, 8, false>(p);                                                                                    \
  }                                                                                                          \
  extern "C" __global__ void __launch_bounds__(512, 2)                                                       \
      rotary_embedding_##name##__d128_lanes8_later(const __grid_constant__ rotary_embedding_rows_params p) { \
    d128<T, 8, true>(p);                                                                                     \
  }
#define ANY_D(name, T)                                                 \
  extern "C" __global__ void rotary_embedding_##name##__any_d_lanes4(  \
      const __grid_constant__ rotary_embedding_rows_params p) {        \
    any_d<T, 4>(p);                                                    \
  }                                                                    \
  extern "C" __global__ void rotary_embedding_##name##__any_d_lanes16( \
      const __grid_constant__ rotary_embedding_rows_params p) {        \
    any_d<T, 16>(p);                                                   \
  }
D128(f32, float)
D128(bf16, __nv_bfloat16)
D128(f16, __half)
ANY_D(f32, float)
ANY_D(bf16, __nv_bfloat16)
ANY_D(f16, __half)

extern "C" __global__ void rotary_embedding_any__general(const __grid_constant__ rotary_embedding_general_params p) {
  general<float>(p);
}
extern "C" __global__ void rotary_embedding_f64__general(const __grid_constant__ rotary_embedding_general_params p) {
  general<double>(p);
}
