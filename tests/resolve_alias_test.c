/* src/spec/resolve.c: which tensors may share memory. */
#include "tests/toy_operator.h"

static toy_call call;

static int fresh(void **state) {
  (void)state;
  toy_valid(&call);
  return 0;
}

static DLTensor *tensor(int t) { return &call.view[t].tensor; }

static void an_output_must_own_its_elements(void **state) {
  (void)state;
  call.view[TOY_GRAD_X].stride[1] = 0;
  toy_refused(&call, RG_ERR_ALIAS,
              "rg_toy_backward: grad_x: two of its indices name the same element; an output must own each");
  /* Neither 0 nor equal, and yet: heads 0 and 1 share two steps. */
  call.view[TOY_GRAD_X].stride[1] = 12;
  toy_refused(&call, RG_ERR_ALIAS,
              "rg_toy_backward: grad_x: two of its indices name the same element; an output must own each");
}

static void inputs_may_share_memory(void **state) {
  (void)state;
  tensor(TOY_X)->data = tensor(TOY_G)->data;
  toy_accepted(&call);
  tensor(TOY_X)->byte_offset = 4;
  toy_accepted(&call);
}

static void an_output_shares_with_no_input_and_no_output(void **state) {
  (void)state;
  tensor(TOY_GRAD_X)->data = tensor(TOY_G)->data;
  toy_refused(&call, RG_ERR_ALIAS, "rg_toy_backward: grad_x: it shares memory with g");
  toy_valid(&call);
  /* One element: the last of the table lies on the first of the output. */
  tensor(TOY_GRAD_X)->data = (char *)tensor(TOY_TABLE)->data + 4 * (TOY_B_SIZE * TOY_S_SIZE * TOY_D_SIZE - 1);
  toy_refused(&call, RG_ERR_ALIAS, "rg_toy_backward: grad_x: it shares memory with table");
  tensor(TOY_GRAD_X)->data = (char *)tensor(TOY_GRAD_X)->data + 4;
  toy_accepted(&call);
  toy_valid(&call);
  tensor(TOY_GRAD_TABLE)->data = tensor(TOY_GRAD_X)->data;
  toy_refused(&call, RG_ERR_ALIAS, "rg_toy_backward: grad_x: it shares memory with grad_table");
}

/* An input that no wanted output needs is not read, so what becomes of its memory is the caller's affair. */
static void an_output_may_replace_what_is_not_read(void **state) {
  (void)state;
  call.args.grad_table = NULL;
  tensor(TOY_GRAD_X)->data = tensor(TOY_X)->data;
  toy_accepted(&call);
}

/* g, x and the output laced together row by row, as a fused buffer [B, S, 3, H, D] has them. */
static void interleaved_views_of_one_buffer_are_apart(void **state) {
  (void)state;
  static float fused[TOY_B_SIZE * TOY_S_SIZE * 3 * TOY_H_SIZE * TOY_D_SIZE];
  const int parts[] = {TOY_G, TOY_X, TOY_GRAD_X};
  const int64_t row = 3 * TOY_H_SIZE * TOY_D_SIZE;
  for (int i = 0; i < 3; ++i) {
    tensor(parts[i])->data = fused + i * TOY_H_SIZE * TOY_D_SIZE;
    const int64_t stride[] = {TOY_S_SIZE * row, TOY_D_SIZE, row, 1};
    memcpy(call.view[parts[i]].stride, stride, sizeof stride);
  }
  toy_accepted(&call);
  /* One head further, and the first head of the output is the last of x. */
  tensor(TOY_GRAD_X)->data = fused + (2 * TOY_H_SIZE - 1) * TOY_D_SIZE;
  toy_refused(&call, RG_ERR_ALIAS, "rg_toy_backward: grad_x: it shares memory with x");
}

static void in_place_wants_the_very_tensor(void **state) {
  (void)state;
  const char *const wanted = "rg_toy_backward: grad_x: with in_place it must be the very tensor g, or NULL";
  call.args.in_place = true;
  toy_refused(&call, RG_ERR_ALIAS, wanted);
  call.args.grad_x = call.args.g;
  toy_accepted(&call);
  /* Another descriptor of the same memory is the same tensor; sizes of 1 may have any stride. */
  call.args.grad_x = tensor(TOY_GRAD_X);
  tensor(TOY_GRAD_X)->data = (char *)tensor(TOY_G)->data - 16;
  tensor(TOY_GRAD_X)->byte_offset = 16;
  toy_accepted(&call);
  call.view[TOY_GRAD_X].stride[2] = 1;
  call.view[TOY_GRAD_X].stride[3] = 4;
  toy_refused(&call, RG_ERR_ALIAS, wanted);
  call.args.grad_x = NULL;
  toy_accepted(&call);
  /* The input that is written over must own its elements too. */
  toy_valid(&call);
  call.args.in_place = true;
  call.args.grad_x = call.args.g;
  call.view[TOY_G].stride[0] = 0;
  toy_refused(&call, RG_ERR_ALIAS,
              "rg_toy_backward: grad_x: two of its indices name the same element; an output must own each");
}

static void in_place_frees_no_other_output(void **state) {
  (void)state;
  call.args.in_place = true;
  call.args.grad_x = call.args.g;
  tensor(TOY_GRAD_TABLE)->data = tensor(TOY_G)->data;
  toy_refused(&call, RG_ERR_ALIAS, "rg_toy_backward: grad_x: it shares memory with grad_table");
}

static void empty_outputs_overlap_nothing(void **state) {
  (void)state;
  for (int t = 0; t < TOY_NUM_TENSORS; ++t) {
    for (int a = 0; a < toy_tensors[t].rank; ++a) {
      if (toy_tensors[t].axes[a].dim == TOY_H) call.view[t].shape[a] = 0;
    }
  }
  tensor(TOY_GRAD_X)->data = tensor(TOY_G)->data;
  call.view[TOY_GRAD_X].stride[0] = 0;
  toy_accepted(&call);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(an_output_must_own_its_elements, fresh),
      cmocka_unit_test_setup(inputs_may_share_memory, fresh),
      cmocka_unit_test_setup(an_output_shares_with_no_input_and_no_output, fresh),
      cmocka_unit_test_setup(an_output_may_replace_what_is_not_read, fresh),
      cmocka_unit_test_setup(interleaved_views_of_one_buffer_are_apart, fresh),
      cmocka_unit_test_setup(in_place_wants_the_very_tensor, fresh),
      cmocka_unit_test_setup(in_place_frees_no_other_output, fresh),
      cmocka_unit_test_setup(empty_outputs_overlap_nothing, fresh),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
