/* What every test includes: cmocka with the headers that it asks for, and tensors in a line. */
#ifndef ROPEGRAD_TESTS_TESTING_H
#define ROPEGRAD_TESTS_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* After the above, as cmocka asks. */
#include <cmocka.h>
#include <string.h>

#include "ropegrad/ropegrad_dev.h"

/* Exit status of a test that this machine cannot run; ctest counts it as skipped. The test says why first. */
enum { TEST_SKIPPED = 77 };

#define TEST_CPU ((DLDevice){kDLCPU, 0})

/* A descriptor that owns its sizes and strides: pass &view.tensor, after test_view has tied it together. */
typedef struct test_view {
  DLTensor tensor;
  int64_t shape[RG_MAX_RANK];
  int64_t stride[RG_MAX_RANK];
} test_view;

/* Row-major over `data`; `shape` has `rank` sizes. */
static inline void test_dense(test_view *view, void *data, rg_dtype dtype, int rank, const int64_t *shape) {
  int64_t elements = 1;
  for (int a = rank - 1; a >= 0; --a) {
    view->shape[a] = shape[a];
    view->stride[a] = elements;
    elements *= shape[a];
  }
  view->tensor = (DLTensor){.data = data,
                            .device = TEST_CPU,
                            .ndim = rank,
                            .dtype = rg_dtype_to_dlpack(dtype),
                            .shape = view->shape,
                            .strides = view->stride};
}

/* Fails unless `text` holds `part`, and shows both. */
#define assert_text_has(text, part)                                                        \
  do {                                                                                     \
    if (strstr((text), (part)) == NULL) fail_msg("expected '%s' in '%s'", (part), (text)); \
  } while (0)

#endif
