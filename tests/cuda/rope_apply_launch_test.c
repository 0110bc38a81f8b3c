/* The launch shapes of rope_apply's kernels for any size of rows: within what CUDA and the kernels allow, with a thread
 * for every head. */
#include "ops/rope_apply/rope_apply_forward_cuda.h"
#include "ops/rope_apply/rope_apply_forward_tune.h"
#include "ops/rope_apply/rope_apply_tune.h"
#include "tests/testing.h"

static void assert_fits(const rope_apply_vectors_sizes *n) {
  const rope_apply_vectors_shape shape = rope_apply_tune_vectors(n);
  const int64_t groups = shape.groups[0] + shape.groups[1];
  assert_in_range(groups, 1, ROPE_APPLY_VECTORS_GROUPS);
  assert_in_range(shape.lanes, 1, n->lanes);
  assert_in_range(shape.rows, 1, n->seq_len);
  assert_in_range(shape.lanes * shape.rows * groups, 1,
                  shape.how == ROPE_APPLY_LONG ? ROPE_APPLY_LONG_THREADS : ROPE_APPLY_VECTORS_THREADS);
  assert_int_equal(shape.how == ROPE_APPLY_PLAIN, n->plain);
  if (n->sums_batch && !n->plain) assert_int_equal(shape.how, ROPE_APPLY_LONG);
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(shape.groups[i] > 0, n->heads[i] > 0);
    if (shape.how == ROPE_APPLY_SHORT) assert_true(shape.groups[i] * ROPE_APPLY_HEADS_HELD >= n->heads[i]);
  }
}

static void backward_shapes_fit(void **state) {
  (void)state;
  static const int64_t heads[] = {0, 1, 3, 4, 8, 32, 71, 128, 255, 256, 300, 100000};
  static const int64_t lanes[] = {1, 2, 3, 10, 16, 32, 64, 512, 5000};
  static const int64_t lengths[] = {1, 2, 100, 512, 1 << 20};
  enum { HEADS = sizeof heads / sizeof *heads, LANES = sizeof lanes / sizeof *lanes, LENGTHS = 5, FLAGS = 4 };
  for (int q = 0; q < HEADS; ++q) {
    for (int k = q == 0; k < HEADS; ++k) { /* one side at least has heads */
      for (int rest = 0; rest < LANES * LENGTHS * FLAGS; ++rest) {
        const int64_t length = lengths[rest / FLAGS % LENGTHS];
        const rope_apply_vectors_sizes n = {.multiprocessors = 132,
                                            .positions = length * (rest % 2 ? 1 : 4),
                                            .seq_len = length,
                                            .heads = {heads[q], heads[k]},
                                            .lanes = lanes[rest / FLAGS / LENGTHS],
                                            .sums_batch = rest % 2,
                                            .plain = rest / 2 % 2};
        assert_fits(&n);
      }
    }
  }
}

static void forward_shapes_fit(void **state) {
  (void)state;
  for (int64_t lanes = 1; lanes <= 256; ++lanes) {
    for (int64_t length = 1; length < 1000; length = 3 * length + 1) {
      const rope_apply_forward_sizes n = {
          .cache_bytes = 60 << 20, .written_bytes = length << 15, .seq_len = length, .lanes = lanes};
      const rope_apply_forward_shape shape = rope_apply_forward_tune(&n);
      assert_in_range(shape.rows, 1, length);
      assert_in_range(shape.rows * shape.groups * lanes, 1, ROPE_APPLY_FORWARD_THREADS);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(backward_shapes_fit), cmocka_unit_test(forward_shapes_fit)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
