/* The general kernels of rope_apply: any strides, dtypes, sizes and options. Threads of a warp take neighbours along a
 * row, the others of the block share the heads. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_GENERAL_CUH
#define ROPEGRAD_OPS_ROPE_APPLY_GENERAL_CUH

#include "ops/rope_apply/rope_apply_cuda.h"
#include "src/cuda/element.cuh"
#include "src/cuda/rotate.cuh"
#include "src/cuda/sum.cuh"

/* Adds a product, exactly but for the sum's own rounding. */
static __device__ __forceinline__ void add_product(rg_sum<float> &sum, float a, float b) {
  sum.add(__dmul_rn(static_cast<double>(a), static_cast<double>(b)));
}
static __device__ __forceinline__ void add_product(rg_sum<double> &sum, double a, double b) {
  const double product = __dmul_rn(a, b);
  sum.add(rg_exact_sum{product, __fma_rn(a, b, -product)});
}

/* The sums of one pair of columns for one table. */
template <typename Real>
struct pair_sum {
  rg_sum<Real> first, second;
};

template <typename Real>
static __device__ __forceinline__ rg_pair<Real> load_pair(const rg_device_tensor &t, int64_t row, int64_t first,
                                                          int64_t second) {
  const int64_t step = t.stride[3];
  return {rg_load<Real>(t, row + first * step), rg_load<Real>(t, row + second * step)};
}

template <typename Real>
static __device__ __forceinline__ rg_pair<Real> load_table_pair(const rg_device_tensor &t, int64_t b, int64_t s,
                                                                int64_t first, int64_t second) {
  return {rg_load<Real>(t, rg_offset(t, b, s, first)), rg_load<Real>(t, rg_offset(t, b, s, second))};
}

/* Where a thread works: position s, columns `first` and `second`; heads group, group + groups, ... */
struct general_place {
  int64_t s, first, second;
  uint32_t lane, group, groups;
  bool active;
};

/* One batch of the heads of a thread, for one side. */
template <typename Real>
static __device__ __forceinline__ void do_side(const rope_apply_general_side &side, const general_place &at, int64_t b,
                                               rg_pair<Real> cosine, rg_pair<Real> sine, bool wants_cos, bool wants_sin,
                                               pair_sum<Real> *sums) {
  for (int64_t h = at.group; h < side.heads; h += at.groups) {
    const rg_pair<Real> g = load_pair<Real>(side.grad_y, rg_offset(side.grad_y, b, h, at.s), at.first, at.second);
    if (side.grad_x.data != NULL) {
      const rg_pair<Real> grad_x = rg_rotate_transpose<rg_once>(g, cosine, sine);
      const int64_t row = rg_offset(side.grad_x, b, h, at.s), step = side.grad_x.stride[3];
      rg_store(side.grad_x, row + at.first * step, grad_x.first);
      rg_store(side.grad_x, row + at.second * step, grad_x.second);
    }
    if (!wants_cos && !wants_sin) continue;
    const rg_pair<Real> x = load_pair<Real>(side.x, rg_offset(side.x, b, h, at.s), at.first, at.second);
    if (wants_cos) {
      add_product(sums[0].first, g.first, x.first);
      add_product(sums[0].second, g.second, x.second);
    }
    if (wants_sin) {
      add_product(sums[1].first, -g.first, x.second);
      add_product(sums[1].second, g.second, x.first);
    }
  }
}

/* Adds up what the groups have, in their order, and stores it. Every thread of the block comes here. */
template <typename Real>
static __device__ __forceinline__ void store_sum(const rg_device_tensor &grad_table, const general_place &at, int64_t b,
                                                 pair_sum<Real> *sum) {
  __shared__ pair_sum<Real> shared[ROPE_APPLY_GENERAL_THREADS];
  shared[threadIdx.x] = *sum;
  *sum = pair_sum<Real>();
  __syncthreads();
  if (at.group == 0 && at.active) {
    pair_sum<Real> total = shared[at.lane];
    const uint32_t lanes = ROPE_APPLY_GENERAL_THREADS / at.groups;
    for (uint32_t g = 1; g < at.groups; ++g) {
      total.first.add(shared[g * lanes + at.lane].first);
      total.second.add(shared[g * lanes + at.lane].second);
    }
    rg_store(grad_table, rg_offset(grad_table, b, at.s, at.first), total.first.value());
    rg_store(grad_table, rg_offset(grad_table, b, at.s, at.second), total.second.value());
  }
  __syncthreads();
}

template <typename Real>
static __device__ __forceinline__ void do_pairs(const rope_apply_general_params &p, int64_t b,
                                                const general_place &at) {
  const bool wants[2] = {p.grad_table[0].data != NULL, p.grad_table[1].data != NULL};
  const bool rotates = p.side[0].grad_x.data != NULL || p.side[1].grad_x.data != NULL;
  pair_sum<Real> sums[2] = {};
  for (const int64_t end = b + p.batches; b < end; ++b) {
    rg_pair<Real> cosine = {}, sine = {};
    if (at.active && rotates) {
      cosine = load_table_pair<Real>(p.table[0], b, at.s, at.first, at.second);
      sine = load_table_pair<Real>(p.table[1], b, at.s, at.first, at.second);
      if (p.same_half) sine = {sine.second, sine.first};
    }
    if (at.active) {
      do_side(p.side[0], at, b, cosine, sine, wants[0], wants[1], sums);
      do_side(p.side[1], at, b, cosine, sine, wants[0], wants[1], sums);
    }
    if (wants[0] && !p.sums_batch[0]) store_sum(p.grad_table[0], at, b, &sums[0]);
    if (wants[1] && !p.sums_batch[1]) store_sum(p.grad_table[1], at, b, &sums[1]);
  }
  if (wants[0] && p.sums_batch[0]) store_sum(p.grad_table[0], at, 0, &sums[0]);
  if (wants[1] && p.sums_batch[1]) store_sum(p.grad_table[1], at, 0, &sums[1]);
}

template <typename Word>
static __device__ __forceinline__ void copy_heads(const rope_apply_general_side &side, const general_place &at,
                                                  int64_t b) {
  for (int64_t h = at.group; h < side.heads; h += at.groups) {
    static_cast<Word *>(side.grad_x.data)[rg_offset(side.grad_x, b, h, at.s, at.first)] =
        static_cast<const Word *>(side.grad_y.data)[rg_offset(side.grad_y, b, h, at.s, at.first)];
  }
}

/* What lies past rotary_dim, bit for bit. */
static __device__ __forceinline__ void copy_side(const rope_apply_general_side &side, const general_place &at,
                                                 int64_t b) {
  if (side.grad_x.data == NULL) return;
  switch (side.grad_y.dtype) {
    case RG_F64:
      copy_heads<uint64_t>(side, at, b);
      break;
    case RG_F32:
      copy_heads<uint32_t>(side, at, b);
      break;
    default:
      copy_heads<uint16_t>(side, at, b);
  }
}

/* A task: some neighbouring pairs of a position, or some columns past rotary_dim. */
template <typename Real>
static __device__ __forceinline__ void general(const rope_apply_general_params &p) {
  const int64_t chunks = p.pair_chunks + p.pass_chunks;
  general_place at;
  at.group = threadIdx.x / p.lanes;
  at.lane = threadIdx.x - at.group * p.lanes;
  at.groups = ROPE_APPLY_GENERAL_THREADS / p.lanes;
  for (int64_t task = blockIdx.x; task < p.positions * chunks; task += gridDim.x) {
    const int64_t position = task / chunks, chunk = task - position * chunks;
    const int64_t b = position / p.seq_len;
    at.s = position - b * p.seq_len;
    if (chunk < p.pair_chunks) {
      const int64_t pair = chunk * p.lanes + at.lane, pairs = p.rotary_dim / 2;
      at.active = pair < pairs;
      at.first = p.interleaved ? 2 * pair : pair;
      at.second = p.interleaved ? 2 * pair + 1 : pair + pairs;
      do_pairs<Real>(p, b, at);
    } else {
      at.first = p.rotary_dim + (chunk - p.pair_chunks) * p.lanes + at.lane;
      if (at.first >= p.head_dim) continue;
      for (int64_t i = b; i < b + p.batches; ++i) {
        copy_side(p.side[0], at, i);
        copy_side(p.side[1], at, i);
      }
    }
  }
}

#endif
