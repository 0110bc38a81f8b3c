/* The tuned kernels of rotary_embedding: rows of 64 frequencies (D = 128) without gaps, every vector aligned to 16
 * bytes, LANES lanes a row with 64 / LANES frequencies each.
 *
 * At most of the suite's sizes all rows fit the GPU at once, and the time is that of one row: launch, loads,
 * arithmetic, exchange between lanes, store. So the first load waits for few instructions, all loads are asked for
 * before anything waits, and little remains to be done once the gradients have come: sines and cosines, multiplied by
 * the frequencies, are ready by then. */
#ifndef ROPEGRAD_OPS_ROTARY_EMBEDDING_D128_CUH
#define ROPEGRAD_OPS_ROTARY_EMBEDDING_D128_CUH

#include "ops/rotary_embedding/rotary_embedding_rows.cuh"

/* Loads that bypass the first-level cache: what passes is used once, and 25 MB of it took 10 % longer through the
 * cache (measured, H200). Relaxed, because the compiler would move other loads behind the test of the angles, where
 * they would wait for the angles to come (up to 40 % at the small sizes). */
__device__ __forceinline__ void load_now(const void *from, uint2 *word) {
  asm volatile("ld.relaxed.gpu.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
               : "=r"(word->x), "=r"(word->y)
               : "l"(from));
}
__device__ __forceinline__ void load_now(const void *from, uint4 *word) {
  asm volatile("ld.relaxed.gpu.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(word->x), "=r"(word->y), "=r"(word->z), "=r"(word->w)
               : "l"(from));
}

/* N neighbours of a row, in as few loads as they take. */
template <typename T, int N>
struct run {
  enum { BYTES = N * static_cast<int>(sizeof(T)), LOADS = BYTES > 16 ? BYTES / 16 : 1, EACH = N / LOADS };
  rg_packet<T, EACH> part[LOADS];

  __device__ __forceinline__ void load(const T *from) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) load_now(from + i * EACH, &part[i].word);
  }
  /* Through the first-level cache: what many rows share. */
  __device__ __forceinline__ void load_shared(const T *from) {
#pragma unroll
    for (int i = 0; i < LOADS; ++i) part[i] = rg_load_packet<RG_CACHE_DEFAULT, T, EACH>(from + i * EACH);
  }
  __device__ __forceinline__ float at(int i) const { return rg_to_real<float>(part[i / EACH].element[i % EACH]); }
};

/* Of two bfloat16 in a word each becomes a float by one instruction; the compiler takes two for the upper one. */
template <>
__device__ __forceinline__ float run<__nv_bfloat16, 4>::at(int i) const {
  const uint32_t pair = i < 2 ? part[0].word.x : part[0].word.y;
  return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}
template <>
__device__ __forceinline__ float run<__nv_bfloat16, 8>::at(int i) const {
  const uint4 &w = part[0].word;
  const uint32_t pair = i < 2 ? w.x : i < 4 ? w.y : i < 6 ? w.z : w.w;
  return __uint_as_float(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u);
}

__device__ __forceinline__ float from_lane(float x, int apart) { return __shfl_xor_sync(ALL_LANES, x, apart); }

/* The sum over a row's LANES lanes, the same in each. Three lanes are asked at once, so that few exchanges are waited
 * for one after the other. */
template <int LANES>
__device__ __forceinline__ float add_lanes(float sum) {
  int apart = LANES / 2;
#pragma unroll
  for (; apart > 1; apart /= 4) {
    const float second = from_lane(sum, apart), third = from_lane(sum, apart / 2),
                fourth = from_lane(sum, apart + apart / 2);
    sum = (sum + second) + (third + fourth);
  }
  return apart == 1 ? sum + from_lane(sum, 1) : sum;
}

/* Both halves of a row of gradients, from run `first` on. */
template <typename T, int N>
__device__ __forceinline__ void load_gradients(const void *tensor, uint32_t first, run<T, N> (&gradient)[2]) {
  const T *from = static_cast<const T *>(tensor) + static_cast<uint64_t>(first) * N;
  gradient[0].load(from);
  gradient[1].load(from + ROTARY_EMBEDDING_HALF);
}

/* GRADIENTS_LATER: they are asked for when the sines and cosines are made. A row takes longer, but where rows follow
 * each other on a multiprocessor, other rows fill the time, and less arithmetic is left for the end (3 % at 12 MB and
 * more; at one row a warp it would cost 40 %). */
template <typename T, int LANES, bool GRADIENTS_LATER>
__device__ __forceinline__ void d128(const rows_params &p) {
  enum { N = ROTARY_EMBEDDING_HALF / LANES };
  const row_place<LANES> at(p);
  /* The first run of N elements that the lane reads, counted from the tensor's start: the same in every tensor. */
  const uint32_t first = at.row * (2 * LANES) + at.lane;
  run<float, N> emb, inv_freq;
  run<T, N> grad_cos[2], grad_sin[2]; /* [0]: the first half of the row, [1]: the second */
  emb.load(p.emb + static_cast<uint64_t>(first) * N);
  if (!GRADIENTS_LATER) {
    load_gradients<T, N>(p.grad_cos, first, grad_cos);
    load_gradients<T, N>(p.grad_sin, first, grad_sin);
  }
  inv_freq.load_shared(frequencies(p, at.row, at.lane * N));

  float sine[N], cosine[N], largest = 0.0f; /* sine and cosine times the frequency */
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const float theta = emb.at(i);
    unsigned halves;
    rg_sincos_unsigned(theta, &sine[i], &cosine[i], &halves);
    /* An odd number of half turns changes the sign, here by an addition to the sign bit: one instruction. */
    const float factor = __uint_as_float(__float_as_uint(inv_freq.at(i)) + (halves << 31));
    sine[i] *= factor;
    cosine[i] *= factor;
    asm volatile("" : "+f"(sine[i]), "+f"(cosine[i])); /* or the compiler makes them behind the test */
    largest = fmaxf(largest, fabsf(theta));
  }
  if (__any_sync(ALL_LANES, largest > RG_SINCOS_LIMIT)) {
    redo_rows<T>(p, __ballot_sync(ALL_LANES, at.stores), at.row);
    return;
  }
  if (GRADIENTS_LATER) {
    load_gradients<T, N>(p.grad_cos, first, grad_cos);
    load_gradients<T, N>(p.grad_sin, first, grad_sin);
  }

  float of_sin = 0.0f, of_cos = 0.0f;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    of_sin = __fmaf_rn(grad_sin[0].at(i) + grad_sin[1].at(i), cosine[i], of_sin);
    of_cos = __fmaf_rn(grad_cos[0].at(i) + grad_cos[1].at(i), sine[i], of_cos);
  }
  const float sum = add_lanes<LANES>(of_sin - of_cos);
  if (at.stores) p.grad_position_ids[at.row] = p.scaling * sum;
  redo_if_not_finite<T>(p, at.stores, sum, at.row);
}

#endif
