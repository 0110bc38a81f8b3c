/* What the tuned kernels of the backward pass have in common: what a lane does with its share of the rows, V pairs, or
 * what is copied past rotary_dim. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_LANES_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_LANES_CUH

#include "ops/rope_apply/rope_apply_cuda.h"
#include "ops/rope_apply/rope_apply_row_vector.cuh"

static constexpr int V = ROPE_APPLY_VECTOR;

/* Where the sums of a block's groups meet, and where the bulk copies of the pipelined kernels arrive: to places aligned
 * to less than a cache line the kernels took up to a third longer (measured, H200). */
extern __shared__ __align__(128) unsigned char rope_apply_shared[];

/* ---- the tables ---- */

/* As they lie in memory. */
template <typename Table>
struct packed_tables {
  lane_vectors<Table, V> cosine, sine; /* with same_half the two vectors of sines exchanged, unless interleaved */
};

/* Of a lane's pairs; with same_half the two sines of a pair exchanged. */
struct pair_tables {
  lane_values<float, V> cosine, sine;

  template <bool INTERLEAVED, typename Table>
  static __device__ __forceinline__ pair_tables of(const packed_tables<Table> &packed, bool same_half) {
    pair_tables tables = {unpack_lane(packed.cosine), unpack_lane(packed.sine)};
    if (INTERLEAVED && same_half) {
#pragma unroll
      for (int i = 0; i < V; ++i) {
        const rg_pair<float> pair = tables.sine.template pair<true>(i);
        tables.sine.template set_pair<true>(i, {pair.second, pair.first});
      }
    }
    return tables;
  }
};

/* ---- the sums, and the way back ---- */

template <typename Real>
struct lane_sums {
  lane_values<Real, V> cosine, sine;
};

template <bool INTERLEAVED>
static __device__ __forceinline__ void add_head(const lane_values<float, V> &g, const lane_values<float, V> &x,
                                                lane_sums<float> *sums) {
#pragma unroll
  for (int i = 0; i < V; ++i) {
    const rg_pair<float> g_pair = g.template pair<INTERLEAVED>(i), x_pair = x.template pair<INTERLEAVED>(i);
    rg_pair<float> c = sums->cosine.template pair<INTERLEAVED>(i), s = sums->sine.template pair<INTERLEAVED>(i);
    rg_add_grad_cos<rg_once>(g_pair, x_pair, &c);
    rg_add_grad_sin<rg_once>(g_pair, x_pair, &s);
    sums->cosine.template set_pair<INTERLEAVED>(i, c);
    sums->sine.template set_pair<INTERLEAVED>(i, s);
  }
}

template <bool INTERLEAVED>
static __device__ __forceinline__ lane_values<float, V> rotate_back(const lane_values<float, V> &g,
                                                                    const pair_tables &tables) {
  lane_values<float, V> grad_x;
#pragma unroll
  for (int i = 0; i < V; ++i) {
    grad_x.template set_pair<INTERLEAVED>(
        i, rg_rotate_transpose<rg_once>(g.template pair<INTERLEAVED>(i), tables.cosine.template pair<INTERLEAVED>(i),
                                        tables.sine.template pair<INTERLEAVED>(i)));
  }
  return grad_x;
}

#endif
