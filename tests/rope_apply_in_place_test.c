/* In place, rope_apply's forward pass leaves alone what lies past rotary_dim: it is neither written nor read, so the
 * memory there may be out of bounds for it. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ropegrad/rope_apply.h"
#include "tests/testing.h"

/* Two pages of one row: what is rotated, and what no access is allowed to. */
static float *row_with_forbidden_end(size_t page) {
  float *row = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  assert_ptr_not_equal(row, MAP_FAILED);
  assert_int_equal(mprotect((char *)row + page, page, PROT_NONE), 0);
  return row;
}

static void rotate(rg_context *context, const char *variant, rg_style style) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  const int64_t R = (int64_t)(page / sizeof(float)), D = 2 * R;
  float *row = row_with_forbidden_end(page), *tables = malloc(2 * page);
  assert_non_null(tables);
  for (int64_t j = 0; j < R; ++j) {
    row[j] = (float)j;
    tables[j] = 0;
    tables[R + j] = 1; /* a quarter turn: (x1, x2) to (-x2, x1) */
  }
  test_view q, cosine, sine;
  test_dense(&q, row, RG_F32, 4, (const int64_t[]){1, 1, 1, D});
  test_dense(&cosine, tables, RG_F32, 3, (const int64_t[]){1, 1, R});
  test_dense(&sine, tables + R, RG_F32, 3, (const int64_t[]){1, 1, R});
  const rg_rope_apply_forward_args args = {.q = &q.tensor,
                                           .cos = &cosine.tensor,
                                           .sin = &sine.tensor,
                                           .rotary_dim = R,
                                           .style = style,
                                           .in_place = true,
                                           .q_embed = &q.tensor};
  const rg_operator *op = rg_dev_operator(RG_OP_rope_apply, RG_FORWARD);
  if (rg_dev_run(context, op, variant, &args) != RG_OK) fail_msg("%s: %s", variant, rg_last_error(context));
  for (int64_t pair = 0; pair < R / 2; ++pair) {
    const int64_t first = style == RG_STYLE_INTERLEAVED ? 2 * pair : pair;
    const int64_t second = style == RG_STYLE_INTERLEAVED ? first + 1 : first + R / 2;
    if (row[first] != (float)-second || row[second] != (float)first) {
      fail_msg("%s: pair %d is (%g, %g)", variant, (int)pair, (double)row[first], (double)row[second]);
    }
  }
  free(tables);
  munmap(row, 2 * page);
}

static void what_passes_through_is_not_touched(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  int runs = 0;
  for (int v = 0; v < rg_dev_num_variants(); ++v) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (strncmp(info.name, "cpu.", 4) != 0 || info.status != RG_OK) continue;
    rotate(context, info.name, RG_STYLE_ROTATE_HALF);
    rotate(context, info.name, RG_STYLE_INTERLEAVED);
    ++runs;
  }
  assert_true(runs > 0);
  rg_context_destroy(context);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_passes_through_is_not_touched)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
