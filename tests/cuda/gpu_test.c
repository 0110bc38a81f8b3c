/* What only a GPU can show: graphs, streams at once, errors that come later, and what a call costs the host. Skipped
 * where there is none. The contract itself is `ropegrad verify --device cuda`. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "harness/buffers/buffers.h"
#include "harness/cases/suite.h"
#include "harness/cuda/cuda.h"
#include "harness/verify/verify.h"
#include "ropegrad/ropegrad_cuda_dev.h"
#include "tests/testing.h"

#define DEVICE ((DLDevice){kDLCUDA, 0})

enum { REPLAYS = 1000, RUNS = 200, TIMED_CALLS = 2000 };

/* A context with its stream and one case's tensors on the GPU. */
typedef struct lane {
  rg_context *context;
  rgh_cuda *cuda;
  rgh_buffers buffers;
  uint64_t expected[RG_MAX_TENSORS]; /* digests of what one call alone leaves */
} lane;

/* Small cases of the general kernels, and the public sizes, which the tuned ones take. */
static rgh_suite smoke, sizes[RG_NUM_DIRECTIONS];
static const rg_cuda_driver *driver;

static void fetch_digests(lane *l, uint64_t hash[RG_MAX_TENSORS]) {
  rgh_message why;
  if (!rgh_buffers_fetch(&l->buffers, false, &why)) fail_msg("%s", why.text);
  rgh_buffers_hash_outputs(&l->buffers, hash);
}

static void assert_expected(lane *l, const char *when) {
  uint64_t got[RG_MAX_TENSORS];
  assert_int_equal(rg_context_check(l->context), RG_OK);
  fetch_digests(l, got);
  const rgh_case *item = l->buffers.item;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if (got[t] == l->expected[t]) continue;
    fail_msg("%s %s: %s differs %s", item->op->name, item->name, item->op->tensors[t].name, when);
  }
}

static void open_lane(lane *l, const rgh_case *item) {
  rgh_message why;
  assert_int_equal(rg_context_create(&l->context, DEVICE, NULL), RG_OK);
  if (!rgh_cuda_open(&l->cuda, l->context, 0, 0, 1, &why)) fail_msg("%s", why.text);
  rgh_memory *memory = rgh_cuda_device(l->cuda)->memory;
  if (!rgh_buffers_create_on(memory, &l->buffers, item, 5, 0, 1, &why)) fail_msg("%s", why.text);
  if (rgh_verify_run(l->context, &l->buffers, NULL) != RG_OK) {
    fail_msg("%s %s: %s", item->op->name, item->name, rg_last_error(l->context));
  }
  fetch_digests(l, l->expected);
  rgh_buffers_prepare(&l->buffers);
}

static void close_lane(lane *l) {
  rgh_buffers_destroy(&l->buffers);
  rgh_cuda_close(l->cuda);
  rg_context_destroy(l->context);
}

static void call(lane *l) {
  const rgh_case *item = l->buffers.item;
  if (rg_dev_run(l->context, item->op, NULL, l->buffers.args) != RG_OK) {
    fail_msg("%s %s: %s", item->op->name, item->name, rg_last_error(l->context));
  }
}

static const rgh_suite *sizes_of(int index) { return &sizes[rg_dev_operator_at(index)->direction]; }

/* The operator's smallest case; in place it would not find its inputs again. */
static const rgh_case *smallest_case(const rgh_suite *suite, int index) {
  const rg_operator *op = rg_dev_operator_at(index);
  const rgh_case *smallest = NULL;
  for (int i = 0; i < suite->num_cases; ++i) {
    const rgh_case *item = &suite->cases[i];
    if (item->op != op || rgh_case_in_place(item)) continue;
    if (smallest == NULL || rgh_case_bytes(item) < rgh_case_bytes(smallest)) smallest = item;
  }
  if (smallest == NULL) fail_msg("no case of %s", op->name);
  return smallest;
}

static void check(CUresult result, const char *what) {
  const char *name = "?";
  if (result == CUDA_SUCCESS) return;
  driver->cuGetErrorName(result, &name);
  fail_msg("%s: %s", what, name);
}
#define CHECK(call) check(driver->call, #call)

static void a_captured_call_replays(const rgh_case *item) {
  lane l;
  open_lane(&l, item);
  CUcontext popped;
  CUgraph graph;
  CUgraphExec exec;
  CUstream stream = rg_dev_cuda_stream(l.context);
  CHECK(cuCtxPushCurrent(rg_dev_cuda_primary_context(l.context)));
  CHECK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  call(&l);
  CHECK(cuStreamEndCapture(stream, &graph));
  CHECK(cuGraphInstantiateWithFlags(&exec, graph, 0));
  for (int i = 0; i < REPLAYS; ++i) CHECK(cuGraphLaunch(exec, stream));
  CHECK(cuCtxPopCurrent(&popped));
  assert_expected(&l, "after the replays of a graph");
  driver->cuGraphExecDestroy(exec);
  driver->cuGraphDestroy(graph);
  close_lane(&l);
}

static void captured_calls_replay(void **state) {
  (void)state;
  for (int op = 0; op < RG_NUM_OPERATORS; ++op) {
    a_captured_call_replays(smallest_case(&smoke, op));
    a_captured_call_replays(smallest_case(sizes_of(op), op));
  }
}

/* All operators at once, each on two streams of its own, so that contexts share the GPU but nothing else. */
static void streams_do_not_disturb_each_other(void **state) {
  (void)state;
  enum { LANES = 2 * RG_NUM_OPERATORS };
  lane l[LANES];
  for (int i = 0; i < LANES; ++i) {
    const int op = i % RG_NUM_OPERATORS;
    open_lane(&l[i], smallest_case(sizes_of(op), op));
  }
  for (int run = 0; run < RUNS; ++run) {
    for (int i = 0; i < LANES; ++i) call(&l[i]);
  }
  for (int i = 0; i < LANES; ++i) assert_expected(&l[i], "after calls on other streams");
  for (int i = 0; i < LANES; ++i) close_lane(&l[i]);
}

/* Whatever context is current, one of another device where there is another: it stays current, and the call runs on its
 * own device all the same. */
static void the_current_context_does_not_matter(void **state) {
  (void)state;
  lane l;
  open_lane(&l, smallest_case(sizes_of(0), 0));
  int devices = 0;
  CUcontext other = NULL, before, after, popped;
  CHECK(cuDeviceGetCount(&devices));
  if (devices > 1) {
    CHECK(cuDevicePrimaryCtxRetain(&other, 1));
    CHECK(cuCtxPushCurrent(other));
  } else {
    print_message("one GPU alone: no other device can be current\n");
  }
  CHECK(cuCtxGetCurrent(&before));
  call(&l);
  CHECK(cuCtxGetCurrent(&after));
  assert_ptr_equal(after, before);
  if (devices > 1) {
    CHECK(cuCtxPopCurrent(&popped));
    driver->cuDevicePrimaryCtxRelease(1);
  }
  assert_expected(&l, "with another context current");
  close_lane(&l);
}

/* ---- an index past the end ---- */

#define PAST_THE_END(op, params)                                                                  \
  "{\"op\": \"" op "\", \"name\": \"past_the_end" params "\", \"params\": {\"in_place\": " params \
  "},"                                                                                            \
  " \"dims\": {\"batch_size\": 2, \"num_kv_heads\": 3, \"new_seq_len\": 6, \"max_seq_len\": 9, \"head_dim\": 16}}"
static const char past_the_end[] =
    "{\"suite\": \"s\", \"description\": \"d\", \"cases\": [" PAST_THE_END("kv_cache_update", "false") "," PAST_THE_END(
        "kv_cache_update", "true") "," PAST_THE_END("kv_cache_update_forward",
                                                    "false") "," PAST_THE_END("kv_cache_update_forward", "true") "]}";

enum { BAD_PLACE = 4 };

static int find_tensor(const rg_operator *op, const char *name) {
  const int t = rg_dev_find_tensor(op, name);
  if (t < 0) fail_msg("%s has no tensor %s", op->name, name);
  return t;
}

/* Sets one entry of an int64 input, on the host and on the GPU. */
static void set_index(lane *l, int tensor, int64_t place, int64_t value) {
  rgh_buffer *buffer = &l->buffers.buffer[tensor];
  rgh_memory *memory = l->buffers.device;
  rgh_message why;
  unsigned char *on_gpu = (unsigned char *)buffer->view.data + buffer->view.byte_offset + place * (int64_t)sizeof value;
  if (!memory->upload(memory, on_gpu, (const unsigned char *)&value, sizeof value, &why)) fail_msg("%s", why.text);
  unsigned char *on_host = buffer->memory + RGH_GUARD_BYTES + buffer->shift + place * (int64_t)sizeof value;
  memcpy(on_host, &value, sizeof value);
}

/* The reference takes a negative entry for "skip", which gives the same outputs as one past the end. */
static void check_tells(const rgh_case *item, const char *variant, int64_t bad) {
  rgh_message why;
  lane l;
  open_lane(&l, item);
  const int positions = find_tensor(item->op, "cache_position");
  set_index(&l, positions, BAD_PLACE, bad);
  assert_int_equal(rg_dev_run(l.context, item->op, variant, l.buffers.args), RG_OK);
  assert_int_equal(rg_context_check(l.context), RG_ERR_RANGE);
  assert_text_has(rg_last_error(l.context), "place 4");
  assert_int_equal(rg_context_check(l.context), RG_OK); /* told once */
  rgh_comparison worst;
  if (!rgh_buffers_fetch(&l.buffers, false, &why)) fail_msg("%s", why.text);
  const int64_t skip = -1;
  memcpy(l.buffers.buffer[positions].memory + RGH_GUARD_BYTES + BAD_PLACE * sizeof skip, &skip, sizeof skip);
  if (!rgh_verify_outputs(l.context, &l.buffers, &worst, &why)) {
    fail_msg("%s %s, %s: %s", item->op->name, item->name, variant, why.text);
  }
  close_lane(&l);
}

static void an_index_past_the_end_is_told_by_check(void **state) {
  (void)state;
  rgh_suite suite;
  rgh_message why;
  if (!rgh_suite_parse(past_the_end, sizeof past_the_end - 1, "here", &suite, &why)) fail_msg("%s", why.text);
  static const char *const variants[] = {"cuda.generic", "cuda.sm90.dense"};
  static const int64_t bad[] = {9, 10, INT64_C(1) << 40, INT64_MAX};
  for (int c = 0; c < suite.num_cases; ++c) {
    for (size_t v = 0; v < 2 * sizeof bad / sizeof bad[0]; ++v) {
      check_tells(&suite.cases[c], variants[v % 2], bad[v / 2]);
    }
  }
  rgh_suite_free(&suite);
}

/* ---- what a call costs the host ---- */

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median over calls that find the GPU idle, so that none waits for room in the queue. */
static double median_us(const lane *l, void (*timed)(void *), void *argument) {
  static double sample[TIMED_CALLS];
  for (int i = 0; i < TIMED_CALLS; ++i) {
    CHECK(cuStreamSynchronize(rg_dev_cuda_stream(l->context)));
    const double begin = now_us();
    timed(argument);
    sample[i] = now_us() - begin;
  }
  qsort(sample, TIMED_CALLS, sizeof sample[0], ascending);
  return sample[TIMED_CALLS / 2];
}

typedef struct bare_launch {
  CUfunction kernel;
  CUlaunchConfig config;
} bare_launch;

/* With parameters of zeros the kernel finds nothing to do. */
static void launch_bare(void *argument) {
  static char zeros[4096];
  bare_launch *bare = argument;
  void *params[] = {zeros};
  CHECK(cuLaunchKernelEx(&bare->config, bare->kernel, params, NULL));
}

static void call_lane(void *argument) { call(argument); }

/* Figures for people, printed: a limit on them would make the test a matter of luck on a busy machine. */
static void a_call_costs_the_host_little(void **state) {
  (void)state;
  lane l[RG_NUM_OPERATORS];
  for (int op = 0; op < RG_NUM_OPERATORS; ++op) {
    open_lane(&l[op], smallest_case(sizes_of(op), op));
  }
  CUcontext popped;
  CUlibrary library;
  CUkernel kernel;
  bare_launch bare = {.config = {.gridDimX = 1,
                                 .gridDimY = 1,
                                 .gridDimZ = 1,
                                 .blockDimX = 128,
                                 .blockDimY = 1,
                                 .blockDimZ = 1,
                                 .hStream = rg_dev_cuda_stream(l[0].context)}};
  const void *image;
  size_t bytes;
  rg_dev_cuda_image(RG_OP_rope_2d, &image, &bytes);
  CHECK(cuCtxPushCurrent(rg_dev_cuda_primary_context(l[0].context)));
  CHECK(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
  CHECK(cuLibraryGetKernel(&kernel, library, "rope_2d_any__general"));
  CHECK(cuKernelGetFunction(&bare.kernel, kernel));
  const double launch_us = median_us(&l[0], launch_bare, &bare);
  CHECK(cuCtxPopCurrent(&popped));
  driver->cuLibraryUnload(library);
  print_message("the driver's own launch takes the host %.2f us; a call, that launch included:\n", launch_us);
  for (int op = 0; op < RG_NUM_OPERATORS; ++op) {
    const double us = median_us(&l[op], call_lane, &l[op]);
    print_message("  %-24s %.2f us, %.2f beside the launch\n", l[op].buffers.item->op->name, us, us - launch_us);
    close_lane(&l[op]);
  }
}

static int load(void **state) {
  (void)state;
  rgh_message why;
  if (rgh_suite_load(ROPEGRAD_SUITES "/smoke.json", &smoke, &why) &&
      rgh_suite_load(ROPEGRAD_SUITES "/sol-execbench-rope.json", &sizes[RG_BACKWARD], &why) &&
      rgh_suite_load(ROPEGRAD_SUITES "/sol-execbench-rope-forward.json", &sizes[RG_FORWARD], &why)) {
    return 0;
  }
  fprintf(stderr, "%s\n", why.text);
  return -1;
}

static int unload(void **state) {
  (void)state;
  rgh_suite_free(&smoke);
  for (int direction = 0; direction < RG_NUM_DIRECTIONS; ++direction) rgh_suite_free(&sizes[direction]);
  return 0;
}

int main(void) {
  char why[RG_REASON_BYTES];
  if (rg_device_status(DEVICE, why, sizeof why) != RG_OK) {
    fprintf(stderr, "skipped: %s\n", why);
    return TEST_SKIPPED;
  }
  driver = rg_dev_cuda_driver(NULL);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(captured_calls_replay),
      cmocka_unit_test(streams_do_not_disturb_each_other),
      cmocka_unit_test(the_current_context_does_not_matter),
      cmocka_unit_test(an_index_past_the_end_is_told_by_check),
      cmocka_unit_test(a_call_costs_the_host_little),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
