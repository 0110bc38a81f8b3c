/* rope_apply on CUDA: what is compiled under which name. Bound by memory: in the suite's float32 12 bytes an element of
 * q and k, against a few products. */
#include "ops/rope_apply/rope_apply_fixed.cuh"
#include "ops/rope_apply/rope_apply_general.cuh"
#include "ops/rope_apply/rope_apply_pipeline.cuh"
#include "ops/rope_apply/rope_apply_shapes.h"
#include "ops/rope_apply/rope_apply_vectors.cuh"

typedef float f32;
typedef __nv_bfloat16 bf16;
typedef __half f16;

/* ---- everything fixed, see rope_apply_shapes.h ---- */

#define HINT(once) ((once) ? RG_CACHE_STREAM : RG_CACHE_DEFAULT)
#define FIXED_KIND(payload, table, plain, rows, groups, loads_once, stores_once)                               \
  fixed_kind<payload, table, ROPE_APPLY_FIXED_DIM / ROPE_APPLY_LANE, rows, groups, !(plain), HINT(loads_once), \
             HINT(stores_once)>

#define DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once)                         \
  extern "C" __global__ void __launch_bounds__((rows) * (groups)*ROPE_APPLY_FIXED_DIM / ROPE_APPLY_LANE, 1) \
      rope_apply_##payload##_##table##__direct##plain##_##rows##x##groups##x##depth##x##loads_once(         \
          const __grid_constant__ rope_apply_fixed_params p) {                                              \
    direct<FIXED_KIND(payload, table, plain, rows, groups, loads_once, stores_once), depth>(p);             \
  }

/* Code for older architectures does without bulk copies, with the same tiles and sums. */
template <typename Kind, uint32_t STAGES>
static __device__ __forceinline__ void pipeline_where_possible(const rope_apply_fixed_params &p) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  pipeline<Kind, STAGES>(p);
#else
  direct<Kind, 1>(p);
#endif
}

#define PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once)                            \
  extern "C" __global__ void __launch_bounds__((rows) * (groups)*ROPE_APPLY_FIXED_DIM / ROPE_APPLY_LANE, 1)      \
      rope_apply_##payload##_##table##__pipeline##plain##_##rows##x##groups##x##depth##x##loads_once(            \
          const __grid_constant__ rope_apply_fixed_params p) {                                                   \
    pipeline_where_possible<FIXED_KIND(payload, table, plain, rows, groups, loads_once, stores_once), depth>(p); \
  }

ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)

/* ---- rows in vectors ---- */

#define VECTORS(function, threads, how, payload, table, interleaved, tables)                                \
  extern "C" __global__ void __launch_bounds__(threads)                                                     \
      rope_apply_##payload##_##table##__vectors##how(const __grid_constant__ rope_apply_vectors_params p) { \
    function<vectors_kind<payload, table, interleaved, tables>>(p);                                         \
  }
#define ALL_VECTORS(payload, table)                                                             \
  VECTORS(vectors, ROPE_APPLY_VECTORS_THREADS, , payload, table, false, true)                   \
  VECTORS(vectors, ROPE_APPLY_VECTORS_THREADS, _interleaved, payload, table, true, true)        \
  VECTORS(long_vectors, ROPE_APPLY_LONG_THREADS, _long, payload, table, false, true)            \
  VECTORS(long_vectors, ROPE_APPLY_LONG_THREADS, _long_interleaved, payload, table, true, true) \
  VECTORS(long_vectors, ROPE_APPLY_VECTORS_THREADS, _plain, payload, table, false, false)       \
  VECTORS(long_vectors, ROPE_APPLY_VECTORS_THREADS, _plain_interleaved, payload, table, true, false)
ALL_VECTORS(f32, f32)
ALL_VECTORS(bf16, bf16)
ALL_VECTORS(bf16, f32)
ALL_VECTORS(f16, f16)
ALL_VECTORS(f16, f32)

/* ---- anything ---- */

extern "C" __global__ void __launch_bounds__(ROPE_APPLY_GENERAL_THREADS)
    rope_apply_any__general(const __grid_constant__ rope_apply_general_params p) {
  general<float>(p);
}
extern "C" __global__ void __launch_bounds__(ROPE_APPLY_GENERAL_THREADS)
    rope_apply_f64__general(const __grid_constant__ rope_apply_general_params p) {
  general<double>(p);
}
