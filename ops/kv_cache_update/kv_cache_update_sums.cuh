/* The sums over heads of the tuned kernels: the parts' shares meet in shared memory. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_SUMS_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_SUMS_CUH

#include "ops/kv_cache_update/kv_cache_update_rows.cuh"

namespace kv_cache_update {

/* Terms that are added up in float32 before the sums go to double. */
enum { MOST_FLOAT_TERMS = 8 };

static __device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

static __device__ __forceinline__ float4 quad_of(const float (&x)[VECTOR]) {
  return make_float4(x[0], x[1], x[2], x[3]);
}

/* [PARTS][ROWS][4][lane]: of a lane the sums of the first half of grad_cos, of its second half, then the same of
 * grad_sin. Lanes are neighbours, so that neither stores nor loads meet in a bank. */
template <typename S>
struct sum_space {
  float4 quad[S::PARTS * S::ROWS * 4 * S::MOST_LANES];

  /* Adds to this thread's share, or begins it. */
  __device__ __forceinline__ void add(const place<S> &at, const pair_sums &sums, bool begun) {
    const float4 more[4] = {quad_of(sums.cos_first), quad_of(sums.cos_second), quad_of(sums.sin_first),
                            quad_of(sums.sin_second)};
    float4 *mine = quad + (at.part * S::ROWS + at.row) * (4 * at.lanes) + at.lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) mine[i * at.lanes] = begun ? sum_of(mine[i * at.lanes], more[i]) : more[i];
  }
};

template <typename Real, typename S>
static __device__ __forceinline__ float4 add_parts(const float4 *first, uint32_t step) {
  enum { AT_ONCE = sizeof(Real) == sizeof(float) ? S::PARTS : 1 }; /* the rare sums in double are kept short */
  Real x = 0, y = 0, z = 0, w = 0;
#pragma unroll AT_ONCE
  for (int part = 0; part < S::PARTS; ++part) {
    const float4 v = first[part * step];
    x += v.x;
    y += v.y;
    z += v.z;
    w += v.w;
  }
  return make_float4(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z), static_cast<float>(w));
}

/* Adds up the parts' sums, in their order, and stores them for new rows row_of(0), row_of(1), ... of the block, those
 * aside that are NO_ROW. All threads of the block come here, behind a barrier. */
template <typename S, typename F>
static __device__ __forceinline__ void store_sums(const dense_params &p, const place<S> &at, uint32_t b, F row_of,
                                                  const sum_space<S> *space) {
  typedef typename S::T T;
  const uint32_t row_quads = 4 * at.lanes, part_quads = S::ROWS * row_quads;
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < part_quads; i += blockDim.x) {
    const uint32_t quad = i / at.lanes % 4, lane = i % at.lanes;
    char *target = quad < 2 ? p.grad_cos : p.grad_sin;
    const uint32_t n = row_of(i / row_quads);
    if (is_wanted<S>(target) && n != NO_ROW) {
      const float4 sum = S::ANY_SIZE && p.heads > MOST_FLOAT_TERMS ? add_parts<double, S>(space->quad + i, part_quads)
                                                                   : add_parts<float, S>(space->quad + i, part_quads);
      const float value[VECTOR] = {sum.x, sum.y, sum.z, sum.w};
      const uint32_t column = (quad % 2 * at.lanes + lane) * VECTOR;
      rg_store_packet<RG_CACHE_DEFAULT, T, VECTOR>(
          reinterpret_cast<T *>(target + offset_of(p.grad_table_at, b, 0, n)) + column, rg_pack<T, VECTOR>(value));
    }
    if (S::LANES > 0 && S::ROWS * 4 * S::LANES <= S::THREADS) break;
  }
}

}  // namespace kv_cache_update

#endif
