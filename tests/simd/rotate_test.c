/* The rotation, its transpose and the gradients of its tables against the formulas in double. */
#include "src/simd/rotate.h"

#include "tests/simd/level_test.h"

enum { W = RG_VF_WIDTH, ROUNDS = 2000 };

typedef struct lane_pair {
  rg_real first[W], second[W];
} lane_pair;

static lane_pair random_pair(uint64_t *seed) {
  lane_pair p;
  for (int i = 0; i < W; i++) {
    p.first[i] = random_real(seed);
    p.second[i] = random_real(seed);
  }
  return p;
}

static rg_pair to_vectors(lane_pair p) { return (rg_pair){from_lanes(p.first), from_lanes(p.second)}; }

static lane_pair from_vectors(rg_pair p) {
  lane_pair lanes;
  to_lanes(lanes.first, p.first);
  to_lanes(lanes.second, p.second);
  return lanes;
}

/* Two products of numbers up to 1 and their sum: three roundings of at most half a unit each. */
static void assert_close(rg_real got, double want) {
  const double unit = rg_dtype_unit_roundoff(RG_REAL_DTYPE);
  if (!(fabs((double)got - want) <= 3 * unit)) fail_msg("%a, not %a", (double)got, want);
}

static void rotation_follows_its_formula(void **state) {
  (void)state;
  uint64_t seed = 8;
  for (int round = 0; round < ROUNDS; round++) {
    const lane_pair x = random_pair(&seed), c = random_pair(&seed), s = random_pair(&seed);
    const lane_pair y = from_vectors(rg_rotate(RG_DTYPE_NONE, to_vectors(x), to_vectors(c), to_vectors(s)));
    for (int i = 0; i < W; i++) {
      const double x1 = x.first[i], x2 = x.second[i];
      assert_close(y.first[i], x1 * c.first[i] - x2 * s.first[i]);
      assert_close(y.second[i], x2 * c.second[i] + x1 * s.second[i]);
    }
  }
}

static void transpose_follows_its_formula_in_both_pairings(void **state) {
  (void)state;
  uint64_t seed = 9;
  for (int round = 0; round < ROUNDS; round++) {
    const lane_pair g = random_pair(&seed), c = random_pair(&seed), s = random_pair(&seed);
    const rg_pair vg = to_vectors(g), vc = to_vectors(c), vs = to_vectors(s);
    const lane_pair adjoint = from_vectors(rg_rotate_transpose(RG_DTYPE_NONE, vg, vc, vs));
    const lane_pair same_half =
        from_vectors(rg_rotate_transpose(RG_DTYPE_NONE, vg, vc, (rg_pair){vs.second, vs.first}));
    for (int i = 0; i < W; i++) {
      const double g1 = g.first[i], g2 = g.second[i], c1 = c.first[i], c2 = c.second[i];
      const double s1 = s.first[i], s2 = s.second[i];
      assert_close(adjoint.first[i], g1 * c1 + g2 * s2);
      assert_close(adjoint.second[i], g2 * c2 - g1 * s1);
      assert_close(same_half.first[i], g1 * c1 + g2 * s1);
      assert_close(same_half.second[i], g2 * c2 - g1 * s2);
    }
  }
}

static void table_gradients_accumulate(void **state) {
  (void)state;
  uint64_t seed = 10;
  for (int round = 0; round < ROUNDS; round++) {
    const lane_pair g = random_pair(&seed), x = random_pair(&seed), before = random_pair(&seed);
    rg_pair grad_cos = to_vectors(before), grad_sin = grad_cos;
    rg_add_grad_cos(RG_DTYPE_NONE, to_vectors(g), to_vectors(x), &grad_cos);
    rg_add_grad_sin(RG_DTYPE_NONE, to_vectors(g), to_vectors(x), &grad_sin);
    const lane_pair dc = from_vectors(grad_cos), ds = from_vectors(grad_sin);
    for (int i = 0; i < W; i++) {
      const double g1 = g.first[i], g2 = g.second[i], x1 = x.first[i], x2 = x.second[i];
      assert_close(dc.first[i], before.first[i] + g1 * x1);
      assert_close(dc.second[i], before.second[i] + g2 * x2);
      assert_close(ds.first[i], before.first[i] - g1 * x2);
      assert_close(ds.second[i], before.second[i] + g2 * x1);
    }
  }
}

/* A product as the eager rounding has it. */
static rg_real rounded_product(rg_dtype dtype, rg_real a, rg_real b) {
  const rg_real product = a * b; /* rounded to rg_real, in which a framework multiplies 16-bit operands exactly */
  return (rg_real)rg_dtype_round(dtype, (double)product);
}

/* Bit for bit: each product is rounded to the dtype, their sum once to rg_real. */
static void eager_rounding_rounds_each_product(void **state) {
  (void)state;
  uint64_t seed = 11;
  for (int round = 0; round < ROUNDS; round++) {
    const lane_pair g = random_pair(&seed), c = random_pair(&seed), s = random_pair(&seed), x = random_pair(&seed);
    const rg_pair vg = to_vectors(g), vc = to_vectors(c), vs = to_vectors(s), vx = to_vectors(x);
    for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
      const rg_dtype dtype = level_dtypes[d];
      rg_pair y, grad_x, grad_cos = vc, grad_sin = vs;
      RG_WITH_DTYPE(dtype, T, y = rg_rotate(T, vx, vc, vs); grad_x = rg_rotate_transpose(T, vg, vc, vs);
                    rg_add_grad_cos(T, vg, vx, &grad_cos); rg_add_grad_sin(T, vg, vx, &grad_sin));
      const lane_pair dx = from_vectors(grad_x), dc = from_vectors(grad_cos), ds = from_vectors(grad_sin);
      const lane_pair rotated = from_vectors(y);
      for (int i = 0; i < W; i++) {
#define PRODUCT(a, b) rounded_product(dtype, a[i], b[i])
        assert_true(rotated.first[i] == PRODUCT(x.first, c.first) - PRODUCT(x.second, s.first));
        assert_true(rotated.second[i] == PRODUCT(x.second, c.second) + PRODUCT(x.first, s.second));
        assert_true(dx.first[i] == PRODUCT(g.first, c.first) + PRODUCT(g.second, s.second));
        assert_true(dx.second[i] == PRODUCT(g.second, c.second) - PRODUCT(g.first, s.first));
        assert_true(dc.first[i] == c.first[i] + PRODUCT(g.first, x.first));
        assert_true(dc.second[i] == c.second[i] + PRODUCT(g.second, x.second));
        assert_true(ds.first[i] == s.first[i] - PRODUCT(g.first, x.second));
        assert_true(ds.second[i] == s.second[i] + PRODUCT(g.second, x.first));
#undef PRODUCT
      }
    }
  }
}

int main(void) {
  if (!level_runs_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rotation_follows_its_formula),
      cmocka_unit_test(transpose_follows_its_formula_in_both_pairings),
      cmocka_unit_test(table_gradients_accumulate),
      cmocka_unit_test(eager_rounding_rounds_each_product),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
