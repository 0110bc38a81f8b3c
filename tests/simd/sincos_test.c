/* Sine and cosine against libm in double: every exponent, densely near multiples of pi/2, huge angles, no numbers. */
#include "src/simd/sincos.h"

#include "tests/simd/level_test.h"

enum { W = RG_VF_WIDTH };

/* The largest absolute error seen, in units of the arithmetic's roundoff (2^-24 for float). */
typedef struct worst {
  double error, at;
} worst;

#if RG_LEVEL == RG_LEVEL_FLOAT64
/* libm's own errors, seen from long double */
static const double allowed = 1.0;
typedef long double wide;
enum { THINNED = 17 }; /* one angle in 17: long double is slow, and there is only a call to test */
static wide true_sine(double x) { return sinl(x); }
static wide true_cosine(double x) { return cosl(x); }
#else
/* The contract of sincos.h. */
static const double allowed = RG_VF_WIDTH == 1 ? 3.0 : 2.5;
typedef double wide;
enum { THINNED = 1 };
static wide true_sine(double x) { return sin(x); }
static wide true_cosine(double x) { return cos(x); }
#endif

static void note(worst *w, double angle, rg_real got, wide want) {
  const double error = fabs((double)(got - want)) / rg_dtype_unit_roundoff(RG_REAL_DTYPE);
  if (!(error <= w->error)) { /* not `>`, which a NaN would slip past */
    w->error = error;
    w->at = angle;
  }
}

static void check_vector(worst *w, const rg_real *angle) {
  rg_real sines[W], cosines[W];
  rg_vf sine, cosine;
  rg_vf_sincos(from_lanes(angle), &sine, &cosine);
  to_lanes(sines, sine);
  to_lanes(cosines, cosine);
  for (int i = 0; i < W; i++) {
    note(w, (double)angle[i], sines[i], true_sine((double)angle[i]));
    note(w, (double)angle[i], cosines[i], true_cosine((double)angle[i]));
  }
}

static void assert_allowed(worst w, const char *where) {
  print_message("%s: worst error %.3f u at %a\n", where, w.error, w.at);
  assert_true(w.error <= allowed);
}

static float float_of(uint32_t sign, uint32_t exponent, uint32_t fraction) {
  const uint32_t bits = sign << 31 | exponent << 23 | fraction;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static void every_exponent(void **state) {
  (void)state;
  worst w = {0, 0};
  uint64_t seed = 12;
  for (uint32_t exponent = 0; exponent < 255; exponent++) {
    for (int round = 0; round < 4096 / W / THINNED; round++) {
      rg_real angle[W];
      for (int i = 0; i < W; i++) {
        const uint64_t random = next_random(&seed);
        angle[i] = float_of((uint32_t)(random & 1), exponent, (uint32_t)(random >> 41));
      }
      check_vector(&w, angle);
    }
  }
  assert_allowed(w, "every exponent");
}

/* The float nearest to each multiple of pi/2 and of pi/4 (where the quarter changes) up to 1e6 rad, and its
 * neighbours. */
static void near_multiples_of_a_quarter_turn(void **state) {
  (void)state;
  const double pi = 0x1.921fb54442d18p+1;
  worst w = {0, 0};
  rg_real angle[W];
  int filled = 0;
  for (int k = 0; k * pi / 4 <= 1e6; k += THINNED) {
    const float nearest = (float)(k * pi / 4);
    const float near[3] = {nearest, nextafterf(nearest, 0.0f), nextafterf(nearest, INFINITY)};
    for (int i = 0; i < 3; i++) {
      angle[filled++] = k % 3 == 0 ? -near[i] : near[i];
      if (filled == W) {
        check_vector(&w, angle);
        filled = 0;
      }
    }
  }
  assert_allowed(w, "near multiples of pi/4");
}

/* Angles that positions times frequencies give: dense up to 1e6 rad. */
static void uniform_angles(void **state) {
  (void)state;
  worst w = {0, 0};
  uint64_t seed = 13;
  for (double range = 1.0; range <= 1e6; range *= 10) {
    for (int round = 0; round < 400000 / W / THINNED; round++) {
      rg_real angle[W];
      for (int i = 0; i < W; i++) angle[i] = (rg_real)range * random_real(&seed);
      check_vector(&w, angle);
    }
  }
  assert_allowed(w, "uniform angles");
}

/* A huge lane must neither be wrong nor disturb its neighbours. */
static void huge_angle_in_each_lane(void **state) {
  (void)state;
  static const float huge[] = {0x1p20f, 0x1.000002p20f, -0x1.000002p20f, 1e7f, -3e9f, 1e22f, 0x1.fffffep127f};
  worst w = {0, 0};
  for (size_t k = 0; k < sizeof huge / sizeof *huge; k++) {
    for (int lane = 0; lane < W; lane++) {
      rg_real angle[W];
      for (int i = 0; i < W; i++) angle[i] = (rg_real)(0.37 * i - 2.0);
      angle[lane] = huge[k];
      check_vector(&w, angle);
    }
  }
  assert_allowed(w, "huge angles");
}

/* The gradient of an angle: within 8 u of the magnitude of its two terms, and for a small angle the same bits whatever
 * the other lanes hold. */
static void gradient_of_an_angle(void **state) {
  (void)state;
  uint64_t seed = 12;
  for (int round = 0; round < 100000; round++) {
    rg_real gc[W], gs[W], x[W], got[W], small[W];
    for (int i = 0; i < W; i++) {
      gc[i] = random_real(&seed);
      gs[i] = random_real(&seed);
      x[i] = random_real(&seed) * (next_random(&seed) % 8 == 0 ? (rg_real)0x1p30 : (rg_real)1000);
    }
    to_lanes(got, rg_vf_grad_angle(from_lanes(gc), from_lanes(gs), from_lanes(x)));
    to_lanes(small, rg_vf_grad_small_angle(from_lanes(gc), from_lanes(gs), from_lanes(x)));
    for (int i = 0; i < W; i++) {
      const wide want = (wide)gs[i] * true_cosine((double)x[i]) - (wide)gc[i] * true_sine((double)x[i]);
      const double magnitude = fabs((double)gc[i]) + fabs((double)gs[i]);
      assert_true(fabs((double)(got[i] - want)) <= 8 * rg_dtype_unit_roundoff(RG_REAL_DTYPE) * magnitude);
      if (fabs((double)x[i]) <= (double)RG_SINCOS_LIMIT) assert_memory_equal(&got[i], &small[i], sizeof got[i]);
    }
  }
}

static void a_scaled_sincos_has_the_same_bits(void **state) {
  (void)state;
  uint64_t seed = 23;
  rg_real x[W], sines[W], cosines[W], scaled_sines[W], scaled_cosines[W];
  for (int n = 0; n < 20000; n++) {
    for (int i = 0; i < W; i++) x[i] = random_real(&seed) * (rg_real)(next_random(&seed) % 2 == 0 ? 0x1p17 : 10);
    const rg_real factor = random_real(&seed);
    rg_vf sine, cosine;
    rg_vf_sincos(from_lanes(x), &sine, &cosine);
    to_lanes(sines, rg_vf_mul(rg_vf_set1(factor), sine));
    to_lanes(cosines, rg_vf_mul(rg_vf_set1(factor), cosine));
    rg_vf_scaled_small_sincos(rg_vf_set1(factor), from_lanes(x), &sine, &cosine);
    to_lanes(scaled_sines, sine);
    to_lanes(scaled_cosines, cosine);
    for (int i = 0; i < W; i++) {
      if (!(fabs((double)x[i]) <= (double)RG_SINCOS_LIMIT)) continue;
      assert_memory_equal(&scaled_sines[i], &sines[i], sizeof sines[i]);
      assert_memory_equal(&scaled_cosines[i], &cosines[i], sizeof cosines[i]);
    }
  }
}

static void infinity_and_nan_give_nan(void **state) {
  (void)state;
  const rg_real no_angle[] = {(rg_real)INFINITY, -(rg_real)INFINITY, (rg_real)NAN};
  for (int k = 0; k < 3; k++) {
    for (int lane = 0; lane < W; lane++) {
      rg_real angle[W] = {0}, sines[W], cosines[W];
      angle[lane] = no_angle[k];
      rg_vf sine, cosine;
      rg_vf_sincos(from_lanes(angle), &sine, &cosine);
      to_lanes(sines, sine);
      to_lanes(cosines, cosine);
      for (int i = 0; i < W; i++) {
        assert_same_value((double)sines[i], i == lane ? (double)NAN : 0.0);
        assert_same_value((double)cosines[i], i == lane ? (double)NAN : 1.0);
      }
    }
  }
}

int main(void) {
  if (!level_runs_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_exponent),
      cmocka_unit_test(near_multiples_of_a_quarter_turn),
      cmocka_unit_test(uniform_angles),
      cmocka_unit_test(huge_angle_in_each_lane),
      cmocka_unit_test(gradient_of_an_angle),
      cmocka_unit_test(a_scaled_sincos_has_the_same_bits),
      cmocka_unit_test(infinity_and_nan_give_nan),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
