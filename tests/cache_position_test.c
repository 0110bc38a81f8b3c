/* What entries of cache_position do to a cache, in values that anyone can follow: every key is rotated by a quarter, so
 * that (x1, x2) becomes (-x2, x1). The suites compare the same rules with the reference. */
#include <stdio.h>

#include "ropegrad/operators.h"
#include "tests/testing.h"

enum { N = 4, M = 3, D = 2 };

static const uint32_t NAN_WITH_PAYLOAD = 0x7fa12345; /* a signalling one: arithmetic would make it quiet */

/* One head, N new rows, M cache rows. */
typedef struct update {
  rg_context *context;
  float key_input[M][D], value_input[M][D], keys[N][D], values[N][D], cosines[N][D], sines[N][D];
  float key_cache[M][D], value_cache[M][D];
  int64_t position[N];
  test_view view[9];
  rg_kv_cache_update_forward_args args;
} update;

static void fill(float (*row)[D], int rows, float first) {
  for (int r = 0; r < rows; ++r) {
    row[r][0] = first + (float)r;
    row[r][1] = first + (float)r + 0.5f;
  }
}

static void prepare(update *u, bool in_place, const int64_t position[N]) {
  static const int64_t cache[] = {1, 1, M, D}, states[] = {1, 1, N, D}, table[] = {1, N, D}, entries[] = {N};
  memset(u, 0, sizeof *u);
  assert_int_equal(rg_context_create(&u->context, TEST_CPU, NULL), RG_OK);
  fill(u->key_input, M, 10);
  fill(u->value_input, M, 20);
  fill(u->keys, N, 30);
  fill(u->values, N, 40);
  memcpy(&u->key_input[1][0], &NAN_WITH_PAYLOAD, sizeof NAN_WITH_PAYLOAD);
  for (int n = 0; n < N; ++n) u->sines[n][0] = u->sines[n][1] = 1;
  memcpy(u->position, position, sizeof u->position);
  test_dense(&u->view[0], u->key_input, RG_F32, 4, cache);
  test_dense(&u->view[1], u->value_input, RG_F32, 4, cache);
  test_dense(&u->view[2], u->keys, RG_F32, 4, states);
  test_dense(&u->view[3], u->values, RG_F32, 4, states);
  test_dense(&u->view[4], u->cosines, RG_F32, 3, table);
  test_dense(&u->view[5], u->sines, RG_F32, 3, table);
  test_dense(&u->view[6], u->position, RG_I64, 1, entries);
  test_dense(&u->view[7], u->key_cache, RG_F32, 4, cache);
  test_dense(&u->view[8], u->value_cache, RG_F32, 4, cache);
  u->args = (rg_kv_cache_update_forward_args){.key_cache_input = &u->view[0].tensor,
                                              .value_cache_input = &u->view[1].tensor,
                                              .key_states = &u->view[2].tensor,
                                              .value_states = &u->view[3].tensor,
                                              .cos = &u->view[4].tensor,
                                              .sin = &u->view[5].tensor,
                                              .cache_position = &u->view[6].tensor,
                                              .in_place = in_place,
                                              .key_cache = &u->view[in_place ? 0 : 7].tensor,
                                              .value_cache = &u->view[in_place ? 1 : 8].tensor};
}

/* source[m]: the new row that cache row m has; -1: it is as it was. */
static void the_cache_has(bool in_place, const int64_t position[N], const int source[M]) {
  update u, before;
  prepare(&u, in_place, position);
  before = u;
  if (rg_kv_cache_update_forward(u.context, &u.args) != RG_OK) fail_msg("%s", rg_last_error(u.context));
  for (int m = 0; m < M; ++m) {
    const float *key = in_place ? u.key_input[m] : u.key_cache[m];
    const float *value = in_place ? u.value_input[m] : u.value_cache[m];
    const int n = source[m];
    const float rotated[D] = {n < 0 ? 0 : -u.keys[n][1], n < 0 ? 0 : u.keys[n][0]};
    assert_memory_equal(key, n < 0 ? before.key_input[m] : rotated, D * sizeof *key);
    assert_memory_equal(value, n < 0 ? before.value_input[m] : u.values[n], D * sizeof *value);
  }
  rg_context_destroy(u.context);
}

static void in_both_modes(const int64_t position[N], const int source[M]) {
  the_cache_has(false, position, source);
  the_cache_has(true, position, source);
}

static void the_last_of_equal_entries_wins(void **state) {
  (void)state;
  in_both_modes((const int64_t[]){2, 0, 2, 0}, (const int[]){3, -1, 2});
  in_both_modes((const int64_t[]){2, 2, 2, 2}, (const int[]){-1, -1, 3});
  in_both_modes((const int64_t[]){1, 1, 0, 2}, (const int[]){2, 1, 3});
}

static void a_negative_entry_is_skipped(void **state) {
  (void)state;
  in_both_modes((const int64_t[]){-1, 0, INT64_MIN, 2}, (const int[]){1, -1, 3});
  in_both_modes((const int64_t[]){2, -1, -1, -1}, (const int[]){-1, -1, 0});
  in_both_modes((const int64_t[]){-1, -2, -3, -4}, (const int[]){-1, -1, -1});
}

static void an_entry_past_the_end_writes_nothing(void **state) {
  (void)state;
  static const int64_t bad[] = {M, M + 1, INT64_C(1) << 32, INT64_MAX};
  for (size_t k = 0; k < 2 * sizeof bad / sizeof bad[0]; ++k) {
    update u, before;
    char says[128];
    prepare(&u, k % 2 != 0, (const int64_t[]){0, 1, bad[k / 2], 2});
    before = u;
    assert_int_equal(rg_kv_cache_update_forward(u.context, &u.args), RG_ERR_RANGE);
    snprintf(says, sizeof says, "rg_kv_cache_update_forward: cache_position: entry 2 is %lld, expected less than",
             (long long)bad[k / 2]);
    assert_text_has(rg_last_error(u.context), says);
    assert_memory_equal(&u, &before, sizeof u);
    rg_context_destroy(u.context);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_last_of_equal_entries_wins),
      cmocka_unit_test(a_negative_entry_is_skipped),
      cmocka_unit_test(an_entry_past_the_end_writes_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
