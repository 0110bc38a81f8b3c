/* Gathering and scattering rows of any dtype, stride and length. */
#include "src/simd/rows.h"

#include "tests/simd/level_test.h"

enum { LONGEST = 2 * RG_VF_WIDTH + 3, WIDEST = 9, ELEMENTS = 2 * LONGEST * WIDEST + 8 };
static const int64_t strides[] = {1, 2, 3, WIDEST, -1, -2, -WIDEST};
enum { NUM_STRIDES = sizeof strides / sizeof *strides };

/* The element that a row starts at, so that all of it lies inside an array of ELEMENTS and some is left around it. */
static int64_t start_of(int64_t stride) { return 4 + (stride < 0 ? -stride * LONGEST : 0); }

static void gather_reads_strided_elements(void **state) {
  (void)state;
  uint64_t seed = 6;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    double memory[ELEMENTS];
    for (int64_t i = 0; i < ELEMENTS; i++) rg_dtype_write(dtype, memory, i, (double)random_real(&seed));
    for (int k = 0; k <= NUM_STRIDES; k++) {
      const int64_t stride = k < NUM_STRIDES ? strides[k] : 0, offset = start_of(stride);
      for (int64_t n = 0; n <= LONGEST; n++) {
        rg_real row[LONGEST + 1];
        for (int64_t i = 0; i <= LONGEST; i++) row[i] = 77;
        rg_row_gather(dtype, memory, offset, stride, row, n);
        for (int64_t i = 0; i <= LONGEST; i++) {
          const double want = i < n ? rg_dtype_read(dtype, memory, offset + i * stride) : 77.0;
          assert_same_value((double)row[i], want);
        }
      }
    }
  }
}

static void scatter_writes_strided_elements_alone(void **state) {
  (void)state;
  uint64_t seed = 7;
  for (int d = 0; d < NUM_LEVEL_DTYPES; d++) {
    const rg_dtype dtype = level_dtypes[d];
    for (int k = 0; k < NUM_STRIDES; k++) {
      for (int64_t n = 0; n <= LONGEST; n++) {
        const int64_t offset = start_of(strides[k]);
        double memory[ELEMENTS], want[ELEMENTS];
        rg_real row[LONGEST];
        memset(memory, 0x3c, sizeof memory);
        memset(want, 0x3c, sizeof want);
        for (int64_t i = 0; i < n; i++) {
          row[i] = random_real(&seed);
          rg_dtype_write(dtype, want, offset + i * strides[k], (double)row[i]);
        }
        rg_row_scatter(dtype, memory, offset, strides[k], row, n);
        assert_memory_equal(memory, want, sizeof memory);
      }
    }
  }
}

int main(void) {
  if (!level_runs_here()) return TEST_SKIPPED;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gather_reads_strided_elements),
      cmocka_unit_test(scatter_writes_strided_elements_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
