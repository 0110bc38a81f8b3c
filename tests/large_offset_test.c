/* Offsets past 2^31 elements: every operator on small tensors whose first axis has a stride larger than that. The
 * memory between is mapped and never touched. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "harness/cases/fill.h"
#include "harness/verify/compare.h"
#include "tests/testing.h"

static const int64_t STRIDE = (INT64_C(1) << 31) + 64; /* elements */

typedef struct call {
  rgh_case item;
  rg_operator const *op;
  void *args;
  test_view view[RG_MAX_TENSORS];
  void *mapped[RG_MAX_TENSORS];
  size_t mapped_bytes[RG_MAX_TENSORS];
} call;

/* Sizes of 8, but 2 along the first axis of a tensor, so that as little as can be is mapped. */
static void choose_sizes(rgh_case *item) {
  const rg_operator *op = item->op;
  for (int d = 0; d < op->num_dims; ++d) item->dim[d] = 8;
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    if (spec->rank > 1 && spec->axes[0].dim != RG_AXIS_FIXED) item->dim[spec->axes[0].dim] = 2;
  }
  rgh_message why;
  if (!rgh_case_finish(item, &why)) fail_msg("%s: %s", op->name, why.text);
}

/* False when the system does not map that much. */
static bool map_tensor(call *c, int t) {
  const rg_tensor_spec *spec = &c->op->tensors[t];
  int64_t shape[RG_MAX_RANK];
  const int64_t elements = rgh_case_shape(&c->item, t, shape);
  const int64_t reach = spec->rank > 1 ? (shape[0] - 1) * STRIDE + elements / shape[0] : elements;
  c->mapped_bytes[t] = (size_t)reach * rg_dtype_size(c->item.dtype[t]);
  c->mapped[t] =
      mmap(NULL, c->mapped_bytes[t], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (c->mapped[t] == MAP_FAILED) {
    c->mapped[t] = NULL;
    return false;
  }
  test_dense(&c->view[t], c->mapped[t], c->item.dtype[t], spec->rank, shape);
  if (spec->rank > 1) c->view[t].stride[0] = STRIDE;
  rg_dev_set_tensor(c->op, c->args, t, &c->view[t].tensor);
  return true;
}

static void judge(call *c, rg_context *context, const char *variant) {
  rg_problem problem;
  if (rg_dev_resolve(context, c->op, c->args, &problem) != RG_OK) fail_msg("%s", rg_last_error(context));
  for (int t = 0; t < c->op->num_tensors; ++t) {
    if (c->op->tensors[t].role == RG_INPUT && problem.tensor[t].dtype != RG_DTYPE_NONE) {
      rgh_fill_tensor(&c->item, t, 1, &problem.tensor[t], 1);
    }
  }
  if (rg_dev_run(context, c->op, variant, c->args) != RG_OK) fail_msg("%s", rg_last_error(context));
  rg_reference_output out[RG_MAX_TENSORS] = {{0}};
  for (int t = 0; t < c->op->num_tensors; ++t) {
    if (c->op->tensors[t].role != RG_OUTPUT) continue;
    const size_t elements = (size_t)rg_tensor_elements(&problem.tensor[t]);
    out[t].value = calloc(2 * elements, sizeof(double));
    assert_non_null(out[t].value);
    out[t].magnitude = out[t].value + elements;
  }
  c->op->reference(&problem, out);
  static const int64_t nowhere[RG_MAX_RANK] = {0};
  rgh_comparison comparison;
  rgh_comparison_init(&comparison);
  for (int t = 0; t < c->op->num_tensors; ++t) {
    if (out[t].value == NULL) continue;
    rgh_compare(&problem.tensor[t], &out[t], t, nowhere, &comparison);
    free(out[t].value);
  }
  assert_true(comparison.compared > 0);
  if (comparison.out_of_contract > 0) {
    fail_msg("%s %s: %d elements of %d break the contract, the worst in %s", c->op->name, variant,
             (int)comparison.out_of_contract, (int)comparison.compared, c->op->tensors[comparison.tensor].name);
  }
}

static void offsets_past_two_to_the_31(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  bool mapped = true;
  for (int index = 0; index < RG_NUM_OPERATORS && mapped; ++index) {
    static char name[] = "large";
    call c = {.op = rg_dev_operator_at(index)};
    rgh_case_init(&c.item, c.op);
    c.item.name = name;
    choose_sizes(&c.item);
    c.args = calloc(1, c.op->args_size);
    assert_non_null(c.args);
    rgh_case_set_params(&c.item, c.args);
    for (int t = 0; t < c.op->num_tensors && mapped; ++t) {
      if ((rgh_case_given(&c.item) & RG_BIT(t)) != 0) mapped = map_tensor(&c, t);
    }
    for (int v = 0; v < rg_dev_num_variants() && mapped; ++v) {
      rg_variant_info info;
      rg_dev_variant(v, &info);
      if (info.device == kDLCPU && info.status == RG_OK) judge(&c, context, info.name);
    }
    for (int t = 0; t < c.op->num_tensors; ++t) {
      if (c.mapped[t] != NULL) munmap(c.mapped[t], c.mapped_bytes[t]);
    }
    free(c.args);
  }
  rg_context_destroy(context);
  if (!mapped) {
    fprintf(stderr, "this system maps no tens of GiB that are never touched\n");
    exit(TEST_SKIPPED);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(offsets_past_two_to_the_31)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
