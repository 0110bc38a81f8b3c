/* The floor is honest: every copy reads every byte that it should, writes every byte that it should, and no other. */
#include <stdlib.h>

#include "harness/base/statistics.h"
#include "harness/timing/floor_cpu.h"
#include "tests/testing.h"

enum { SLACK = 1024, SHIFT = 256, THREADS = 3, UNTOUCHED = 0x5A };

static uint64_t xor_words(const unsigned char *memory, int64_t bytes) {
  uint64_t folded = 0, word;
  for (int64_t i = 0; i + (int64_t)sizeof word <= bytes; i += sizeof word) {
    memcpy(&word, memory + i, sizeof word);
    folded ^= word;
  }
  return folded;
}

static void fill_random(unsigned char *memory, int64_t bytes) {
  uint32_t state = 12345;
  for (int64_t i = 0; i < bytes; ++i) {
    state = state * 1664525 + 1013904223;
    memory[i] = (unsigned char)(state >> 24);
  }
}

/* What was read is what was stored and what was seen: every byte that a copy reads is in one of the two, and what it
 * writes besides is zero. */
static void check_copy(rgh_cpu_floor *floor, int copy) {
  const char *name = floor->copy[copy].name;
  unsigned char *target = floor->target + SHIFT;
  memset(floor->target, UNTOUCHED, (size_t)floor->write_bytes + SLACK);
  memset(floor->seen, 0, THREADS * RGH_LINE_BYTES);
  rgh_cpu_floor_run(floor, copy, 2 * SHIFT, SHIFT);
  uint64_t seen = 0;
  for (int t = 0; t < THREADS; ++t) seen ^= floor->seen[t * RGH_LINE_BYTES / (int)sizeof seen];
  if ((seen ^ xor_words(target, floor->write_bytes)) != xor_words(floor->source + 2 * SHIFT, floor->read_bytes)) {
    fail_msg("%s: %lld bytes to read, %lld to write: not all were read", name, (long long)floor->read_bytes,
             (long long)floor->write_bytes);
  }
  /* One byte in 256 of the source is UNTOUCHED by chance; a line left out would be 64 in a row. */
  for (int64_t i = 0; i + RGH_LINE_BYTES <= floor->write_bytes; i += RGH_LINE_BYTES) {
    int left = 0;
    for (int b = 0; b < RGH_LINE_BYTES; ++b) left += target[i + b] == UNTOUCHED;
    if (left == RGH_LINE_BYTES) fail_msg("%s: line at byte %lld was not written", name, (long long)i);
  }
  for (int64_t i = 0; i < SHIFT; ++i) assert_int_equal(floor->target[i], UNTOUCHED);
  for (int64_t i = floor->write_bytes; i < floor->write_bytes + SHIFT; ++i) assert_int_equal(target[i], UNTOUCHED);
}

static void every_copy_moves_every_byte(void **state) {
  (void)state;
  static const int64_t lines[][2] = {{0, 0},      {1, 0},      {0, 1},       {1, 1},      {3, 2},
                                     {2, 3},      {64, 64},    {65, 63},     {1000, 1},   {1, 1000},
                                     {500, 1500}, {1500, 500}, {4096, 2048}, {9000, 3001}};
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; ++i) {
    rgh_cpu_floor floor;
    rgh_message why;
    if (!rgh_cpu_floor_create(&floor, lines[i][0] * RGH_LINE_BYTES, lines[i][1] * RGH_LINE_BYTES, SLACK, THREADS,
                              &why)) {
      fail_msg("%s", why.text);
    }
    fill_random(floor.source, floor.read_bytes + SLACK);
    assert_true(floor.num_copies > 0);
    for (int c = 0; c < floor.num_copies; ++c) check_copy(&floor, c);
    rgh_cpu_floor_destroy(&floor);
  }
}

static void odd_bytes_are_moved_too(void **state) {
  (void)state;
  rgh_cpu_floor floor;
  rgh_message why;
  if (!rgh_cpu_floor_create(&floor, 3 * RGH_LINE_BYTES + 7, 2 * RGH_LINE_BYTES + 5, SLACK, 1, &why)) {
    fail_msg("%s", why.text);
  }
  for (int c = 0; c < floor.num_copies; ++c) {
    /* Only the last byte to be read is not zero: it must turn up in what was seen. */
    memset(floor.source, 0, (size_t)floor.read_bytes + SLACK);
    floor.source[floor.read_bytes - 1] = 0x81;
    memset(floor.target, UNTOUCHED, (size_t)floor.write_bytes + SLACK);
    rgh_cpu_floor_run(&floor, c, 0, 0);
    assert_int_equal(floor.seen[0], 0x81);
    for (int64_t i = 0; i < floor.write_bytes; ++i) assert_int_not_equal(floor.target[i], UNTOUCHED);
    assert_int_equal(floor.target[floor.write_bytes], UNTOUCHED);
  }
  rgh_cpu_floor_destroy(&floor);
}

/* The narrowest vectors are in no list where the CPU has wider ones, so they are run by themselves. */
static void baseline_copies_move_every_byte(void **state) {
  (void)state;
  enum { READS = 300, WRITES = 130 };
  unsigned char *source = aligned_alloc(RGH_LINE_BYTES, READS * RGH_LINE_BYTES);
  unsigned char *target = aligned_alloc(RGH_LINE_BYTES, WRITES * RGH_LINE_BYTES);
  assert_non_null(source);
  assert_non_null(target);
  fill_random(source, READS * RGH_LINE_BYTES);
  const rgh_floor_kernel kernels[] = {rgh_floor_kernels_baseline.ordinary, rgh_floor_kernels_baseline.streaming};
  for (int k = 0; k < 2; ++k) {
    if (kernels[k] == NULL) continue;
    const rgh_floor_job job = {source, target, READS, WRITES, .block_lines = 16, .streams = 2};
    const uint64_t seen = kernels[k](&job);
    assert_true((seen ^ xor_words(target, WRITES * RGH_LINE_BYTES)) == xor_words(source, READS * RGH_LINE_BYTES));
  }
  free(source);
  free(target);
}

static void statistics(void **state) {
  (void)state;
  const double values[] = {4, 1, 3, 2, 10};
  assert_true(rgh_median(values, 5) == 3);
  assert_true(rgh_median(values, 4) == 2.5);
  assert_true(rgh_median(values, 1) == 4);
  assert_true(rgh_mean(values, 5) == 4);
  assert_true(rgh_spread(values, 5) == (10.0 - 1.0) / 4.0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_copy_moves_every_byte),
      cmocka_unit_test(odd_bytes_are_moved_too),
      cmocka_unit_test(baseline_copies_move_every_byte),
      cmocka_unit_test(statistics),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
