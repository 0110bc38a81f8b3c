/* rope_apply's forward pass on CUDA: what is compiled under which name. Bound by memory: in the suite's float32 8 bytes
 * an element of q and k, against three products for two elements. */
#include "ops/rope_apply/rope_apply_forward_general.cuh"
#include "ops/rope_apply/rope_apply_forward_tune.h"
#include "ops/rope_apply/rope_apply_forward_vectors.cuh"

typedef float f32;
typedef __nv_bfloat16 bf16;
typedef __half f16;

/* Elements of a vector of 16 bytes, and threads of a row of two vectors each. */
#define WIDE(payload) (ROPE_APPLY_FORWARD_VECTOR_BYTES / static_cast<int>(sizeof(payload)))
#define FIXED_LANES(payload) (ROPE_APPLY_FORWARD_FIXED_DIM / (2 * WIDE(payload)))

/* ---- everything fixed: head_dim 128, all of it rotated, rotate_half ---- */

/* For compute capability 8.0 the compiler would rather spill than keep fewer blocks resident, unless it is told that one
 * will do. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ == 800
#define FIXED_BOUNDS(threads) __launch_bounds__(threads, 1)
#else
#define FIXED_BOUNDS(threads) __launch_bounds__(threads)
#endif

#define FIXED(payload, table, rows, groups, unroll, once)                                                            \
  extern "C" __global__ void FIXED_BOUNDS((rows) * (groups)*FIXED_LANES(payload))                                    \
      rope_apply_forward_##payload##_##table##__fixed_##rows##x##groups##x##unroll##x##once(                         \
          const __grid_constant__ rope_apply_forward_params p) {                                                     \
    constexpr rg_cache_hint HINT = (once) ? RG_CACHE_STREAM : RG_CACHE_DEFAULT;                                      \
    forward<                                                                                                         \
        forward_kind<payload, table, WIDE(payload), false, FIXED_LANES(payload), rows, groups, unroll, HINT, HINT>>( \
        p);                                                                                                          \
  }
ROPE_APPLY_FORWARD_FIXED_KERNELS(FIXED)

/* ---- any head_dim, rotary_dim and style, in whole vectors ---- */

#define VECTORS(how, payload, table, v, interleaved)                                                           \
  extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_THREADS)                                     \
      rope_apply_forward_##payload##_##table##__##how(const __grid_constant__ rope_apply_forward_params p) {   \
    forward<forward_kind<payload, table, v, interleaved, 0, 0, 0, ROPE_APPLY_FORWARD_UNROLL, RG_CACHE_DEFAULT, \
                         RG_CACHE_DEFAULT>>(p);                                                                \
  }
#define WIDE_VECTORS(payload, table)                  \
  VECTORS(wide, payload, table, WIDE(payload), false) \
  VECTORS(wide_interleaved, payload, table, WIDE(payload), true)
/* Vectors of 8 bytes, for rows of 16-bit elements that wider ones do not divide. */
#define NARROW_VECTORS(payload, table)                      \
  VECTORS(narrow, payload, table, WIDE(payload) / 2, false) \
  VECTORS(narrow_interleaved, payload, table, WIDE(payload) / 2, true)
WIDE_VECTORS(f32, f32)
WIDE_VECTORS(bf16, bf16)
WIDE_VECTORS(bf16, f32)
WIDE_VECTORS(f16, f16)
WIDE_VECTORS(f16, f32)
NARROW_VECTORS(bf16, bf16)
NARROW_VECTORS(bf16, f32)
NARROW_VECTORS(f16, f16)
NARROW_VECTORS(f16, f32)

/* ---- anything ---- */

extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_GENERAL_THREADS)
    rope_apply_forward_any__general(const __grid_constant__ rope_apply_forward_general_params p) {
  general<float>(p);
}
extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_GENERAL_THREADS)
    rope_apply_forward_f64__general(const __grid_constant__ rope_apply_forward_general_params p) {
  general<double>(p);
}
