/* The harness's side of a GPU, over a driver that runs nothing (fake_driver.h): memory by way of page-locked pieces,
 * the pool, timers, facts, and what is said when something is missing. */
#include <stdlib.h>

#include "harness/cuda/gpu_state.h"
#include "tests/cuda/fake_driver.h"
#include "tests/testing.h"

static fake_driver *driver;

static int find_driver(void **state) {
  (void)state;
  driver = fake_driver_find();
  return driver != NULL ? 0 : -1;
}

typedef struct fixture {
  rg_context *context;
  rgh_cuda *cuda;
  rgh_memory *memory;
} fixture;

static void start(fixture *f, size_t pool_bytes) {
  rgh_message why;
  driver->fails = NULL;
  driver->compute_capability = 90;
  driver->launches = 0;
  assert_int_equal(rg_context_create(&f->context, (DLDevice){kDLCUDA, 1}, NULL), RG_OK);
  if (!rgh_cuda_open(&f->cuda, f->context, 1, pool_bytes, 2, &why)) fail_msg("%s", why.text);
  f->memory = rgh_cuda_device(f->cuda)->memory;
}

static void stop(fixture *f) {
  driver->fails = NULL;
  rgh_cuda_close(f->cuda);
  assert_null(rg_dev_cuda_stream(f->context));
  rg_context_destroy(f->context);
  assert_int_equal(driver->pushed, 0);
  assert_int_equal(driver->allocations, 0);
}

static void bytes_go_there_and_back(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  start(&f, 0);
  assert_int_equal(f.memory->device.device_type, kDLCUDA);
  assert_int_equal(f.memory->device.device_id, 1);
  assert_ptr_equal(rg_dev_cuda_stream(f.context), f.cuda->stream);
  static const size_t sizes[] = {0,
                                 1,
                                 4096,
                                 RGH_STAGE_BYTES - 1,
                                 RGH_STAGE_BYTES,
                                 RGH_STAGE_BYTES + 1,
                                 2 * RGH_STAGE_BYTES,
                                 3 * RGH_STAGE_BYTES + 12345};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; ++i) {
    unsigned char *sent = malloc(sizes[i] + 1), *got = calloc(1, sizes[i] + 1);
    unsigned char *there = f.memory->allocate(f.memory, sizes[i] + 1),
                  *copy = f.memory->allocate(f.memory, sizes[i] + 1);
    assert_true(sent != NULL && got != NULL && there != NULL && copy != NULL);
    for (size_t b = 0; b < sizes[i]; ++b) sent[b] = (unsigned char)(b * 2654435761u >> 13);
    assert_true(f.memory->upload(f.memory, there, sent, sizes[i], &why));
    assert_true(f.memory->copy(f.memory, copy, there, sizes[i], &why));
    assert_true(f.memory->download(f.memory, got, copy, sizes[i], &why));
    assert_memory_equal(got, sent, sizes[i] + 0);
    f.memory->release(f.memory, there);
    f.memory->release(f.memory, copy);
    free(sent);
    free(got);
  }
  stop(&f);
}

/* Whatever the address and the number of 16-bit words. */
static void words_are_set_and_no_other(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  start(&f, 0);
  unsigned char *there = f.memory->allocate(f.memory, 64), got[64];
  for (size_t begin = 2; begin < 8; begin += 2) {
    for (size_t bytes = 0; bytes <= 12; bytes += 2) {
      memset(there, 0x11, sizeof got); /* the fake device's memory is the host's */
      assert_true(f.memory->set(f.memory, there + begin, 0xFFF5, bytes, &why));
      assert_true(f.memory->download(f.memory, got, there, sizeof got, &why));
      for (size_t b = 0; b < sizeof got; ++b) {
        const bool inside = b >= begin && b < begin + bytes;
        assert_int_equal(got[b], !inside ? 0x11 : b % 2 == 0 ? 0xF5 : 0xFF);
      }
    }
  }
  f.memory->release(f.memory, there);
  stop(&f);
}

static void the_pool_is_taken_once(void **state) {
  (void)state;
  fixture f;
  start(&f, 64 << 10);
  const int taken = driver->allocations;
  unsigned char *first = NULL;
  for (int round = 0; round < 3; ++round) {
    unsigned char *a = f.memory->allocate(f.memory, 5000), *b = f.memory->allocate(f.memory, 40000);
    assert_int_equal(driver->allocations, taken);
    assert_true(b >= a + 5000);
    assert_int_equal((b - a) % RGH_MEMORY_ALIGNMENT, 0);
    if (round == 0) first = a;
    assert_ptr_equal(a, first);                             /* empty again after each round */
    unsigned char *c = f.memory->allocate(f.memory, 40000); /* no room: by itself */
    assert_int_equal(driver->allocations, taken + 1);
    f.memory->release(f.memory, c);
    assert_int_equal(driver->allocations, taken);
    f.memory->release(f.memory, a);
    f.memory->release(f.memory, b);
    f.memory->release(f.memory, NULL);
  }
  stop(&f);
  /* Without room for the pool it is left out. */
  driver->fails = NULL;
  assert_int_equal(rg_context_create(&f.context, (DLDevice){kDLCUDA, 1}, NULL), RG_OK);
  driver->fails = FAKE_NAME(cuMemAlloc);
  driver->fails_after = 0;
  driver->fails_with = CUDA_ERROR_OUT_OF_MEMORY;
  rgh_message why;
  assert_true(rgh_cuda_open(&f.cuda, f.context, 1, 64 << 10, 2, &why));
  f.memory = rgh_cuda_device(f.cuda)->memory;
  assert_null(f.memory->allocate(f.memory, 16));
  driver->fails = NULL;
  unsigned char *alone = f.memory->allocate(f.memory, 16);
  assert_non_null(alone);
  f.memory->release(f.memory, alone);
  stop(&f);
}

static void driver_errors_are_told(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  unsigned char byte = 0;
  start(&f, 0);
  unsigned char *there = f.memory->allocate(f.memory, 16);
  driver->fails_after = 0;
  driver->fails_with = CUDA_ERROR_ILLEGAL_ADDRESS;
  driver->fails = FAKE_NAME(cuMemcpyHtoDAsync);
  assert_false(f.memory->upload(f.memory, there, &byte, 1, &why));
  assert_text_has(why.text, "copying to the GPU: ");
  driver->fails = FAKE_NAME(cuMemcpyDtoHAsync);
  assert_false(f.memory->download(f.memory, &byte, there, 1, &why));
  assert_text_has(why.text, "copying from the GPU: ");
  driver->fails = FAKE_NAME(cuMemsetD32Async);
  assert_false(f.memory->set(f.memory, there, 0, 16, &why));
  assert_text_has(why.text, "setting memory of the GPU: ");
  driver->fails = NULL;
  f.memory->release(f.memory, there);
  stop(&f);
}

static bool launch_nothing(void *argument, rgh_message *why) {
  (void)why;
  ++*(int *)argument;
  return true;
}

static void events_time_a_call(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  rgh_timer timer;
  double us = -1;
  int calls = 0;
  start(&f, 0);
  for (int warm = 0; warm < 2; ++warm) {
    if (!rgh_cuda_event_timer_create(&timer, f.cuda, warm, &why)) fail_msg("%s", why.text);
    assert_string_equal(timer.method, "cuda_events");
    assert_int_equal(timer.flush_bytes, warm ? 0 : 2 * (60 << 20)); /* twice the fake GPU's L2 */
    if (!timer.time(&timer, launch_nothing, &calls, &us, &why)) fail_msg("%s", why.text);
    assert_int_equal(calls, warm + 1);
    assert_true(us == 1000 * FAKE_ELAPSED_MS);
    timer.destroy(&timer);
  }
  stop(&f);
}

static void cupti_is_never_replaced(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  rgh_timer timer;
  start(&f, 0);
  setenv("ROPEGRAD_CUPTI", "/no/such/libcupti.so", 1);
  assert_false(rgh_cuda_cupti_timer_create(&timer, f.cuda, false, &why));
  assert_text_has(why.text, "/no/such/libcupti.so");
  /* A library that is there but is not CUPTI. */
  setenv("ROPEGRAD_CUPTI", "libm.so.6", 1);
  assert_false(rgh_cuda_cupti_timer_create(&timer, f.cuda, false, &why));
  assert_text_has(why.text, "has no cupti");
  unsetenv("ROPEGRAD_CUPTI");
  stop(&f);
}

static void facts_come_from_the_driver(void **state) {
  (void)state;
  fixture f;
  rgh_gpu gpu;
  start(&f, 0);
  rgh_cuda_read_facts(f.cuda, &gpu);
  assert_string_equal(gpu.name, "a GPU that is not there");
  assert_int_equal(gpu.compute_capability, 90);
  assert_int_equal(gpu.multiprocessors, 132);
  assert_int_equal(gpu.l2_bytes, 60 << 20);
  assert_int_equal(gpu.memory_bytes, 1 << 30);
  assert_false(gpu.nvml); /* this machine has no such device */
  gpu.memory_clock_max_khz = 2619000;
  gpu.memory_bus_bits = 5120;
  assert_true(rgh_gpu_bandwidth(&gpu) == 2 * 2619000e3 * 640);
  stop(&f);
}

/* Every byte of either side is in some chunk: what the shapes of the copies add up to. */
static void copies_cover_the_case(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  rgh_floor floor;
  start(&f, 0);
  static const rgh_floor_bytes bytes[] = {{0, 0, 256},       {8, 72, 256},       {72, 8, 256},
                                          {1 << 20, 3, 256}, {4099, 1 << 20, 0}, {300000, 300000, 0}};
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; ++i) {
    if (!f.cuda->device.create_floor(&f.cuda->device, &floor, &bytes[i], 1, &why)) fail_msg("%s", why.text);
    assert_int_equal(floor.num_copies, 144);
    assert_int_equal(floor.finalists, RGH_MAX_FINALISTS);
    for (int c = 0; c < floor.num_copies; ++c) {
      int word, pieces, threads;
      assert_int_equal(sscanf(floor.name[c], "%d bytes x %d, ", &word, &pieces), 2);
      const char *end = strstr(floor.name[c], " threads");
      assert_non_null(end);
      while (end[-1] != ' ') --end;
      threads = atoi(end);
      if (!floor.run(&floor, c, 0, 0, &why)) fail_msg("%s", why.text);
      assert_text_has(driver->kernel, strstr(floor.name[c], "front") != NULL ? "_front" : "_spread_");
      const int64_t longer = (bytes[i].read > bytes[i].write ? bytes[i].read : bytes[i].write) / word;
      const int64_t chunk = (int64_t)threads * pieces, blocks = driver->launch.gridDimX;
      assert_int_equal(driver->launch.blockDimX, threads);
      assert_true(blocks * chunk >= longer && (blocks - 1) * chunk < (longer > 0 ? longer : 1));
    }
    floor.destroy(&floor);
  }
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_go_there_and_back),    cmocka_unit_test(words_are_set_and_no_other),
      cmocka_unit_test(the_pool_is_taken_once),     cmocka_unit_test(driver_errors_are_told),
      cmocka_unit_test(events_time_a_call),         cmocka_unit_test(cupti_is_never_replaced),
      cmocka_unit_test(facts_come_from_the_driver), cmocka_unit_test(copies_cover_the_case),
  };
  return cmocka_run_group_tests(tests, find_driver, NULL);
}
