/* rope_apply's forward pass on CUDA: what is compiled under which name. Bound by memory: in the suite's float32 8 bytes
 * an element of q and k, against three products for two elements. */
#include "ops/rope_apply/rope_apply_forward_general.cuh"
#include "ops/rope_apply/rope_apply_forward_tune.h"
#include "ops/rope_apply/rope_apply_forward_vectors.cuh"

typedef float f32;
typedef __nv_bfloat16 bf16;
typedef __half f16;

/* ---- rows in vectors, of `bytes` each of q and k ---- */

#define VECTORS(payload, table, bytes, how, heads, hint, interleaved)                                        \
  extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_THREADS)                                   \
      rope_apply_forward_##payload##_##table##__##how(const __grid_constant__ rope_apply_forward_params p) { \
    constexpr int V = bytes / static_cast<int>(sizeof(payload));                                             \
    forward<forward_kind<payload, table, V, heads, interleaved, hint>>(p);                                   \
  }
#define STYLES(payload, table, bytes, how, heads, hint)             \
  VECTORS(payload, table, bytes, bytes##_##how, heads, hint, false) \
  VECTORS(payload, table, bytes, bytes##_##how##_interleaved, heads, hint, true)
#define ALL_VECTORS(payload, table, bytes)                                            \
  STYLES(payload, table, bytes, once, ROPE_APPLY_FORWARD_HEADS_ONCE, RG_CACHE_STREAM) \
  STYLES(payload, table, bytes, kept, ROPE_APPLY_FORWARD_HEADS_KEPT, RG_CACHE_DEFAULT)
ALL_VECTORS(f32, f32, 16)
ALL_VECTORS(bf16, bf16, 16)
ALL_VECTORS(bf16, f32, 16)
ALL_VECTORS(f16, f16, 16)
ALL_VECTORS(f16, f32, 16)
/* For rows of 16-bit elements that wider vectors do not divide, such as 24 columns of 96. */
ALL_VECTORS(bf16, bf16, 8)
ALL_VECTORS(bf16, f32, 8)
ALL_VECTORS(f16, f16, 8)
ALL_VECTORS(f16, f32, 8)

/* ---- anything ---- */

extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_GENERAL_THREADS)
    rope_apply_forward_any__general(const __grid_constant__ rope_apply_forward_general_params p) {
  general<float>(p);
}
extern "C" __global__ void __launch_bounds__(ROPE_APPLY_FORWARD_GENERAL_THREADS)
    rope_apply_forward_f64__general(const __grid_constant__ rope_apply_forward_general_params p) {
  general<double>(p);
}
