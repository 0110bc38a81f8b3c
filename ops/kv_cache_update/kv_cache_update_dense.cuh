/* The tuned kernels of kv_cache_update: rows of contiguous columns, all of one dtype, rotate_half over the whole row.
 *
 * Blocks of two kinds make up one launch:
 *
 *   gather  takes new rows: reads the rows of the caches that they name, writes grad_key_states, grad_value_states,
 *           grad_cos and grad_sin, and zeroes the named rows of the caches' gradients;
 *   pass    takes cache rows, out of place only, and copies those that no entry of cache_position names.
 *
 * So each byte moves once, and neither kind waits for the other. In place, zeroing must wait until every reader of a
 * row is through: a row that several entries name is left to the block of the first of them (see gather_shared).
 *
 * Many of the suite's sizes take a few microseconds, in which the code itself must come from memory too: what is short
 * is fast here. */
#ifndef ROPEGRAD_OPS_KV_CACHE_UPDATE_DENSE_CUH
#define ROPEGRAD_OPS_KV_CACHE_UPDATE_DENSE_CUH

#include "ops/kv_cache_update/kv_cache_update_pieces.cuh"

namespace kv_cache_update {

typedef kv_cache_update_dense_params dense_params;

/* How a block that gathers is cut up. A thread has VECTOR columns of the first half of a row and the VECTOR columns of
 * the second half that they are paired with. */
template <typename T_, int LANES_, int ROWS_, int PARTS_, bool IN_PLACE_, bool ANY_SIZE_, int AHEAD_, int VECTOR_ = 4>
struct block_shape {
  typedef T_ T;
  enum {
    VECTOR = VECTOR_,
    LANES = LANES_, /* threads of a row; 0: known at run time, at most MOST_LANES */
    ROWS = ROWS_,   /* new rows of a block */
    PARTS = PARTS_, /* parts that the heads are dealt out to: part k has heads k, k + PARTS, ... */
    MOST_LANES = LANES_ > 0 ? LANES_ : KV_CACHE_UPDATE_MOST_LANES,
    THREADS = MOST_LANES * ROWS * PARTS, /* at most */
    QUADS = VECTOR / 4,
    IN_PLACE = IN_PLACE_,
    ANY_SIZE = ANY_SIZE_, /* as many batches a block and heads a part as there are, and outputs that are not wanted;
                             else one batch, one head and all outputs */
    AHEAD = AHEAD_        /* see for_each_position */
  };
  /* As many threads with 4 columns each, and so with registers to spare for more loops. */
  typedef block_shape<T, (LANES * VECTOR / 4), (ROWS * 4 / VECTOR), PARTS, IN_PLACE_, ANY_SIZE_, AHEAD, 4> light;
};

enum : uint32_t { NO_ROW = UINT32_MAX };

/* Terms that are added up in float32 before the sums go to double. */
enum { MOST_FLOAT_TERMS = 8 };

template <typename S>
static __device__ __forceinline__ bool wants_sums(const dense_params &p) {
  return is_wanted<S>(p.grad_cos) || is_wanted<S>(p.grad_sin);
}

/* Zeroes a row of the keys' and of the values' tensor. */
template <typename S>
static __device__ __forceinline__ void zero_rows(const place<S> &at, char *const *tensor, uint64_t offset) {
  const float zero[S::VECTOR] = {};
  pieces<S> zeros;
  zeros.first = zeros.second = rg_pack<typename S::T, S::VECTOR>(zero);
#pragma unroll
  for (int kind = 0; kind < 2; ++kind) {
    if (is_wanted<S>(tensor[kind])) store_pieces<S>(at.lanes, tensor[kind], offset, zeros);
  }
}

/* What a thread reads for one head of one new row. */
template <typename S>
struct head_pieces {
  pieces<S> grad_key, grad_value, key, cosine, sine;
};

/* What does not depend on the entry of cache_position. */
template <typename S>
static __device__ __forceinline__ void load_new_row(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                    uint32_t n, head_pieces<S> *head) {
  if (wants_sums<S>(p)) {
    head->key = load_pieces<RG_CACHE_STREAM, S>(at.lanes, p.key_states, offset_of<S>(p.key_states_at, at, b, h, n));
  }
  if (!is_wanted<S>(p.grad_states[KV_CACHE_UPDATE_KEY])) return;
  const uint64_t table = offset_of<S>(p.table_at, at, b, 0, n);
  head->cosine = load_pieces<RG_CACHE_DEFAULT, S>(at.lanes, p.cos, table);
  head->sine = load_pieces<RG_CACHE_DEFAULT, S>(at.lanes, p.sin, table);
}

template <typename S>
static __device__ __forceinline__ void load_cache_row(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                      uint32_t m, head_pieces<S> *head) {
  const uint64_t offset = offset_of<S>(p.grad_cache_at, at, b, h, m);
  if (wants_sums<S>(p) || is_wanted<S>(p.grad_states[KV_CACHE_UPDATE_KEY])) {
    head->grad_key = load_pieces<RG_CACHE_STREAM, S>(at.lanes, p.grad_cache[KV_CACHE_UPDATE_KEY], offset);
  }
  if (is_wanted<S>(p.grad_states[KV_CACHE_UPDATE_VALUE])) {
    head->grad_value = load_pieces<RG_CACHE_STREAM, S>(at.lanes, p.grad_cache[KV_CACHE_UPDATE_VALUE], offset);
  }
}

/* ---- sums over heads ---- */

/* What four pairs add to the gradients of the tables. */
struct quad_sums {
  float4 cos_first, cos_second, sin_first, sin_second;
};

static __device__ __forceinline__ float4 sum_of(const float4 &a, const float4 &b) {
  return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}

/* The parts' sums: [PARTS][ROWS][quad][lane]. Lanes are neighbours, so that neither stores nor loads meet in a bank. A
 * lane has 4 * QUADS quads of a row: of the first half of grad_cos, of its second half, then the same of grad_sin. */
template <typename S>
struct sum_space {
  float4 quad[S::PARTS * S::ROWS * 4 * S::QUADS * S::MOST_LANES];

  /* Adds to this thread's share, or begins it. */
  __device__ __forceinline__ void add(const place<S> &at, int q, const quad_sums &sums, bool begun) {
    const float4 more[4] = {sums.cos_first, sums.cos_second, sums.sin_first, sums.sin_second};
    float4 *mine = quad + (at.part * S::ROWS + at.row) * (4 * S::QUADS * at.lanes) + at.lane;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      float4 *sum = mine + (i * S::QUADS + q) * at.lanes;
      *sum = begun ? sum_of(*sum, more[i]) : more[i];
    }
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
 * aside that are NO_ROW. All threads of the block come here. */
template <typename S, typename F>
static __device__ __forceinline__ void store_sums(const dense_params &p, const place<S> &at, uint32_t b, F row_of,
                                                  const sum_space<S> *space) {
  typedef typename S::T T;
  const uint32_t row_quads = 4 * S::QUADS * at.lanes, part_quads = S::ROWS * row_quads;
  __syncthreads();
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < part_quads; i += blockDim.x) {
    const uint32_t quad = i / at.lanes % (4 * S::QUADS), lane = i % at.lanes;
    char *target = quad < 2 * S::QUADS ? p.grad_cos : p.grad_sin;
    const uint32_t n = row_of(i / row_quads);
    if (is_wanted<S>(target) && n != NO_ROW) {
      const float4 sum = S::ANY_SIZE && p.heads > MOST_FLOAT_TERMS ? add_parts<double, S>(space->quad + i, part_quads)
                                                                   : add_parts<float, S>(space->quad + i, part_quads);
      const float value[4] = {sum.x, sum.y, sum.z, sum.w};
      const uint32_t column = quad / S::QUADS % 2 * (at.lanes * S::VECTOR) + lane * S::VECTOR + quad % S::QUADS * 4;
      rg_store_packet<RG_CACHE_DEFAULT, T, 4>(
          reinterpret_cast<T *>(target + offset_of(p.grad_table_at, b, 0, n)) + column, rg_pack<T, 4>(value));
    }
    if (S::LANES > 0 && S::ROWS * 4 * S::QUADS * S::LANES <= S::THREADS) break;
  }
}

/* ---- cache_position as a whole ---- */

/* Are the entries of cache_position seen to be a run of consecutive rows, so that none is repeated? For the block. */
template <int AHEAD>
static __device__ __forceinline__ bool positions_run(const dense_params &p) {
  if (!p.positions_in_pairs) return false;
  const uint32_t first = position_of(p, 0);
  uint32_t wrong = first >> 31;
  for_each_position<AHEAD>(p, 0,
                           [&](uint32_t n, uint32_t lower, uint32_t upper) { wrong |= (lower ^ (first + n)) | upper; });
  return __syncthreads_and(wrong == 0);
}

/* Sets named[m - first_row] for each row m of `rows` ones that cache_position names. */
template <int AHEAD>
static __device__ __forceinline__ void mark_named(const dense_params &p, uint32_t first_row, uint32_t rows,
                                                  char *named) {
  if (p.positions_in_pairs) {
    return for_each_position<AHEAD>(p, 0, [&](uint32_t, uint32_t lower, uint32_t upper) {
      if (upper == 0 && lower - first_row < rows) named[lower - first_row] = 1;
    });
  }
#pragma unroll 1
  for (uint32_t i = threadIdx.x; i < p.new_rows; i += blockDim.x) {
    const uint32_t at = position_of(p, i) - first_row;
    if (at < rows) named[at] = 1;
  }
}

/* ---- gather ---- */

/* One head of new row n. What it adds to the gradients of the tables goes to add(q, sums), four pairs at a time. */
template <typename S, typename F>
static __device__ __forceinline__ void gather_head(const dense_params &p, const place<S> &at, uint32_t b, uint32_t h,
                                                   uint32_t n, const head_pieces<S> &head, F add) {
  const uint64_t state = offset_of<S>(p.grad_states_at, at, b, h, n);
  char *grad_key_states = p.grad_states[KV_CACHE_UPDATE_KEY], *grad_value_states = p.grad_states[KV_CACHE_UPDATE_VALUE];
  if (is_wanted<S>(grad_value_states)) store_pieces<S>(at.lanes, grad_value_states, state, head.grad_value);
  pieces<S> rotated;
#pragma unroll
  for (int q = 0; q < S::QUADS; ++q) {
    float g1[4], g2[4];
    unpack_quad(head.grad_key.first, q, g1);
    unpack_quad(head.grad_key.second, q, g2);
    if (is_wanted<S>(grad_key_states)) {
      float c1[4], c2[4], s1[4], s2[4], first[4], second[4];
      unpack_quad(head.cosine.first, q, c1);
      unpack_quad(head.cosine.second, q, c2);
      unpack_quad(head.sine.first, q, s1);
      unpack_quad(head.sine.second, q, s2);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const rg_pair<float> g = {g1[i], g2[i]}, c = {c1[i], c2[i]}, s = {s1[i], s2[i]};
        const rg_pair<float> back = rg_rotate_transpose<rg_once>(g, c, s);
        first[i] = back.first;
        second[i] = back.second;
      }
      pack_quad(&rotated.first, q, first);
      pack_quad(&rotated.second, q, second);
    }
    if (wants_sums<S>(p)) {
      float k1[4], k2[4];
      unpack_quad(head.key.first, q, k1);
      unpack_quad(head.key.second, q, k2);
      add(q, {make_float4(g1[0] * k1[0], g1[1] * k1[1], g1[2] * k1[2], g1[3] * k1[3]),
              make_float4(g2[0] * k2[0], g2[1] * k2[1], g2[2] * k2[2], g2[3] * k2[3]),
              make_float4(-g1[0] * k2[0], -g1[1] * k2[1], -g1[2] * k2[2], -g1[3] * k2[3]),
              make_float4(g2[0] * k1[0], g2[1] * k1[1], g2[2] * k1[2], g2[3] * k1[3])});
    }
  }
  if (is_wanted<S>(grad_key_states)) store_pieces<S>(at.lanes, grad_key_states, state, rotated);
}

/* This thread's heads of new row n, which is cache row m, of one batch; NO_ROW: none. With `zeroes` the cache row's
 * gradient becomes zero. All threads of the block come here. */
template <typename S, typename F>
static __device__ __forceinline__ void gather_rows(const dense_params &p, const place<S> &at, uint32_t b, uint32_t n,
                                                   int32_t m, bool zeroes, F row_of, sum_space<S> *space) {
  bool begun = false; /* this thread's sums */
#pragma unroll 1
  for (uint32_t h = at.part; h < p.heads && n != NO_ROW; h += S::PARTS) {
    if (m < 0) {
      zero_rows<S>(at, p.grad_states, offset_of<S>(p.grad_states_at, at, b, h, n));
      continue;
    }
    head_pieces<S> head;
    load_cache_row<S>(p, at, b, h, m, &head);
    load_new_row<S>(p, at, b, h, n, &head);
    gather_head<S>(p, at, b, h, n, head, [&](int q, const quad_sums &sums) { space->add(at, q, sums, begun); });
    if (zeroes) zero_rows<S>(at, p.grad_cache_input, offset_of<S>(p.grad_cache_input_at, at, b, h, m));
    begun = true;
  }
  if (!wants_sums<S>(p)) return;
#pragma unroll
  for (int q = 0; q < S::QUADS && !begun; ++q) space->add(at, q, quad_sums{}, false);
  store_sums<S>(p, at, b, row_of, space);
  __syncthreads();
}

/* Which rows a block gathers: ROWS new rows from first_row on, of batches [begin, end). */
template <typename S>
struct gather_range {
  uint32_t new_rows, first_row, begin, end;
  __device__ __forceinline__ explicit gather_range(const dense_params &p) {
    const uint32_t batches = divide(blockIdx.x, p.row_groups);
    new_rows = p.new_rows;
    first_row = (blockIdx.x - batches * p.row_groups.divisor) * S::ROWS;
    begin = S::ANY_SIZE ? batches * p.gather_batches : batches;
    end = S::ANY_SIZE ? min(begin + p.gather_batches, p.batches) : begin + 1;
  }
  __device__ __forceinline__ uint32_t operator()(uint32_t row) const {
    return first_row + row < new_rows ? first_row + row : static_cast<uint32_t>(NO_ROW);
  }
};

/* Does another entry name cache row m as well? For the block: of any of its rows. */
template <typename S>
static __device__ __forceinline__ bool names_shared_row(const dense_params &p, const place<S> &at, uint32_t n,
                                                        int32_t m) {
  bool shared = false;
#pragma unroll 1
  for (uint32_t i = at.part * at.lanes + at.lane; i < p.new_rows && m >= 0; i += at.lanes * S::PARTS) {
    shared = shared || (i != n && position_of(p, i) == m);
  }
  return __syncthreads_or(shared);
}

/* In place, for a block that names a row that other entries name too: its new rows one by one. One that is the first to
 * name its row takes all that name it, in turns of ROWS, and zeroes the row when all have read it; the others are left
 * to the block of the first. */
template <typename S>
static __device__ __forceinline__ void gather_shared(const dense_params &p, const place<S> &at,
                                                     const gather_range<S> &range, sum_space<S> *space) {
#pragma unroll 1
  for (uint32_t i = range.first_row; i < range.first_row + S::ROWS && i < p.new_rows; ++i) {
    const int32_t m = cache_row<S>(p, at, i);
    bool earlier = false;
#pragma unroll 1
    for (uint32_t k = threadIdx.x; k < i && m >= 0; k += blockDim.x) earlier = earlier || position_of(p, k) == m;
    if (__syncthreads_or(earlier)) continue;
    const uint32_t end = m < 0 ? i + 1 : p.new_rows;
#pragma unroll 1
    for (uint32_t base = i; base < end; base += S::ROWS) {
      auto row_of = [&](uint32_t row) {
        const uint32_t n = base + row;
        return n == i || (n < end && position_of(p, n) == m) ? n : static_cast<uint32_t>(NO_ROW);
      };
      const uint32_t n = row_of(at.row);
      if (!__syncthreads_or(n != NO_ROW)) continue;
#pragma unroll 1
      for (uint32_t b = range.begin; b < range.end; ++b) gather_rows<S>(p, at, b, n, m, false, row_of, space);
    }
    __syncthreads();
    if (m < 0 || at.row != 0) continue;
#pragma unroll 1
    for (uint32_t b = range.begin; b < range.end; ++b) {
#pragma unroll 1
      for (uint32_t h = at.part; h < p.heads; h += S::PARTS) {
        zero_rows<S>(at, p.grad_cache_input, offset_of<S>(p.grad_cache_input_at, at, b, h, m));
      }
    }
  }
}

/* In place, where the entries of cache_position are no run: the block's new rows from first_row on. Begins anew, so
 * that its caller need keep nothing. */
template <typename S>
static __device__ __noinline__ void gather_carefully(const dense_params &p, uint32_t first_row, sum_space<S> *space) {
  const place<S> at(p);
  gather_range<S> range(p);
  range.first_row = first_row;
  const uint32_t n = range(at.row);
  const int32_t m = n == NO_ROW ? -1 : cache_row<S>(p, at, n);
  if (names_shared_row<S>(p, at, n, m)) return gather_shared<S>(p, at, range, space);
#pragma unroll 1
  for (uint32_t b = range.begin; b < range.end; ++b) gather_rows<S>(p, at, b, n, m, true, range, space);
}

/* The same in as many turns as a light block needs. */
template <typename S>
static __device__ __forceinline__ void gather_carefully(const dense_params &p, const gather_range<S> &range,
                                                        sum_space<S> *space) {
  typedef typename S::light L;
#pragma unroll 1
  for (uint32_t row = 0; row < S::ROWS; row += L::ROWS) {
    gather_carefully<L>(p, range.first_row + row, reinterpret_cast<sum_space<L> *>(space));
  }
}

template <typename S>
static __device__ __forceinline__ void gather_block(const dense_params &p, sum_space<S> *space) {
  const place<S> at(p);
  const gather_range<S> range(p);
  const uint32_t n = range(at.row);
  if (S::ANY_SIZE) {
    const int32_t m = n == NO_ROW ? -1 : cache_row<S>(p, at, n);
    if (S::IN_PLACE && p.new_rows > 1 && !positions_run<S::AHEAD>(p)) return gather_carefully(p, range, space);
#pragma unroll 1
    for (uint32_t b = range.begin; b < range.end; ++b) gather_rows<S>(p, at, b, n, m, true, range, space);
    return;
  }
  /* Every load that can be, before anything waits. Which cache row it is is not known yet, but a prefill begins at row
   * 0, so that it is row n: a wrong guess costs a read, a right one saves the latency of memory. */
  const uint32_t b = range.begin, h = at.part;
  const bool has_head = n != NO_ROW && h < p.heads;
  head_pieces<S> head;
  int32_t m = -1;
  if (has_head) {
    if (n < p.cache_rows) load_cache_row<S>(p, at, b, h, n, &head);
    load_new_row<S>(p, at, b, h, n, &head);
    m = cache_row<S>(p, at, n);
  }
  if (S::IN_PLACE && p.new_rows > 1 && !positions_run<S::AHEAD>(p)) return gather_carefully(p, range, space);
  if (__builtin_expect(m != static_cast<int32_t>(n) && m >= 0, 0)) load_cache_row<S>(p, at, b, h, m, &head);
  if (__builtin_expect(m >= 0, 1)) {
    gather_head<S>(p, at, b, h, n, head, [&](int q, const quad_sums &sums) { space->add(at, q, sums, false); });
    zero_rows<S>(at, p.grad_cache_input, offset_of<S>(p.grad_cache_input_at, at, b, h, m));
  } else {
    if (has_head) zero_rows<S>(at, p.grad_states, offset_of<S>(p.grad_states_at, at, b, h, n));
#pragma unroll
    for (int q = 0; q < S::QUADS; ++q) space->add(at, q, quad_sums{}, false);
  }
  if (wants_sums<S>(p)) store_sums<S>(p, at, b, range, space);
}

/* ---- pass ---- */

/* A thread copies 16 bytes of a row of both caches, of HEADS heads at a time. */
template <typename S, int HEADS>
static __device__ __forceinline__ void pass_block(const dense_params &p, uint32_t block, char *named) {
  const uint32_t lanes =
      (S::LANES > 0 ? S::LANES : p.lanes) * static_cast<uint32_t>(2 * S::VECTOR * sizeof(typename S::T) / 16);
  const uint32_t group_rows = blockDim.x / lanes, lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
  const uint32_t all_heads = divide(block, p.pass_groups), b = divide(all_heads, p.head_groups);
  const uint32_t first_row = (block - all_heads * p.pass_groups.divisor) * group_rows, m = first_row + row;
  const uint32_t begin = (all_heads - b * p.head_groups.divisor) * p.pass_heads;
  const uint32_t end = min(begin + p.pass_heads, p.heads);
  uint64_t from = offset_of(p.grad_cache_at, b, begin, m) + 16 * lane;
  uint64_t to = offset_of(p.grad_cache_input_at, b, begin, m) + 16 * lane;
  uint4 value[HEADS][2];
  auto load = [&](uint32_t h) {
#pragma unroll
    for (int k = 0; k < HEADS; ++k) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
        if ((HEADS == 1 || h + k < end) && is_wanted<S>(p.grad_cache_input[kind])) {
          value[k][kind] = __ldcs(reinterpret_cast<const uint4 *>(p.grad_cache[kind] + from));
        }
      }
      from += p.grad_cache_at.head;
    }
  };
  const bool exists = row < group_rows && m < p.cache_rows;
  /* Whether the row is named is not known yet. In a prefill, which begins at row 0, the named ones are the first. */
  bool loaded = exists && m >= p.new_rows;
  if (loaded) load(begin);
  if (threadIdx.x < group_rows) named[threadIdx.x] = 0;
  __syncthreads();
  mark_named<S::AHEAD>(p, first_row, group_rows, named);
  __syncthreads();
  if (!exists || named[row] != 0) return;
#pragma unroll 1
  for (uint32_t h = begin; h < end; h += HEADS) {
    if (!loaded) load(h);
    loaded = false;
#pragma unroll
    for (int k = 0; k < HEADS; ++k) {
#pragma unroll
      for (int kind = 0; kind < 2; ++kind) {
        if ((HEADS == 1 || h + k < end) && is_wanted<S>(p.grad_cache_input[kind])) {
          *reinterpret_cast<uint4 *>(p.grad_cache_input[kind] + to) = value[k][kind];
        }
      }
      to += p.grad_cache_input_at.head;
    }
  }
}

template <typename S, int HEADS>
static __device__ __forceinline__ void out_of_place(const dense_params &p) {
  __shared__ sum_space<S> space;
  if (blockIdx.x < p.gather_blocks) {
    gather_block<S>(p, &space);
  } else {
    pass_block<S, HEADS>(p, blockIdx.x - p.gather_blocks, reinterpret_cast<char *>(&space));
  }
}

template <typename S>
static __device__ __forceinline__ void in_place(const dense_params &p) {
  __shared__ sum_space<S> space;
  gather_block<S>(p, &space);
}

}  // namespace kv_cache_update

#endif
