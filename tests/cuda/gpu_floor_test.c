/* On a GPU: every plain copy reads every byte that it should, writes every byte that it should, and no other. */
#include <stdio.h>
#include <stdlib.h>

#include "harness/cuda/gpu_state.h"
#include "tests/testing.h"

enum { SLACK = 1024, SHIFT = 256, UNTOUCHED = 0x5A5A };

static rg_context *context;
static rgh_cuda *cuda;

static unsigned xor_words(const unsigned char *memory, int64_t bytes) {
  unsigned folded = 0, word;
  for (int64_t i = 0; i + (int64_t)sizeof word <= bytes; i += sizeof word) {
    memcpy(&word, memory + i, sizeof word);
    folded ^= word;
  }
  return folded;
}

static void check_copy(rgh_floor *floor, int copy, const rgh_floor_bytes *bytes) {
  rgh_memory *memory = rgh_cuda_device(cuda)->memory;
  rgh_message why;
  unsigned seen;
  unsigned char *from, *to;
  int word;
  assert_int_equal(sscanf(floor->name[copy], "%d bytes", &word), 1);
  /* Where they lie, then on untouched memory. */
  if (!rgh_cuda_floor_observe(floor, copy, SHIFT, 2 * SHIFT, &seen, &from, &to, &why)) fail_msg("%s", why.text);
  const size_t around = ((size_t)bytes->write + 2 * SHIFT + 1) / 2 * 2;
  unsigned char *source = malloc((size_t)bytes->read + 1), *target = malloc(around);
  assert_true(source != NULL && target != NULL);
  if (!memory->download(memory, source, from, (size_t)bytes->read, &why) ||
      !memory->set(memory, to - SHIFT, UNTOUCHED, around, &why) ||
      !rgh_cuda_floor_observe(floor, copy, SHIFT, 2 * SHIFT, &seen, NULL, NULL, &why) ||
      !memory->download(memory, target, to - SHIFT, around, &why)) {
    fail_msg("%s", why.text);
  }
  if (seen != xor_words(source, bytes->read / word * word)) fail_msg("%s: not every word was read", floor->name[copy]);
  const unsigned char untouched = UNTOUCHED & 0xFF;
  for (int64_t i = 0; i < SHIFT; ++i) assert_int_equal(target[i], untouched);
  for (size_t i = SHIFT + (size_t)bytes->write; i < around; ++i) assert_int_equal(target[i], untouched);
  /* By chance one byte in 256 is as untouched ones are; 8 in a row are not. */
  for (int64_t i = 0; i + 8 <= bytes->write; ++i) {
    int left = 0;
    for (int b = 0; b < 8; ++b) left += target[SHIFT + i + b] == untouched;
    if (left == 8) fail_msg("%s: byte %lld was not written", floor->name[copy], (long long)i);
  }
  free(source);
  free(target);
}

static void every_copy_moves_every_byte(void **state) {
  (void)state;
  static const rgh_floor_bytes sizes[] = {{16, 16, SLACK},        {8, 72, SLACK},          {72, 8, SLACK},
                                          {100003, 50021, SLACK}, {50021, 100003, SLACK},  {1 << 20, 72, SLACK},
                                          {72, 1 << 20, SLACK},   {300000, 300000, SLACK}, {999999, 1000001, SLACK}};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    rgh_floor floor;
    rgh_message why;
    const rgh_device *device = rgh_cuda_device(cuda);
    if (!device->create_floor(device, &floor, &sizes[i], 1, &why)) fail_msg("%s", why.text);
    for (int c = 0; c < floor.num_copies; ++c) check_copy(&floor, c, &sizes[i]);
    floor.destroy(&floor);
  }
}

int main(void) {
  char why[256];
  rgh_message message;
  const DLDevice device = {kDLCUDA, 0};
  if (rg_device_status(device, why, sizeof why) != RG_OK) {
    printf("skipped: %s\n", why);
    return TEST_SKIPPED;
  }
  if (rg_context_create(&context, device, NULL) != RG_OK) return 1;
  if (!rgh_cuda_open(&cuda, context, 0, 64 << 20, 2, &message)) {
    fprintf(stderr, "%s\n", message.text);
    return 1;
  }
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_copy_moves_every_byte)};
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  rgh_cuda_close(cuda);
  rg_context_destroy(context);
  return failed;
}
