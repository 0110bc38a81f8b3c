/* An x86-64 machine with neither AVX2 nor AVX-512. The two functions below stand in for the library's own, which the
 * linker then leaves in the archive, so that the answer is the same on every machine. */
#include "src/hw/cpu.h"
#include "tests/testing.h"

bool rg_cpu_has_avx2(void) { return false; }
bool rg_cpu_has_avx512(void) { return false; }

static const char *const wide[] = {"cpu.avx2", "cpu.avx512"};

static void wide_levels_cannot_be_forced(void **state) {
  (void)state;
  for (int i = 0; i < 2; ++i) {
    rg_context *context;
    assert_int_equal(rg_context_create(&context, TEST_CPU, &(rg_context_options){.variant = wide[i]}), RG_ERR_HARDWARE);
    assert_null(context);
  }
}

static void a_call_that_names_a_wide_level_is_refused(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  for (int i = 0; i < 2; ++i) {
    assert_int_equal(rg_dev_run(context, rg_dev_operator((rg_op_id)0, RG_BACKWARD), wide[i], NULL), RG_ERR_HARDWARE);
    assert_text_has(rg_last_error(context), wide[i]);
  }
  rg_context_destroy(context);
}

static void the_default_falls_back_to_the_baseline(void **state) {
  (void)state;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, TEST_CPU, NULL), RG_OK);
  assert_string_equal(rg_dev_default_variant(context), "cpu.scalar");
  rg_context_destroy(context);
}

static void the_list_says_what_is_lacking(void **state) {
  (void)state;
  int lacking = 0;
  for (int v = 0; v < rg_dev_num_variants(); ++v) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (info.device != TEST_CPU.device_type || info.status != RG_ERR_HARDWARE) continue;
    ++lacking;
    assert_text_has(info.reason, "AVX");
  }
  assert_int_equal(lacking, 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(wide_levels_cannot_be_forced),
      cmocka_unit_test(a_call_that_names_a_wide_level_is_refused),
      cmocka_unit_test(the_default_falls_back_to_the_baseline),
      cmocka_unit_test(the_list_says_what_is_lacking),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
