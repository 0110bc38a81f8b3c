/* src/spec/overlap.c against brute force on small random layouts, and on the layouts of real models. */
#include "src/spec/overlap.h"
#include "tests/testing.h"

enum { ARENA_BYTES = 4096, MAX_SIZE = 4, MAX_STRIDE = 9, LAYOUTS = 100000 };

/* Where the random layouts lie: addresses alone matter, no byte of it is read. */
static _Alignas(16) char arena[ARENA_BYTES];

static uint32_t next(uint32_t *state) {
  *state = *state * UINT32_C(1664525) + UINT32_C(1013904223);
  return *state >> 8;
}

static rg_tensor random_layout(uint32_t *state, bool may_repeat) {
  static const rg_dtype dtypes[] = {RG_F16, RG_F32, RG_F64};
  rg_tensor t = {.dtype = dtypes[next(state) % 3], .rank = (int32_t)(next(state) % (RG_MAX_RANK + 1))};
  for (int a = 0; a < t.rank; ++a) {
    t.shape[a] = next(state) % 40 == 0 ? 0 : 1 + next(state) % MAX_SIZE;
    t.stride[a] = (int64_t)(next(state) % (2 * MAX_STRIDE + 1)) - MAX_STRIDE;
    if (t.stride[a] == 0 && !may_repeat) t.stride[a] = 1;
  }
  /* The middle, give or take: with up to four axes of 3 * 9 elements of 8 bytes it stays inside. */
  t.data = arena + ARENA_BYTES / 2 + 8 * (next(state) % 32);
  return t;
}

/* Counts in `uses` how many elements touch each byte; true when one byte got two. */
static bool mark(const rg_tensor *t, unsigned char uses[ARENA_BYTES]) {
  bool twice = false;
  const int64_t size = (int64_t)rg_dtype_size(t->dtype);
  const int64_t elements = rg_tensor_elements(t);
  for (int64_t i = 0; i < elements; ++i) {
    int64_t rest = i, offset = 0;
    for (int a = t->rank - 1; a >= 0; --a) {
      offset += rest % t->shape[a] * t->stride[a];
      rest /= t->shape[a];
    }
    const int64_t byte = (char *)t->data - arena + offset * size;
    assert_in_range(byte, 0, ARENA_BYTES - 8);
    for (int64_t b = byte; b < byte + size; ++b) twice |= uses[b]++ > 0;
  }
  return twice;
}

static void random_layouts_agree_with_brute_force(void **state) {
  (void)state;
  uint32_t seed = 1;
  int self = 0, pair = 0;
  for (int i = 0; i < LAYOUTS; ++i) {
    const rg_tensor a = random_layout(&seed, i % 8 == 0), b = random_layout(&seed, true);
    unsigned char uses_a[ARENA_BYTES] = {0}, uses_b[ARENA_BYTES] = {0};
    const bool self_overlap = mark(&a, uses_a);
    mark(&b, uses_b);
    bool shared = false;
    for (int byte = 0; byte < ARENA_BYTES && !shared; ++byte) shared = uses_a[byte] && uses_b[byte];
    if (rg_overlaps_itself(&a) != self_overlap) fail_msg("layout %d: rg_overlaps_itself should be %d", i, self_overlap);
    if (rg_overlap(&a, &b) != shared) fail_msg("layout %d: rg_overlap should be %d", i, shared);
    if (rg_overlap(&b, &a) != shared) fail_msg("layout %d: rg_overlap should be %d, turned round", i, shared);
    self += self_overlap;
    pair += shared;
  }
  /* The draw must ask all four questions often. */
  assert_in_range(self, LAYOUTS / 10, LAYOUTS - LAYOUTS / 10);
  assert_in_range(pair, LAYOUTS / 10, LAYOUTS - LAYOUTS / 10);
}

static rg_tensor view(intptr_t byte_offset, rg_dtype dtype, int rank, const int64_t *shape, const int64_t *stride) {
  /* An address and no more: these layouts reach far past the arena. */
  rg_tensor t = {.data = (void *)((uintptr_t)arena + (uintptr_t)byte_offset), .dtype = dtype, .rank = rank};
  memcpy(t.shape, shape, sizeof *shape * (size_t)rank);
  memcpy(t.stride, stride, sizeof *stride * (size_t)rank);
  return t;
}

/* q, k and v of one buffer [B, S, 3, H, D], each seen as [B, H, S, D]: millions of elements, laced together, none
 * shared. One element further and they are. */
static void views_of_a_fused_qkv_buffer_are_apart(void **state) {
  (void)state;
  const int64_t B = 64, S = 8192, H = 96, D = 128, row = 3 * H * D;
  const int64_t shape[] = {B, H, S, D}, stride[] = {S * row, D, row, 1};
  rg_tensor part[3];
  for (int i = 0; i < 3; ++i) part[i] = view((intptr_t)(i * H * D * 2), RG_BF16, 4, shape, stride);
  for (int i = 0; i < 3; ++i) {
    assert_false(rg_overlaps_itself(&part[i]));
    assert_true(rg_overlap(&part[i], &part[i]));
    for (int j = 0; j < 3; ++j) assert_int_equal(rg_overlap(&part[i], &part[j]), i == j);
  }
  const rg_tensor shifted = view(2, RG_BF16, 4, shape, stride);
  assert_true(rg_overlap(&shifted, &part[0]));
  assert_true(rg_overlap(&shifted, &part[1]));
  assert_false(rg_overlap(&shifted, &part[2]));
}

static void even_and_odd_elements_are_apart(void **state) {
  (void)state;
  const int64_t shape[] = {INT64_C(1) << 40}, stride[] = {2};
  const rg_tensor even = view(0, RG_F32, 1, shape, stride), odd = view(4, RG_F32, 1, shape, stride);
  const rg_tensor between = view(2, RG_F32, 1, shape, stride);
  assert_false(rg_overlap(&even, &odd));
  assert_true(rg_overlap(&even, &between));
  assert_true(rg_overlap(&odd, &between));
}

static void an_expanded_tensor_overlaps_itself(void **state) {
  (void)state;
  const int64_t shape[] = {2, 3}, expanded[] = {0, 1}, once[] = {1, 3}, none[] = {0, 3};
  const rg_tensor repeated = view(0, RG_F32, 2, shape, expanded);
  assert_true(rg_overlaps_itself(&repeated));
  /* A stride of 0 along an axis of size 1 repeats nothing; an empty tensor has nothing to repeat. */
  const rg_tensor single = view(0, RG_F32, 2, once, expanded), empty = view(0, RG_F32, 2, none, expanded);
  assert_false(rg_overlaps_itself(&single));
  assert_false(rg_overlaps_itself(&empty));
  assert_false(rg_overlap(&empty, &repeated));
}

/* Five strides with no order among them and no solution, next to the full search's cost: the answer is the safe one,
 * and it comes at once. */
static void a_layout_too_tangled_to_decide_counts_as_overlapping(void **state) {
  (void)state;
  const int64_t shape[] = {5000, 5000, 5000, 5000};
  const int64_t even[] = {20000 * 2, 20002 * 2, 20006 * 2, 20018 * 2};
  const rg_tensor a = view(0, RG_F32, 4, shape, even), b = view(4, RG_F32, 4, shape, even);
  assert_true(rg_overlap(&a, &b));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_layouts_agree_with_brute_force),
      cmocka_unit_test(views_of_a_fused_qkv_buffer_are_apart),
      cmocka_unit_test(even_and_odd_elements_are_apart),
      cmocka_unit_test(an_expanded_tensor_overlaps_itself),
      cmocka_unit_test(a_layout_too_tangled_to_decide_counts_as_overlapping),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
