/* The general kernels of rope_apply's forward pass: any strides, dtypes, sizes and options. Threads of a warp take
 * neighbours along a row, the others of the block share the heads. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_FORWARD_GENERAL_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_FORWARD_GENERAL_CUH

#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"

/* A thread's columns of position s of batch b, for heads group, group + groups, ... */
struct general_place {
  int64_t b, s, first, second;
  uint32_t group, groups;
};

template <typename Real>
static __device__ __forceinline__ rg_pair<Real> load_table_pair(const rg_device_tensor &table,
                                                                const general_place &at) {
  return {rg_load<Real>(table, rg_offset(table, at.b, at.s, at.first)),
          rg_load<Real>(table, rg_offset(table, at.b, at.s, at.second))};
}

template <typename Real>
static __device__ __forceinline__ void rotate_heads(const rope_apply_forward_general_params &p,
                                                    const general_place &at) {
  const rg_pair<Real> cosine = load_table_pair<Real>(p.cosine, at), sine = load_table_pair<Real>(p.sine, at);
  for (int64_t h = at.group; h < p.heads; h += at.groups) {
    const rg_pair<Real> x = {rg_load<Real>(p.x, rg_offset(p.x, at.b, h, at.s, at.first)),
                             rg_load<Real>(p.x, rg_offset(p.x, at.b, h, at.s, at.second))};
    const rg_pair<Real> y = rg_rotate<rg_once>(x, cosine, sine);
    rg_store(p.y, rg_offset(p.y, at.b, h, at.s, at.first), y.first);
    rg_store(p.y, rg_offset(p.y, at.b, h, at.s, at.second), y.second);
  }
}

template <typename Word>
static __device__ __forceinline__ void copy_heads(const rope_apply_forward_general_params &p, const general_place &at) {
  for (int64_t h = at.group; h < p.heads; h += at.groups) {
    static_cast<Word *>(p.y.data)[rg_offset(p.y, at.b, h, at.s, at.first)] =
        static_cast<const Word *>(p.x.data)[rg_offset(p.x, at.b, h, at.s, at.first)];
  }
}

/* A task: some neighbouring pairs of a position, or some columns past rotary_dim, which pass through bit for bit. */
template <typename Real>
static __device__ __forceinline__ void general(const rope_apply_forward_general_params &p) {
  const int64_t chunks = p.pair_chunks + p.pass_chunks, pairs = p.rotary_dim / 2;
  general_place at;
  at.group = threadIdx.x / p.lanes;
  at.groups = ROPE_APPLY_FORWARD_GENERAL_THREADS / p.lanes;
  const uint32_t lane = threadIdx.x - at.group * p.lanes;
  for (int64_t task = blockIdx.x; task < p.positions * chunks; task += gridDim.x) {
    const int64_t position = task / chunks, chunk = task - position * chunks;
    at.b = position / p.seq_len;
    at.s = position - at.b * p.seq_len;
    if (chunk < p.pair_chunks) {
      const int64_t pair = chunk * p.lanes + lane;
      at.first = p.interleaved ? 2 * pair : pair;
      at.second = p.interleaved ? 2 * pair + 1 : pair + pairs;
      if (pair < pairs) rotate_heads<Real>(p, at);
      continue;
    }
    at.first = p.rotary_dim + (chunk - p.pair_chunks) * p.lanes + lane;
    if (at.first >= p.head_dim) continue;
    if (sizeof(Real) == 8) {
      copy_heads<uint64_t>(p, at);
    } else if (p.x.dtype == RG_F32) {
      copy_heads<uint32_t>(p, at);
    } else {
      copy_heads<uint16_t>(p, at);
    }
  }
}

#endif
