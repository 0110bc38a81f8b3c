/* A case whose tensors lie in memory that the host cannot touch: a made-up device, whose addresses are of pages without
 * any access and whose bytes are kept elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "harness/cases/fill.h"
#include "harness/verify/verify.h"
#include "tests/toy_operator.h"

enum { ROOM = 1 << 20 };

typedef struct fake_memory {
  rgh_memory memory;
  unsigned char *addresses; /* ROOM bytes that nobody may read or write */
  unsigned char *bytes;     /* what they hold */
  size_t used;
  int live;
  int uploads_left; /* before they fail */
} fake_memory;

static unsigned char *at(const fake_memory *fake, const unsigned char *address) {
  assert_true(address >= fake->addresses && address < fake->addresses + ROOM);
  return fake->bytes + (address - fake->addresses);
}

static unsigned char *fake_allocate(rgh_memory *memory, size_t bytes) {
  fake_memory *fake = memory->state;
  const size_t begin = (fake->used + RGH_MEMORY_ALIGNMENT - 1) / RGH_MEMORY_ALIGNMENT * RGH_MEMORY_ALIGNMENT;
  if (begin + bytes > ROOM) return NULL;
  fake->used = begin + bytes;
  fake->live++;
  return fake->addresses + begin;
}

static void fake_release(rgh_memory *memory, unsigned char *address) {
  fake_memory *fake = memory->state;
  fake->live -= address != NULL;
}

static bool fake_upload(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes,
                        rgh_message *why) {
  fake_memory *fake = memory->state;
  if (fake->uploads_left-- <= 0) return rgh_fail(why, "the bus is down");
  memcpy(at(fake, to), from, bytes);
  return true;
}

static bool fake_download(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes,
                          rgh_message *why) {
  (void)why;
  memcpy(to, at(memory->state, from), bytes);
  return true;
}

static bool fake_copy(rgh_memory *memory, unsigned char *to, const unsigned char *from, size_t bytes,
                      rgh_message *why) {
  (void)why;
  memcpy(at(memory->state, to), at(memory->state, from), bytes);
  return true;
}

static bool fake_set(rgh_memory *memory, unsigned char *address, uint16_t word, size_t bytes, rgh_message *why) {
  (void)why;
  assert_int_equal(bytes % sizeof word, 0);
  for (size_t i = 0; i < bytes; i += sizeof word) memcpy(at(memory->state, address) + i, &word, sizeof word);
  return true;
}

/* ---- a small case there ---- */

typedef struct fixture {
  fake_memory fake;
  rg_operator op;
  rgh_case item;
  rgh_buffers buffers;
  rg_context *context;
} fixture;

/* grad_x = g, bit for bit; grad_table is not wanted. */
static void copy_reference(const rg_problem *p, rg_reference_output *out) {
  const rg_tensor *g = &p->tensor[TOY_G];
  for (int64_t i = 0; i < rg_tensor_elements(&p->tensor[TOY_GRAD_X]); ++i) {
    out[TOY_GRAD_X].value[i] = rg_dtype_read(g->dtype, g->data, i);
    out[TOY_GRAD_X].magnitude[i] = RG_EXACT;
  }
}

static void start(fixture *f, bool in_place, size_t slack_bytes) {
  static const rg_dtype dtypes[TOY_NUM_TENSORS] = {RG_F32, RG_F32, RG_F32, RG_I64, RG_I64, RG_F32, RG_F32, RG_F32};
  static char name[] = "device";
  rgh_message why;
  memset(f, 0, sizeof *f);
  f->fake.memory = (rgh_memory){.device = TEST_CPU,
                                .state = &f->fake,
                                .allocate = fake_allocate,
                                .release = fake_release,
                                .upload = fake_upload,
                                .download = fake_download,
                                .copy = fake_copy,
                                .set = fake_set};
  f->fake.uploads_left = 1000;
  f->fake.addresses = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  f->fake.bytes = malloc(ROOM);
  assert_true(f->fake.addresses != MAP_FAILED && f->fake.bytes != NULL);
  f->op = toy_operator;
  f->op.reference = copy_reference;
  f->op.check_values = NULL; /* it would read on the host, as only a CPU's call may */
  rgh_case_init(&f->item, &f->op);
  f->item.name = name;
  f->item.dim[TOY_B] = 2;
  f->item.dim[TOY_H] = 3;
  f->item.dim[TOY_S] = 5;
  f->item.dim[TOY_D] = 6;
  memcpy(f->item.dtype, dtypes, sizeof dtypes);
  f->item.unwanted = RG_BIT(TOY_GRAD_TABLE);
  f->item.fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_ARANGE);
  f->item.fill[TOY_GRID] = rgh_fill_default(RGH_FILL_GRID);
  if (!rgh_case_finish(&f->item, &why) || (in_place && !rgh_case_set_in_place(&f->item, &why))) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(rg_context_create(&f->context, TEST_CPU, NULL), RG_OK);
  if (!rgh_buffers_create_on(&f->fake.memory, &f->buffers, &f->item, 5, slack_bytes, 2, &why)) fail_msg("%s", why.text);
}

static void stop(fixture *f) {
  rgh_buffers_destroy(&f->buffers);
  assert_int_equal(f->fake.live, 0);
  rg_context_destroy(f->context);
  munmap(f->fake.addresses, ROOM);
  free(f->fake.bytes);
}

static unsigned char *held(const fixture *f, int tensor) {
  const DLTensor *view = &f->buffers.buffer[tensor].view;
  return at(&f->fake, (unsigned char *)view->data + view->byte_offset);
}

/* What a right kernel would do, on the device. */
static void run(const fixture *f) {
  memcpy(held(f, TOY_GRAD_X), held(f, TOY_G), f->buffers.buffer[TOY_G].tensor_bytes);
}

static void fetched_and_accepted(fixture *f) {
  rgh_comparison worst;
  rgh_message why;
  if (!rgh_buffers_fetch(&f->buffers, true, &why) || !rgh_verify_outputs(f->context, &f->buffers, &worst, &why)) {
    fail_msg("%s", why.text);
  }
  assert_int_equal(worst.compared, 2 * 3 * 5 * 6);
}

static void fetched_and_refused(fixture *f, const char *part) {
  rgh_comparison worst;
  rgh_message why;
  assert_true(rgh_buffers_fetch(&f->buffers, true, &why));
  assert_false(rgh_verify_outputs(f->context, &f->buffers, &worst, &why));
  assert_text_has(why.text, part);
}

static void a_right_run_is_accepted(void **state) {
  (void)state;
  fixture f;
  uint64_t before[RG_MAX_TENSORS], after[RG_MAX_TENSORS];
  start(&f, false, 0);
  rgh_buffers_hash_inputs(&f.buffers, before);
  fetched_and_refused(&f, "grad_x[0,0,0,0] was not written");
  run(&f);
  fetched_and_accepted(&f);
  rgh_buffers_hash_inputs(&f.buffers, after);
  assert_memory_equal(before, after, sizeof before);
  assert_true(rgh_buffers_device_bytes(&f.item, 0) >= f.fake.used);
  rgh_buffers_prepare(&f.buffers);
  fetched_and_refused(&f, "was not written");
  stop(&f);
}

static void stray_bytes_are_seen(void **state) {
  (void)state;
  fixture f;
  start(&f, false, 512);
  rgh_buffers_move(&f.buffers, TOY_GRAD_X, 256);
  run(&f);
  fetched_and_accepted(&f);
  const rgh_buffer *x = &f.buffers.buffer[TOY_GRAD_X], *g = &f.buffers.buffer[TOY_G];
  const struct {
    unsigned char *byte;
    const char *part;
  } strays[] = {
      {at(&f.fake, x->device_memory), "grad_x: bytes before its memory"},
      {at(&f.fake, x->device_memory) + RGH_GUARD_BYTES + x->body_bytes, "grad_x: bytes after its memory"},
      {at(&f.fake, g->device_memory) + RGH_GUARD_BYTES - 1, "g: bytes before its memory"},
      {held(&f, TOY_GRAD_X) - 1, "grad_x: a byte that no element owns"},
      {held(&f, TOY_GRAD_X) + x->tensor_bytes, "grad_x: a byte that no element owns"},
  };
  for (size_t i = 0; i < sizeof strays / sizeof strays[0]; ++i) {
    *strays[i].byte ^= 1;
    fetched_and_refused(&f, strays[i].part);
    *strays[i].byte ^= 1;
  }
  fetched_and_accepted(&f);
  /* An input that the run has written comes back with another digest. */
  uint64_t before[RG_MAX_TENSORS], after[RG_MAX_TENSORS];
  rgh_message why;
  rgh_buffers_hash_inputs(&f.buffers, before);
  held(&f, TOY_TABLE)[7] ^= 1;
  assert_true(rgh_buffers_fetch(&f.buffers, true, &why));
  rgh_buffers_hash_inputs(&f.buffers, after);
  assert_true(before[TOY_TABLE] != after[TOY_TABLE]);
  stop(&f);
}

static void inputs_move_and_are_drawn_anew(void **state) {
  (void)state;
  fixture f;
  start(&f, false, 1024);
  /* Positions are no flat input: they are written again at the new start. */
  rgh_buffers_move(&f.buffers, TOY_ROWS, 768);
  for (int64_t i = 0; i < 5; ++i) assert_int_equal(rg_dtype_read_index(RG_I64, held(&f, TOY_ROWS), i), i);
  const float before = *(float *)(void *)held(&f, TOY_G);
  rgh_buffers_move(&f.buffers, TOY_G, 512);
  assert_true(*(float *)(void *)held(&f, TOY_G) != before);
  rgh_buffers_move(&f.buffers, TOY_G, 0);
  rgh_buffers_refill(&f.buffers, 6);
  assert_true(*(float *)(void *)held(&f, TOY_G) != before);
  run(&f);
  fetched_and_accepted(&f);
  stop(&f);
}

static void in_place_the_input_is_put_back(void **state) {
  (void)state;
  fixture f;
  start(&f, true, 256);
  const size_t bytes = f.buffers.buffer[TOY_G].tensor_bytes;
  run(&f); /* onto itself */
  fetched_and_accepted(&f);
  memset(held(&f, TOY_G), 0, bytes);
  fetched_and_refused(&f, "grad_x[");
  rgh_buffers_restore(&f.buffers);
  fetched_and_accepted(&f);
  assert_true(rgh_buffers_device_bytes(&f.item, 256) >= f.fake.used);
  stop(&f);
}

static void failures_are_kept_and_told(void **state) {
  (void)state;
  fixture f;
  rgh_message why;
  rgh_buffers other;
  start(&f, false, 0);
  f.fake.uploads_left = 2;
  rgh_buffers_refill(&f.buffers, 9);
  assert_false(rgh_buffers_sound(&f.buffers, &why));
  assert_text_has(why.text, "the bus is down");
  assert_false(rgh_buffers_fetch(&f.buffers, false, &why));
  assert_text_has(why.text, "the bus is down");
  const int live = f.fake.live;
  assert_false(rgh_buffers_create_on(&f.fake.memory, &other, &f.item, 5, 0, 2, &why));
  assert_text_has(why.text, "the bus is down");
  assert_false(rgh_buffers_create_on(&f.fake.memory, &other, &f.item, 5, ROOM, 2, &why));
  assert_text_has(why.text, "the device has no memory for the ");
  assert_int_equal(f.fake.live, live);
  stop(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_right_run_is_accepted),        cmocka_unit_test(stray_bytes_are_seen),
      cmocka_unit_test(inputs_move_and_are_drawn_anew), cmocka_unit_test(in_place_the_input_is_put_back),
      cmocka_unit_test(failures_are_kept_and_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
