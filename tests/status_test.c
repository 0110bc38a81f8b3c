/* Every status that this build can give, provoked through the public API where it reaches, else through the
 * developers'. RG_ERR_CUDA comes from a CUDA driver alone; it and what else needs a GPU are tested where there is one.
 * RG_ERR_HARDWARE has hardware_test.c, which takes the machine's instructions away. */
#include <stdio.h>
#include <stdlib.h>

#include "ropegrad/operators.h"
#include "tests/testing.h"

enum { B = 2, S = 3, D = 4, ELEMENTS = B * S * D, POISON = 0xEE };

/* A right call of one public function; each provocation breaks one thing. */
typedef struct call {
  rg_context *context;
  test_view grad_cos, grad_sin, idx_theta, grad_idx_theta;
  rg_rope_2d_backward_args args;
  float input[3][ELEMENTS];
  float output[ELEMENTS];
} call;

static rg_status run(call *c) { return rg_rope_2d_backward(c->context, &c->args); }

static rg_status succeed(call *c) { return run(c); }

static rg_status null_tensor(call *c) {
  c->args.grad_sin = NULL;
  return run(c);
}

static rg_status wrong_rank(call *c) {
  c->grad_sin.tensor.ndim = 2;
  return run(c);
}

static rg_status wrong_shape(call *c) {
  c->idx_theta.shape[1] = S + 1;
  return run(c);
}

static rg_status wrong_dtype(call *c) {
  c->grad_cos.tensor.dtype = c->grad_sin.tensor.dtype = rg_dtype_to_dlpack(RG_I32);
  return run(c);
}

static rg_status misaligned(call *c) {
  c->idx_theta.tensor.byte_offset = 1;
  return run(c);
}

static rg_status output_on_input(call *c) {
  c->grad_idx_theta.tensor.data = c->input[2];
  return run(c);
}

static rg_status negative_threads(call *c) {
  (void)c;
  rg_context *refused;
  return rg_context_create(&refused, TEST_CPU, &(rg_context_options){.threads = -1});
}

static rg_status past_the_address_space(call *c) {
  c->grad_cos.shape[0] = INT64_MAX;
  return run(c);
}

static rg_status tensor_on_a_gpu(call *c) {
  c->grad_cos.tensor.device.device_type = kDLCUDA;
  return run(c);
}

static rg_status unknown_variant(call *c) {
  return rg_dev_run(c->context, rg_dev_operator(RG_OP_rope_2d, RG_BACKWARD), "cpu.fast", &c->args);
}

/* One level or the other is of another processor family. */
static rg_status level_of_another_processor(call *c) {
#if defined(__aarch64__)
  static const char level[] = "cpu.avx2";
#else
  static const char level[] = "cpu.neon";
#endif
  return rg_dev_run(c->context, rg_dev_operator(RG_OP_rope_2d, RG_BACKWARD), level, &c->args);
}

/* Lets the context have its memory and nothing after it. */
static void *allocate_once(void *user, size_t bytes) {
  int *left = user;
  return (*left)-- > 0 ? malloc(bytes) : NULL;
}

static void release(void *user, void *memory) {
  (void)user;
  free(memory);
}

static rg_status no_memory_for_the_reference(call *c) {
  int left = 1;
  rg_context_destroy(c->context);
  const rg_context_options options = {.variant = "ref", .allocator = {allocate_once, release, &left}};
  assert_int_equal(rg_context_create(&c->context, TEST_CPU, &options), RG_OK);
  return run(c);
}

static rg_status operator_of_another_library(call *c) {
  const rg_operator copy = *rg_dev_operator(RG_OP_rope_2d, RG_BACKWARD);
  return rg_dev_run(c->context, &copy, NULL, &c->args);
}

static const struct {
  const char *name;
  rg_status status;
  rg_status (*provoke)(call *c);
  const char *says; /* part of the last error; NULL: the failed call had no context to leave it in */
} provocations[] = {
    {"RG_OK", RG_OK, succeed, ""},
    {"RG_ERR_NULL", RG_ERR_NULL, null_tensor, "grad_sin"},
    {"RG_ERR_RANK", RG_ERR_RANK, wrong_rank, "grad_sin: expected 3 dimensions, got 2"},
    {"RG_ERR_SHAPE", RG_ERR_SHAPE, wrong_shape, "idx_theta: dimension 1 (seq_len): expected 3 as in grad_cos, got 4"},
    {"RG_ERR_DTYPE", RG_ERR_DTYPE, wrong_dtype, "got int32"},
    {"RG_ERR_STRIDE", RG_ERR_STRIDE, misaligned, "idx_theta"},
    {"RG_ERR_ALIAS", RG_ERR_ALIAS, output_on_input, "grad_idx_theta: it shares memory with idx_theta"},
    {"RG_ERR_RANGE", RG_ERR_RANGE, negative_threads, NULL},
    {"RG_ERR_OVERFLOW", RG_ERR_OVERFLOW, past_the_address_space, "grad_cos: dimension 0"},
    {"RG_ERR_DEVICE", RG_ERR_DEVICE, tensor_on_a_gpu, "grad_cos: expected a tensor on DLPack device {1, 0}"},
    {"RG_ERR_VARIANT", RG_ERR_VARIANT, unknown_variant, "cpu.fast"},
    {"RG_ERR_NOT_BUILT", RG_ERR_NOT_BUILT, level_of_another_processor, "another processor"},
    {"RG_ERR_ALLOC", RG_ERR_ALLOC, no_memory_for_the_reference, "no memory"},
    {"RG_ERR_INTERNAL", RG_ERR_INTERNAL, operator_of_another_library, "rope_2d"},
};
enum { NUM_PROVOCATIONS = sizeof provocations / sizeof provocations[0] };

static void prepare(call *c) {
  static const int64_t shape[] = {B, S, D};
  memset(c, 0, sizeof *c);
  memset(c->output, POISON, sizeof c->output);
  assert_int_equal(rg_context_create(&c->context, TEST_CPU, NULL), RG_OK);
  test_dense(&c->grad_cos, c->input[0], RG_F32, 3, shape);
  test_dense(&c->grad_sin, c->input[1], RG_F32, 3, shape);
  test_dense(&c->idx_theta, c->input[2], RG_F32, 3, shape);
  test_dense(&c->grad_idx_theta, c->output, RG_F32, 3, shape);
  c->args = (rg_rope_2d_backward_args){.grad_cos = &c->grad_cos.tensor,
                                       .grad_sin = &c->grad_sin.tensor,
                                       .idx_theta = &c->idx_theta.tensor,
                                       .grad_idx_theta = &c->grad_idx_theta.tensor};
}

/* The status, the words, and on failure not one byte of a tensor changed. */
static void each_status_is_provoked(void **state) {
  (void)state;
  static const float zeros[3][ELEMENTS];
  for (int i = 0; i < NUM_PROVOCATIONS; ++i) {
    call c;
    prepare(&c);
    const rg_status got = provocations[i].provoke(&c);
    if (got != provocations[i].status) fail_msg("%s: got %d", provocations[i].name, got);
    if (provocations[i].says) {
      const char *error = rg_last_error(c.context);
      assert_text_has(error, provocations[i].says);
      assert_int_equal(strlen(error) == 0, got == RG_OK);
    }
    unsigned char untouched[sizeof c.output];
    memset(untouched, got == RG_OK ? 0 : POISON, sizeof untouched);
    assert_memory_equal(c.output, untouched, sizeof untouched);
    assert_memory_equal(c.input, zeros, sizeof zeros);
    rg_context_destroy(c.context);
  }
}

/* Without a default: a status added to the enum is a warning here until it is listed. */
static bool has_provocation(rg_status status) {
  switch (status) {
    case RG_ERR_HARDWARE: /* hardware_test.c */
    case RG_ERR_CUDA:     /* see above */
      return true;
    case RG_OK:
    case RG_ERR_NULL:
    case RG_ERR_RANK:
    case RG_ERR_SHAPE:
    case RG_ERR_DTYPE:
    case RG_ERR_STRIDE:
    case RG_ERR_ALIAS:
    case RG_ERR_RANGE:
    case RG_ERR_OVERFLOW:
    case RG_ERR_DEVICE:
    case RG_ERR_VARIANT:
    case RG_ERR_NOT_BUILT:
    case RG_ERR_ALLOC:
    case RG_ERR_INTERNAL:
      break;
  }
  for (int i = 0; i < NUM_PROVOCATIONS; ++i) {
    if (provocations[i].status == status) return true;
  }
  return false;
}

/* A status is known by having a sentence of its own; the numbers are pinned. */
static void no_status_is_left_out(void **state) {
  (void)state;
  static const int pinned[] = {0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 30, 31, 32, 50, 70, 90};
  enum { NUM_PINNED = sizeof pinned / sizeof pinned[0] };
  const char *unknown = rg_status_string((rg_status)99);
  assert_string_equal(unknown, "unknown status");
  int found = 0;
  for (int value = -1; value < 128; ++value) {
    const char *sentence = rg_status_string((rg_status)value);
    if (strcmp(sentence, unknown) == 0) continue;
    assert_true(found < NUM_PINNED);
    assert_int_equal(value, pinned[found]);
    if (!has_provocation((rg_status)value)) fail_msg("status %d (%s) is never provoked", value, sentence);
    for (int other = -1; other < value; ++other) {
      assert_string_not_equal(sentence, rg_status_string((rg_status)other));
    }
    ++found;
  }
  assert_int_equal(found, NUM_PINNED);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(each_status_is_provoked),
      cmocka_unit_test(no_status_is_left_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
