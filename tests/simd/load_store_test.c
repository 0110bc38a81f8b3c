/* Loads, stores and the conversions in them: every 16-bit pattern, every rounding boundary, and no byte touched that is
 * not an element. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <sys/mman.h>
#include <unistd.h>

#include "tests/simd/level_test.h"

enum { W = RG_VF_WIDTH };

static rg_vf load(rg_dtype dtype, const void *p) {
  rg_vf v;
  RG_WITH_DTYPE(dtype, T, v = rg_vf_load(T, p));
  return v;
}
static rg_vf load_part(rg_dtype dtype, const void *p, int64_t n) {
  rg_vf v;
  RG_WITH_DTYPE(dtype, T, v = rg_vf_load_part(T, p, n));
  return v;
}
static void store(rg_dtype dtype, void *p, rg_vf v) { RG_WITH_DTYPE(dtype, T, rg_vf_store(T, p, v)); }
static void store_part(rg_dtype dtype, void *p, rg_vf v, int64_t n) {
  RG_WITH_DTYPE(dtype, T, rg_vf_store_part(T, p, v, n));
}
static void stream(rg_dtype dtype, void *p, rg_vf v) { RG_WITH_DTYPE(dtype, T, rg_vf_stream(T, p, v)); }
static rg_vf round_to(rg_dtype dtype, rg_vf v) {
  rg_vf rounded;
  RG_WITH_DTYPE(dtype, T, rounded = rg_vf_round_to(T, v));
  return rounded;
}

#if RG_LEVEL != RG_LEVEL_FLOAT64
static void every_16bit_pattern_loads_and_stores_back(void **state) {
  (void)state;
  static const rg_dtype dtypes[] = {RG_BF16, RG_F16};
  for (int k = 0; k < 2; k++) {
    for (uint32_t first = 0; first < 65536; first += W) {
      uint16_t patterns[2 * W], back[2 * W]; /* twice: gcc also looks at the float32 branch */
      float got[W];
      for (uint32_t i = 0; i < W; i++) patterns[i] = (uint16_t)(first + i);
      const rg_vf v = load(dtypes[k], patterns);
      to_lanes(got, v);
      store(dtypes[k], back, v);
      for (int i = 0; i < W; i++) {
        const double want = rg_dtype_read(dtypes[k], patterns, i);
        assert_same_value((double)got[i], want);
        if (isnan(want)) {
          assert_true(isnan(rg_dtype_read(dtypes[k], back, i)));
        } else {
          assert_int_equal(back[i], patterns[i]);
        }
      }
    }
  }
}

/* Stores x in every lane and gives the pattern that all of them must have got. */
static uint16_t stored_pattern(rg_dtype dtype, float x) {
  uint16_t got[2 * W];
  store(dtype, got, rg_vf_set1(x));
  for (int i = 1; i < W; i++) assert_int_equal(got[i], got[0]);
  return got[0];
}

/* Between two neighbouring values of the dtype, the midpoint goes to the even pattern and the floats beside it to the
 * nearer value. Above the largest finite value the neighbour is what the next pattern would be with a larger exponent
 * range, and the pattern is infinity's. */
static void stores_round_to_nearest_even(void **state) {
  (void)state;
  static const struct {
    rg_dtype dtype;
    uint16_t infinity;
    float past_largest;
  } rows[] = {{RG_BF16, 0x7f80, INFINITY}, {RG_F16, 0x7c00, 65536.0f}};
  for (int k = 0; k < 2; k++) {
    for (uint16_t low = 0; low < rows[k].infinity; low++) {
      const uint16_t high = (uint16_t)(low + 1);
      const double a = rg_dtype_read(rows[k].dtype, &low, 0);
      double b = rg_dtype_read(rows[k].dtype, &high, 0);
      if (high == rows[k].infinity) b = rows[k].dtype == RG_BF16 ? 0x1p128 : 0x1p16;
      const float middle = (float)((a + b) / 2);
      assert_true((double)middle == (a + b) / 2);
      const uint16_t even = low & 1 ? high : low;
      for (uint16_t sign = 0; sign <= 0x8000; sign = (uint16_t)(sign + 0x8000)) {
        const float s = sign ? -1.0f : 1.0f;
        assert_int_equal(stored_pattern(rows[k].dtype, s * middle), sign | even);
        assert_int_equal(stored_pattern(rows[k].dtype, s * nextafterf(middle, 0.0f)), sign | low);
        assert_int_equal(stored_pattern(rows[k].dtype, s * nextafterf(middle, INFINITY)), sign | high);
        if (sign) break;
      }
    }
    assert_int_equal(stored_pattern(rows[k].dtype, INFINITY), rows[k].infinity);
    assert_int_equal(stored_pattern(rows[k].dtype, -INFINITY), 0x8000 | rows[k].infinity);
    assert_int_equal(stored_pattern(rows[k].dtype, 0x1.fffffep127f), rows[k].infinity);
  }
}

static void nan_of_any_payload_stays_nan(void **state) {
  (void)state;
  static const uint32_t patterns[] = {0x7f800001, 0x7fffffff, 0xff800001, 0xffffffff,
                                      0x7fc00000, 0x7f80ffff, 0x7fa00000};
  for (size_t k = 0; k < sizeof patterns / sizeof *patterns; k++) {
    for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
      uint32_t lanes[W];
      unsigned char got[W * sizeof(float)];
      for (int i = 0; i < W; i++) lanes[i] = patterns[k];
      store(level_dtypes[d], got, rg_vf_load(RG_F32, lanes));
      for (int i = 0; i < W; i++) assert_true(isnan(rg_dtype_read(level_dtypes[d], got, i)));
    }
  }
}
#endif

static void random_values_store_as_the_scalar_conversion_does(void **state) {
  (void)state;
  uint64_t seed = 2;
  for (int round = 0; round < 100000; round++) {
    rg_real x[W], rounded[W];
    for (int i = 0; i < W; i++) x[i] = random_bits_float(&seed);
    for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
      const rg_dtype dtype = level_dtypes[d];
      unsigned char got[W * sizeof(rg_real)], want[W * sizeof(rg_real)];
      store(dtype, got, from_lanes(x));
      to_lanes(rounded, round_to(dtype, from_lanes(x)));
      for (int i = 0; i < W; i++) {
        rg_dtype_write(dtype, want, i, (double)x[i]);
        assert_same_value(rg_dtype_read(dtype, got, i), rg_dtype_read(dtype, want, i));
        assert_same_value((double)rounded[i], rg_dtype_read(dtype, want, i));
      }
    }
  }
}

/* Whole pages with an inaccessible one on either side. */
typedef struct fenced {
  unsigned char *base, *begin, *end;
  size_t page;
} fenced;

static fenced fenced_create(void) {
  fenced f = {.page = (size_t)sysconf(_SC_PAGESIZE)};
  f.base = mmap(NULL, 3 * f.page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_true(f.base != MAP_FAILED);
  f.begin = f.base + f.page;
  f.end = f.begin + f.page;
  assert_int_equal(mprotect(f.base, f.page, PROT_NONE), 0);
  assert_int_equal(mprotect(f.end, f.page, PROT_NONE), 0);
  return f;
}

static void parts_touch_their_elements_alone(void **state) {
  (void)state;
  const fenced f = fenced_create();
  uint64_t seed = 3;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    for (int n = 0; n <= W; n++) {
      const size_t bytes = (size_t)n * rg_dtype_size(dtype);
      for (int at_end = 0; at_end < 2; at_end++) {
        unsigned char *p = at_end ? f.end - bytes : f.begin;
        rg_real x[W], got[W];
        for (int i = 0; i < W; i++) x[i] = (rg_real)rg_dtype_round(dtype, (double)random_real(&seed));
        memset(f.begin, 0xa5, f.page);
        store_part(dtype, p, from_lanes(x), n);
        for (int i = 0; i < n; i++) assert_same_value(rg_dtype_read(dtype, p, i), (double)x[i]);
        for (const unsigned char *q = f.begin; q < f.end; q++) {
          if (q < p || q >= p + bytes) assert_int_equal(*q, 0xa5);
        }
        to_lanes(got, load_part(dtype, p, n));
        for (int i = 0; i < W; i++) assert_same_value((double)got[i], i < n ? (double)x[i] : 0.0);
      }
    }
  }
  munmap(f.base, 3 * f.page);
}

static void whole_vectors_need_no_alignment(void **state) {
  (void)state;
  const fenced f = fenced_create();
  uint64_t seed = 4;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    for (int shift = 0; shift < W; shift++) {
      unsigned char *p = f.end - (size_t)(W + shift) * rg_dtype_size(dtype);
      rg_real x[W], got[W];
      for (int i = 0; i < W; i++) x[i] = (rg_real)rg_dtype_round(dtype, (double)random_real(&seed));
      memset(f.begin, 0xa5, f.page);
      store(dtype, p, from_lanes(x));
      for (const unsigned char *q = f.begin; q < f.end; q++) {
        if (q < p || q >= p + W * rg_dtype_size(dtype)) assert_int_equal(*q, 0xa5);
      }
      to_lanes(got, load(dtype, p));
      assert_memory_equal(got, x, sizeof x);
    }
  }
  munmap(f.base, 3 * f.page);
}

static void streamed_stores_write_what_stores_write(void **state) {
  (void)state;
  const fenced f = fenced_create();
  uint64_t seed = 5;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    const size_t bytes = W * rg_dtype_size(dtype);
    unsigned char *p = f.begin + 3 * bytes, want[W * sizeof(rg_real)];
    assert_true(rg_stream_aligned(dtype, p));
    assert_int_equal(rg_stream_aligned(dtype, p + rg_dtype_size(dtype)), W == 1);
    rg_real x[W];
    for (int i = 0; i < W; i++) x[i] = random_real(&seed);
    memset(f.begin, 0xa5, f.page);
    stream(dtype, p, from_lanes(x));
    rg_stream_fence();
    store(dtype, want, from_lanes(x));
    assert_memory_equal(p, want, bytes);
    for (const unsigned char *q = f.begin; q < f.end; q++) {
      if (q < p || q >= p + bytes) assert_int_equal(*q, 0xa5);
    }
  }
  munmap(f.base, 3 * f.page);
}

/* The order of two vectors is the level's own: it is read off elements that are their own indices. */
static void two_vectors_hold_each_element_once(rg_dtype dtype, int *lower, int *upper) {
  unsigned char memory[2 * W * sizeof(rg_real)];
  for (int i = 0; i < 2 * W; i++) rg_dtype_write(dtype, memory, i, i);
  rg_vf a, b;
  RG_WITH_DTYPE(dtype, T, rg_vf_load_two(T, memory, &a, &b));
  rg_real lanes[2][W];
  to_lanes(lanes[0], a);
  to_lanes(lanes[1], b);
  bool seen[2 * W] = {false};
  for (int i = 0; i < W; i++) {
    lower[i] = (int)lanes[0][i];
    upper[i] = (int)lanes[1][i];
    assert_false(seen[lower[i]]);
    seen[lower[i]] = true;
    assert_false(seen[upper[i]]);
    seen[upper[i]] = true;
  }
}

/* Elements of one dtype in the order of another: for tables beside gradients of 16 bits. */
static void two_vectors_come_in_the_order_of_another_dtype(void **state) {
  (void)state;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    int lower[W], upper[W];
    two_vectors_hold_each_element_once(level_dtypes[d], lower, upper);
    const bool splits = rg_vf_two_splits(level_dtypes[d]);
    for (int i = 0; i < W; i++) {
      assert_int_equal(lower[i], splits ? 2 * i : i);
      assert_int_equal(upper[i], splits ? 2 * i + 1 : W + i);
    }
    for (int k = 0; k < NUM_LEVEL_DTYPES; k++) {
      const rg_dtype dtype = level_dtypes[k];
      const size_t bytes = 2 * W * rg_dtype_size(dtype);
      unsigned char memory[2 * W * sizeof(rg_real)], back[2 * W * sizeof(rg_real)];
      for (int i = 0; i < 2 * W; i++) rg_dtype_write(dtype, memory, i, i);
      rg_vf a, b;
      RG_WITH_DTYPE(dtype, T, rg_vf_load_two_like(splits, T, memory, &a, &b));
      rg_real lanes[2][W];
      to_lanes(lanes[0], a);
      to_lanes(lanes[1], b);
      for (int i = 0; i < W; i++) {
        assert_int_equal((int)lanes[0][i], lower[i]);
        assert_int_equal((int)lanes[1][i], upper[i]);
      }
      RG_WITH_DTYPE(dtype, T, rg_vf_store_two_like(splits, T, back, a, b));
      assert_memory_equal(back, memory, bytes);
    }
  }
}

static void two_vectors_store_as_the_scalar_conversion_does(void **state) {
  (void)state;
  uint64_t seed = 8;
  _Alignas(64) unsigned char stored[2 * W * sizeof(rg_real)], streamed[2 * W * sizeof(rg_real)];
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    int lower[W], upper[W];
    two_vectors_hold_each_element_once(dtype, lower, upper);
    for (int round = 0; round < 50000; round++) {
      /* In every other round no NaN, so that what serves a vector without one is tried too. */
      rg_real x[2 * W], lanes[2][W];
      for (int i = 0; i < 2 * W; i++) {
        x[i] = random_bits_float(&seed);
        if (round % 2 == 0 && isnan(x[i])) x[i] = 1;
      }
      for (int i = 0; i < W; i++) {
        lanes[0][i] = x[lower[i]];
        lanes[1][i] = x[upper[i]];
      }
      const rg_vf a = from_lanes(lanes[0]), b = from_lanes(lanes[1]);
      RG_WITH_DTYPE(dtype, T, rg_vf_store_two(T, stored, a, b));
      RG_WITH_DTYPE(dtype, T, rg_vf_stream_two(T, streamed, a, b));
      rg_stream_fence();
      for (int i = 0; i < 2 * W; i++) {
        unsigned char want[sizeof(rg_real)];
        rg_dtype_write(dtype, want, 0, (double)x[i]);
        assert_same_value(rg_dtype_read(dtype, stored, i), rg_dtype_read(dtype, want, 0));
        assert_same_value(rg_dtype_read(dtype, streamed, i), rg_dtype_read(dtype, want, 0));
      }
    }
  }
}

int main(void) {
  if (!level_runs_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
#if RG_LEVEL != RG_LEVEL_FLOAT64
    cmocka_unit_test(every_16bit_pattern_loads_and_stores_back),
    cmocka_unit_test(stores_round_to_nearest_even),
    cmocka_unit_test(nan_of_any_payload_stays_nan),
#endif
    cmocka_unit_test(random_values_store_as_the_scalar_conversion_does),
    cmocka_unit_test(parts_touch_their_elements_alone),
    cmocka_unit_test(whole_vectors_need_no_alignment),
    cmocka_unit_test(streamed_stores_write_what_stores_write),
    cmocka_unit_test(two_vectors_come_in_the_order_of_another_dtype),
    cmocka_unit_test(two_vectors_store_as_the_scalar_conversion_does),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
