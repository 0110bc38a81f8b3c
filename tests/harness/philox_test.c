/* The random numbers under every input: Philox4x32-10 against its authors' known answers, and the normal values made of
 * it against the moments and tails of the distribution. */
#include <math.h>

#include "harness/cases/draw.h"
#include "harness/cases/philox.h"
#include "tests/testing.h"

/* Random123, kat_vectors, lines "philox4x32 10". */
static const struct {
  uint32_t counter[4], key[2], expected[4];
} known[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_gives_the_known_answers(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof known / sizeof known[0]; ++i) {
    uint32_t counter[4];
    memcpy(counter, known[i].counter, sizeof counter);
    rgh_philox4x32_10(counter, known[i].key);
    assert_memory_equal(counter, known[i].expected, sizeof counter);
  }
}

static void a_chunk_is_made_of_philox_blocks(void **state) {
  (void)state;
  const rgh_stream stream = {{0x12345678, 0x9abcdef0}, 7};
  const uint64_t chunk = UINT64_C(0x500000003);
  uint32_t word[RGH_CHUNK];
  rgh_draw_words(&stream, chunk, word);
  for (uint32_t b = 0; b < RGH_CHUNK_BLOCKS; ++b) {
    uint32_t block[4] = {b, 3, 5, 7};
    rgh_philox4x32_10(block, stream.key);
    for (int w = 0; w < 4; ++w) assert_int_equal(word[w * RGH_CHUNK_BLOCKS + (int)b], block[w]);
  }
}

static void streams_differ_by_seed_and_by_every_name(void **state) {
  (void)state;
  const rgh_stream streams[] = {
      rgh_stream_of(1, "op", "case", "tensor", 0), rgh_stream_of(2, "op", "case", "tensor", 0),
      rgh_stream_of(1, "oq", "case", "tensor", 0), rgh_stream_of(1, "op", "casf", "tensor", 0),
      rgh_stream_of(1, "op", "case", "tensos", 0), rgh_stream_of(1, "op", "cas", "etensor", 0),
      rgh_stream_of(1, "op", "case", "tensor", 1),
  };
  enum { COUNT = sizeof streams / sizeof streams[0] };
  uint32_t word[COUNT][RGH_CHUNK];
  for (int i = 0; i < COUNT; ++i) {
    rgh_draw_words(&streams[i], 0, word[i]);
    for (int other = 0; other < i; ++other) assert_memory_not_equal(word[i], word[other], sizeof word[i]);
    assert_true(rgh_draw_bits(&streams[i], 0) != rgh_draw_bits(&streams[i], 1));
  }
}

/* Fixed, so that a change of the generator, by which every record's inputs would silently change, is noticed. */
static void normals_are_pinned(void **state) {
  (void)state;
  static const float expected[4] = {0x1.322822p-1f, -0x1.191acp+0f, 0x1.a06cb4p-3f, -0x1.df6e0ap-3f};
  const rgh_stream stream = rgh_stream_of(0, "op", "case", "tensor", 0);
  float value[RGH_CHUNK];
  rgh_draw_normals(&stream, 0, value);
  for (int i = 0; i < 4; ++i) assert_true(value[i * RGH_CHUNK_BLOCKS] == expected[i]);
}

/* Each pair of a chunk against the same transform in double. */
static void normals_are_the_box_muller_transform(void **state) {
  (void)state;
  const double turn = 2 * acos(-1.0);
  const rgh_stream stream = rgh_stream_of(3, "op", "case", "tensor", 0);
  for (uint64_t chunk = 0; chunk < 400; ++chunk) {
    uint32_t word[RGH_CHUNK];
    float value[RGH_CHUNK];
    rgh_draw_words(&stream, chunk, word);
    rgh_draw_normals(&stream, chunk, value);
    for (int b = 0; b < RGH_CHUNK / 2; ++b) {
      const int first = b < RGH_CHUNK_BLOCKS ? b : b + RGH_CHUNK_BLOCKS, second = first + RGH_CHUNK_BLOCKS;
      const double radius = sqrt(-2 * log(((word[first] >> 8) + 1) * 0x1p-24));
      const double angle = turn * (word[second] * 0x1p-32);
      assert_true(fabs(value[first] - radius * cos(angle)) < 2e-6);
      assert_true(fabs(value[second] - radius * sin(angle)) < 2e-6);
    }
  }
}

/* With 2^20 samples of a fixed seed, each statistic lies within 5 of its standard deviations. */
static void normals_have_the_moments_of_the_distribution(void **state) {
  (void)state;
  enum { CHUNKS = 4096 };
  const double n = (double)CHUNKS * RGH_CHUNK;
  const rgh_stream stream = rgh_stream_of(1, "op", "case", "tensor", 0);
  double sum[5] = {0}, neighbours = 0, previous = 0;
  int64_t beyond[4] = {0}; /* |value| > 1, 2, 3, 4 */
  float value[RGH_CHUNK];
  for (uint64_t chunk = 0; chunk < CHUNKS; ++chunk) {
    rgh_draw_normals(&stream, chunk, value);
    for (int i = 0; i < RGH_CHUNK; ++i) {
      const double x = value[i];
      for (int power = 1; power <= 4; ++power) sum[power] += pow(x, power);
      neighbours += x * previous;
      previous = x;
      for (int k = 0; k < 4; ++k) beyond[k] += fabs(x) > k + 1;
    }
  }
  const double s = 5 / sqrt(n);
  assert_true(fabs(sum[1] / n) < s);
  assert_true(fabs(sum[2] / n - 1) < s * sqrt(2.0));
  assert_true(fabs(sum[3] / n) < s * sqrt(15.0));
  assert_true(fabs(sum[4] / n - 3) < s * sqrt(96.0));
  assert_true(fabs(neighbours / n) < s);
  for (int k = 0; k < 4; ++k) {
    const double tail = erfc((k + 1) / sqrt(2.0));
    assert_true(fabs((double)beyond[k] / n - tail) < s * sqrt(tail));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(philox_gives_the_known_answers),
      cmocka_unit_test(a_chunk_is_made_of_philox_blocks),
      cmocka_unit_test(streams_differ_by_seed_and_by_every_name),
      cmocka_unit_test(normals_are_pinned),
      cmocka_unit_test(normals_are_the_box_muller_transform),
      cmocka_unit_test(normals_have_the_moments_of_the_distribution),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
