/* Verification can fail: for every case of the smoke suite, and so for every operator, dtype and option, one element of
 * each output is moved by 4 allowances and must be reported with its tensor and index. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/cases/suite.h"
#include "harness/verify/verify.h"
#include "tests/testing.h"

static rgh_suite smoke;
static rg_context *context;

static int load(void **state) {
  (void)state;
  rgh_message why;
  if (!rgh_suite_load(ROPEGRAD_SUITES "/smoke.json", &smoke, &why)) {
    fprintf(stderr, "%s\n", why.text);
    return -1;
  }
  return rg_context_create(&context, TEST_CPU, NULL);
}

static int unload(void **state) {
  (void)state;
  rgh_suite_free(&smoke);
  rg_context_destroy(context);
  return 0;
}

/* The contract of rg_reference_output, written out a second time. */
static double allowance(rg_dtype dtype, double value, double magnitude, int64_t terms) {
  const double u = dtype == RG_F64 ? 0x1p-52 : 0x1p-24; /* float64: 2^-53 for each of the two sides */
  double allowed = u * ((8 + sqrt((double)terms) / 16) * magnitude + fabs(value));
  if (dtype == RG_BF16 || dtype == RG_F16) {
    const double smallest = dtype == RG_BF16 ? 0x1p-126 : 0x1p-14;
    const double ulp = ldexp(1.0, ilogb(fmax(fabs(value) + allowed, smallest))) * (dtype == RG_BF16 ? 0x1p-7 : 0x1p-10);
    allowed += ulp / 2;
  }
  return allowed;
}

static double *doubles(int64_t count) {
  double *memory = calloc((size_t)count + 1, sizeof *memory);
  assert_non_null(memory);
  return memory;
}

/* Plants the error in element number `e` of the output. */
static void plant(const rgh_case *item, const rgh_buffers *buffers, const rg_problem *problem,
                  const rg_reference_output *reference, int tensor, int64_t e) {
  const rg_tensor *output = &problem->tensor[tensor];
  int64_t index[RG_MAX_RANK], place = 0, rest = e;
  for (int a = output->rank - 1; a >= 0; --a) {
    index[a] = rest % output->shape[a];
    rest /= output->shape[a];
    place += index[a] * output->stride[a];
  }
  const double right = rg_dtype_read(output->dtype, output->data, place);
  if (!isfinite(reference->value[e])) return;
  const double allowed = reference->magnitude[e] == RG_EXACT
                             ? 0
                             : allowance(output->dtype, reference->value[e], reference->magnitude[e], reference->terms);
  /* Where nothing is allowed, any error will do. Towards zero: past a power of two an ulp would be twice what it is. */
  const double error = copysign(allowed > 0 ? 4 * allowed : 1, reference->value[e]);
  rg_dtype_write(output->dtype, output->data, place, reference->value[e] - error);

  rgh_comparison worst;
  rgh_message why;
  char part[RGH_INDEX_TEXT + 64], text[RGH_INDEX_TEXT];
  rgh_index_text(index, output->rank, text);
  snprintf(part, sizeof part, "%s%s is ", item->op->tensors[tensor].name, text);
  if (rgh_verify_outputs(context, buffers, &worst, &why)) fail_msg("%s: %s: not seen", item->name, part);
  assert_text_has(why.text, part);
  assert_int_equal(worst.tensor, tensor);
  assert_int_equal(worst.out_of_contract, 1);
  assert_memory_equal(worst.index, index, (size_t)output->rank * sizeof index[0]);
  /* The planted value was rounded, by at most the half ulp that is a part of the allowance. */
  if (allowed == 0) {
    assert_true(isinf(worst.allowance_used));
  } else {
    assert_true(worst.allowance_used > 2.9 && worst.allowance_used < 5.1);
  }
  rg_dtype_write(output->dtype, output->data, place, right);
}

static void four_allowances_are_reported(void **state) {
  (void)state;
  uint32_t planted[RG_NUM_OPERATORS] = {0};
  for (int i = 0; i < smoke.num_cases; ++i) {
    const rgh_case *item = &smoke.cases[i];
    const rg_operator *op = item->op;
    rgh_buffers buffers;
    rgh_message why;
    rg_problem problem;
    rg_reference_output out[RG_MAX_TENSORS] = {{0}};
    if (!rgh_buffers_create(&buffers, item, 1, 0, 1, &why)) fail_msg("%s", why.text);
    assert_int_equal(rg_dev_resolve(context, op, buffers.args, &problem), RG_OK);
    for (int t = 0; t < op->num_tensors; ++t) {
      if (op->tensors[t].role != RG_OUTPUT || problem.tensor[t].dtype == RG_DTYPE_NONE) continue;
      out[t].value = doubles(rg_tensor_elements(&problem.tensor[t]));
      out[t].magnitude = doubles(rg_tensor_elements(&problem.tensor[t]));
    }
    /* Before the run, which may replace inputs. */
    op->reference(&problem, out);
    if (rg_dev_run(context, op, NULL, buffers.args) != RG_OK) fail_msg("%s: %s", item->name, rg_last_error(context));
    rgh_comparison worst;
    if (!rgh_verify_outputs(context, &buffers, &worst, &why)) fail_msg("%s: %s", item->name, why.text);
    for (int t = 0; t < op->num_tensors; ++t) {
      if (out[t].value == NULL) continue;
      const int64_t elements = rg_tensor_elements(&problem.tensor[t]);
      const int64_t victims[] = {0, elements / 3, elements - 1};
      for (int v = 0; v < 3 && elements > 0; ++v) plant(item, &buffers, &problem, &out[t], t, victims[v]);
      if (elements > 0) planted[rg_dev_find_operator(op->name)] |= RG_BIT(t);
      free(out[t].value);
      free(out[t].magnitude);
    }
    rgh_buffers_destroy(&buffers);
  }
  for (int index = 0; index < RG_NUM_OPERATORS; ++index) {
    const rg_operator *op = rg_dev_operator_at(index);
    for (int t = 0; t < op->num_tensors; ++t) {
      if (op->tensors[t].role != RG_OUTPUT || (planted[index] & RG_BIT(t)) != 0) continue;
      fail_msg("the smoke suite has no case with elements in %s of %s", op->tensors[t].name, op->name);
    }
  }
}

/* Every variant of the CPU that runs here, the reference's own included, twice on the same inputs. */
static void the_smoke_suite_passes(void **state) {
  (void)state;
  for (int v = 0; v < rg_dev_num_variants(); ++v) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (info.device != TEST_CPU.device_type) continue;
    for (int i = 0; i < smoke.num_cases; ++i) {
      const rgh_verify_options options = {.variant = info.name, .repeats = 2, .seed = 3};
      rgh_verdict verdict;
      rgh_verify_case(context, &smoke.cases[i], &options, &verdict);
      const rgh_status expected = info.status == RG_OK ? RGH_PASS : RGH_SKIP;
      if (verdict.status != expected) {
        fail_msg("%s %s %s: %s: %s", info.name, smoke.cases[i].op->name, smoke.cases[i].name,
                 rgh_status_name(verdict.status), verdict.reason.text);
      }
      assert_int_equal(verdict.reason.text[0] == '\0', expected == RGH_PASS);
    }
  }
}

static void what_cannot_run_is_no_pass(void **state) {
  (void)state;
  const rgh_verify_options nonsense = {.variant = "cpu.nonsense", .seed = 1};
  rgh_verdict verdict;
  rgh_verify_case(context, &smoke.cases[0], &nonsense, &verdict);
  assert_int_equal(verdict.status, RGH_FAIL);
  assert_int_equal(verdict.call, RG_ERR_VARIANT);
  assert_text_has(verdict.reason.text, "cpu.nonsense");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(four_allowances_are_reported),
      cmocka_unit_test(the_smoke_suite_passes),
      cmocka_unit_test(what_cannot_run_is_no_pass),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
