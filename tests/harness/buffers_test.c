/* The memory of a case and the judging of what a call left in it, on the made-up operator with the test as its kernel:
 * guards, gaps, poison, moved starts, in-place copies, and a reference that is cut into slices. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cases/fill.h"
#include "harness/verify/verify.h"
#include "tests/toy_operator.h"

/* grad_x = g, bit for bit; grad_table[b, s, r] = sum over heads (and over batches where one table serves all) of
 * g * x. */
static void toy_reference(const rg_problem *p, rg_reference_output *out) {
  const rg_tensor *g = &p->tensor[TOY_G], *x = &p->tensor[TOY_X], *table = &p->tensor[TOY_GRAD_TABLE];
  const int64_t B = p->dim[TOY_B], H = p->dim[TOY_H], S = p->dim[TOY_S], D = p->dim[TOY_D], R = p->dim[TOY_R];
  out[TOY_GRAD_TABLE].terms = H * (table->shape[0] == 1 ? B : 1);
  for (int64_t i = 0; out[TOY_GRAD_TABLE].value && i < rg_tensor_elements(table); ++i) {
    out[TOY_GRAD_TABLE].value[i] = out[TOY_GRAD_TABLE].magnitude[i] = 0;
  }
  for (int64_t i = 0; i < B * H * S * D; ++i) {
    const int64_t b = i / (H * S * D), h = i / (S * D) % H, s = i / D % S, d = i % D;
    const int64_t at = b * g->stride[0] + h * g->stride[1] + s * g->stride[2] + d * g->stride[3];
    const double value = rg_dtype_read(g->dtype, g->data, at);
    if (out[TOY_GRAD_X].value) {
      out[TOY_GRAD_X].value[i] = value;
      out[TOY_GRAD_X].magnitude[i] = RG_EXACT;
    }
    if (out[TOY_GRAD_TABLE].value && d < R) {
      const int64_t to = ((table->shape[0] == 1 ? 0 : b) * S + s) * R + d;
      const int64_t from = b * x->stride[0] + h * x->stride[1] + s * x->stride[2] + d * x->stride[3];
      const double term = value * rg_dtype_read(x->dtype, x->data, from);
      out[TOY_GRAD_TABLE].value[to] += term;
      out[TOY_GRAD_TABLE].magnitude[to] += fabs(term);
    }
  }
}

static rg_operator kernel_operator;

/* About 4 MiB of reference: a few slices. */
static void make_case(rgh_case *item) {
  static const rg_dtype dtypes[TOY_NUM_TENSORS] = {RG_F32, RG_F32, RG_F32, RG_I64, RG_I64, RG_F32, RG_F32, RG_F32};
  static char name[] = "buffers";
  kernel_operator = toy_operator;
  kernel_operator.reference = toy_reference;
  kernel_operator.slice_dim = TOY_B;
  rgh_case_init(item, &kernel_operator);
  item->name = name;
  item->dim[TOY_B] = 8;
  item->dim[TOY_H] = 4;
  item->dim[TOY_S] = 64;
  item->dim[TOY_D] = 128;
  memcpy(item->dtype, dtypes, sizeof dtypes);
  item->fill[TOY_ROWS] = rgh_fill_default(RGH_FILL_ARANGE);
  item->fill[TOY_GRID] = rgh_fill_default(RGH_FILL_GRID);
}

typedef struct fixture {
  rgh_case item;
  rgh_buffers buffers;
  rg_context *context;
  rg_problem problem;
} fixture;

static void resolve(fixture *f) {
  const rg_status status = rg_dev_resolve(f->context, f->item.op, f->buffers.args, &f->problem);
  if (status != RG_OK) fail_msg("%s", rg_last_error(f->context));
}

static void start(fixture *f, size_t slack_bytes) {
  rgh_message why;
  if (!rgh_case_finish(&f->item, &why)) fail_msg("%s", why.text);
  if (!rgh_buffers_create(&f->buffers, &f->item, 5, slack_bytes, 2, &why)) fail_msg("%s", why.text);
  assert_int_equal(rg_context_create(&f->context, TEST_CPU, NULL), RG_OK);
  resolve(f);
}

static void stop(fixture *f) {
  rgh_buffers_destroy(&f->buffers);
  rg_context_destroy(f->context);
}

static void write_all(const rg_tensor *tensor, const double *value) {
  int64_t place = 0, index[RG_MAX_RANK] = {0};
  for (int64_t e = 0; e < rg_tensor_elements(tensor); ++e) {
    rg_dtype_write(tensor->dtype, tensor->data, place, value[e]);
    for (int a = tensor->rank - 1; a >= 0; --a) {
      place += tensor->stride[a];
      if (++index[a] < tensor->shape[a]) break;
      place -= index[a] * tensor->stride[a];
      index[a] = 0;
    }
  }
}

/* What a right kernel would do. */
static void run(fixture *f) {
  rg_reference_output out[TOY_NUM_TENSORS] = {{0}};
  resolve(f);
  for (int t = TOY_GRAD_X; t <= TOY_GRAD_TABLE; ++t) {
    const size_t elements = (size_t)rg_tensor_elements(&f->problem.tensor[t]);
    out[t].value = calloc(elements + 1, sizeof(double));
    out[t].magnitude = calloc(elements + 1, sizeof(double));
    assert_true(out[t].value != NULL && out[t].magnitude != NULL);
  }
  toy_reference(&f->problem, out);
  for (int t = TOY_GRAD_X; t <= TOY_GRAD_TABLE; ++t) {
    write_all(&f->problem.tensor[t], out[t].value);
    free(out[t].value);
    free(out[t].magnitude);
  }
}

static void accepted(fixture *f, int64_t elements) {
  rgh_comparison worst;
  rgh_message why;
  if (!rgh_verify_outputs(f->context, &f->buffers, &worst, &why)) fail_msg("%s", why.text);
  assert_int_equal(worst.compared, elements);
}

static void refused(fixture *f, const char *part) {
  rgh_comparison worst;
  rgh_message why;
  assert_false(rgh_verify_outputs(f->context, &f->buffers, &worst, &why));
  assert_text_has(why.text, part);
}

enum { X_ELEMENTS = 8 * 4 * 64 * 128, TABLE_ELEMENTS = 8 * 64 * 128 };

static float *element(fixture *f, int tensor, int64_t b, int64_t h, int64_t s, int64_t d) {
  const rg_tensor *t = &f->problem.tensor[tensor];
  return (float *)t->data + b * t->stride[0] + h * t->stride[1] + s * t->stride[2] + d * t->stride[3];
}

static void errors_are_found_in_every_slice(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  start(&f, 0);
  refused(&f, "grad_x[0,0,0,0] was not written (327680 of 327680 elements break the contract)");
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  for (int64_t b = 0; b < 8; ++b) {
    float *victim = element(&f, TOY_GRAD_X, b, b % 4, 7 * b, 127 - b);
    const float right = *victim;
    *victim = nextafterf(right, 9);
    char part[64];
    snprintf(part, sizeof part, "grad_x[%d,%d,%d,%d] is ", (int)b, (int)b % 4, (int)(7 * b), (int)(127 - b));
    refused(&f, part);
    refused(&f, "(1 of 327680 elements break the contract)");
    *victim = right;
  }
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  stop(&f);
}

/* The table's gradient sums over the very dim that the reference is sliced along. */
static void a_shared_table_is_not_sliced(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.shared = RG_BIT(TOY_TABLE) | RG_BIT(TOY_GRAD_TABLE);
  start(&f, 0);
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS / 8);
  float *victim = (float *)f.problem.tensor[TOY_GRAD_TABLE].data + 63 * 128 + 5;
  *victim += 1;
  refused(&f, "grad_table[0,63,5] is ");
  stop(&f);
}

static void stray_writes_are_seen(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.layout[TOY_GRAD_X] =
      (rgh_layout){.reordered = true, .order = {0, 2, 1, 3}, .offset = 3, .pad = {0, 5, 0, 1}, .stride_last = 2};
  f.item.layout[TOY_GRAD_TABLE].pad[2] = 1;
  start(&f, 512);
  rgh_buffers_move(&f.buffers, TOY_GRAD_X, 256);
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);

  const rgh_buffer *x = &f.buffers.buffer[TOY_GRAD_X], *g = &f.buffers.buffer[TOY_G];
  unsigned char *body = x->memory + RGH_GUARD_BYTES, *first = body + 256 + 3 * sizeof(float);
  const int64_t row_bytes = (128 * 2 + 1) * 4; /* elements 2 apart, and 1 of padding */
  const struct {
    unsigned char *byte;
    const char *part;
  } strays[] = {
      {x->memory, "grad_x: bytes before its memory were overwritten"},
      {body - 1, "grad_x: bytes before its memory were overwritten"},
      {body + x->body_bytes, "grad_x: bytes after its memory were overwritten"},
      {body + x->body_bytes + RGH_GUARD_BYTES - 1, "grad_x: bytes after its memory were overwritten"},
      {g->memory + RGH_GUARD_BYTES - 1, "g: bytes before its memory were overwritten"},
      {g->memory + RGH_GUARD_BYTES + g->body_bytes, "g: bytes after its memory were overwritten"},
      {body, "grad_x: a byte that no element owns, after byte 0 of its memory"},
      {first - 1, "grad_x: a byte that no element owns, after byte 0 of its memory"},
      {first + 4, "grad_x: a byte that no element owns, after byte 272 of its memory"}, /* between two elements */
      {first + row_bytes - 1, "grad_x: a byte that no element owns"},                   /* after a row */
      {first + 4 * row_bytes + 3, "grad_x: a byte that no element owns"},               /* after the four heads */
      {body + x->body_bytes - 1, "grad_x: a byte that no element owns"},                /* in the slack */
      {f.buffers.buffer[TOY_GRAD_TABLE].memory + RGH_GUARD_BYTES + 512, "grad_table: a byte that no element owns"},
  };
  for (size_t i = 0; i < sizeof strays / sizeof strays[0]; ++i) {
    *strays[i].byte ^= 1;
    refused(&f, strays[i].part);
    *strays[i].byte ^= 1;
  }
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  stop(&f);
}

static void an_unwritten_element_is_seen(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  start(&f, 0);
  run(&f);
  rgh_poison_fill(element(&f, TOY_GRAD_X, 6, 1, 2, 3), sizeof(float));
  refused(&f, "grad_x[6,1,2,3] was not written (1 of 327680");
  stop(&f);
}

static void in_place_compares_with_what_was_there_before(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.param[0].flag = true;
  f.item.layout[TOY_G].pad[3] = 2;
  start(&f, 256);
  assert_ptr_equal(f.problem.tensor[TOY_G].data, f.problem.tensor[TOY_GRAD_X].data);
  assert_int_equal(f.problem.tensor[TOY_GRAD_X].stride[2], 130);
  rgh_buffers_move(&f.buffers, TOY_G, 256);
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  uint64_t first[RG_MAX_TENSORS], again[RG_MAX_TENSORS], inputs[RG_MAX_TENSORS];
  rgh_buffers_hash_outputs(&f.buffers, first);
  rgh_buffers_hash_inputs(&f.buffers, inputs);
  assert_true(first[TOY_GRAD_X] != 0 && inputs[TOY_G] == 0 && inputs[TOY_X] != 0);

  float *victim = element(&f, TOY_GRAD_X, 1, 2, 3, 4);
  *victim = 7;
  refused(&f, "grad_x[1,2,3,4] is 7, expected ");
  rgh_buffers_hash_outputs(&f.buffers, again);
  assert_true(first[TOY_GRAD_X] != again[TOY_GRAD_X]);
  rgh_buffers_prepare(&f.buffers);
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  rgh_buffers_hash_outputs(&f.buffers, again);
  assert_true(first[TOY_GRAD_X] == again[TOY_GRAD_X]);
  victim[-4 - 1] = 0; /* the padding before the row */
  refused(&f, "g: a byte that no element owns");
  stop(&f);
}

static void a_written_input_changes_its_digest(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.layout[TOY_X].pad[3] = 1;
  start(&f, 0);
  uint64_t before[RG_MAX_TENSORS], after[RG_MAX_TENSORS];
  rgh_buffers_hash_inputs(&f.buffers, before);
  run(&f);
  rgh_buffers_hash_inputs(&f.buffers, after);
  assert_memory_equal(before, after, sizeof before);
  ((unsigned char *)element(&f, TOY_X, 7, 3, 63, 127))[3] ^= 1;
  rgh_buffers_hash_inputs(&f.buffers, after);
  for (int t = 0; t < RG_MAX_TENSORS; ++t) assert_int_equal(before[t] == after[t], t != TOY_X);
  stop(&f);
}

static void moved_starts_are_valid_input(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.layout[TOY_X] = (rgh_layout){.reordered = true, .order = {0, 2, 1, 3}};
  start(&f, 4096);
  const rg_problem before = f.problem;
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) rgh_buffers_move(&f.buffers, t, 256 * (size_t)(t + 1));
  resolve(&f);
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) {
    assert_int_equal((char *)f.problem.tensor[t].data - (char *)before.tensor[t].data, 256 * (t + 1));
  }
  run(&f);
  accepted(&f, X_ELEMENTS + TABLE_ELEMENTS);
  /* Dense random floats stay where they are and are read from another start; everything else is written again. */
  float unmoved[2];
  memcpy(unmoved, before.tensor[TOY_G].data, sizeof unmoved);
  assert_true(unmoved[0] != *element(&f, TOY_G, 0, 0, 0, 0) && fabsf(unmoved[0]) < 6);
  const rg_tensor *rows = &f.problem.tensor[TOY_ROWS];
  for (int64_t s = 0; s < 64; ++s) assert_int_equal(rg_dtype_read_index(RG_I64, rows->data, s), s);
  /* Another seed: other values at the same starts. */
  const float g = *element(&f, TOY_G, 1, 2, 3, 4), x = *element(&f, TOY_X, 1, 2, 3, 4);
  rgh_buffers_refill(&f.buffers, 6);
  assert_true(g != *element(&f, TOY_G, 1, 2, 3, 4) && x != *element(&f, TOY_X, 1, 2, 3, 4));
  rgh_buffers_refill(&f.buffers, 5);
  assert_true(g == *element(&f, TOY_G, 1, 2, 3, 4) && x == *element(&f, TOY_X, 1, 2, 3, 4));
  stop(&f);
}

static void what_no_wanted_output_needs_is_not_given(void **state) {
  (void)state;
  fixture f;
  make_case(&f.item);
  f.item.unwanted = RG_BIT(TOY_GRAD_TABLE);
  start(&f, 0);
  assert_null(rg_dev_get_tensor(f.item.op, f.buffers.args, TOY_X));
  assert_null(rg_dev_get_tensor(f.item.op, f.buffers.args, TOY_GRAD_TABLE));
  assert_non_null(rg_dev_get_tensor(f.item.op, f.buffers.args, TOY_TABLE));
  assert_null(f.buffers.buffer[TOY_X].memory);
  assert_int_equal(rgh_case_bytes(&f.item), 2 * 4 * X_ELEMENTS + 4 * TABLE_ELEMENTS + 8 * 64 + 16 * 64 + 4 * 64 * 64);
  stop(&f);
}

static void memory_that_cannot_be_had_is_reported(void **state) {
  (void)state;
  rgh_case item;
  make_case(&item);
  item.dim[TOY_B] = INT64_C(1) << 25; /* 2^40 elements, 4 TiB */
  rgh_message why;
  if (!rgh_case_finish(&item, &why)) fail_msg("%s", why.text);
  rgh_buffers buffers;
  assert_false(rgh_buffers_create(&buffers, &item, 1, 0, 1, &why));
  assert_text_has(why.text, "its tensors take 15393");
  assert_text_has(why.text, " GB of memory");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(errors_are_found_in_every_slice),
      cmocka_unit_test(a_shared_table_is_not_sliced),
      cmocka_unit_test(stray_writes_are_seen),
      cmocka_unit_test(an_unwritten_element_is_seen),
      cmocka_unit_test(in_place_compares_with_what_was_there_before),
      cmocka_unit_test(a_written_input_changes_its_digest),
      cmocka_unit_test(moved_starts_are_valid_input),
      cmocka_unit_test(what_no_wanted_output_needs_is_not_given),
      cmocka_unit_test(memory_that_cannot_be_had_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
