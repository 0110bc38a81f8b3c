/* Any bytes as a suite file: the reader takes them or says in one line why not, and what it takes can be laid out. */
#include <stdlib.h>
#include <string.h>

#include "harness/cases/suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
  if (!holds) abort();
}

/* What a run would ask of a case before it allocates anything. */
static void lay_out(const rgh_case *item) {
  demand(item->name != NULL && item->op != NULL);
  demand(rgh_case_bytes(item) >= 0);
  for (int t = 0; t < item->op->num_tensors; ++t) {
    int64_t shape[RG_MAX_RANK], stride[RG_MAX_RANK], origin;
    const int64_t elements = rgh_case_shape(item, t, shape);
    const int64_t span = rgh_case_strides(item, t, stride, &origin);
    demand(elements >= 0 && elements <= RGH_MAX_ELEMENTS && span >= 0 && span <= RGH_MAX_ELEMENTS);
    demand(origin >= 0 && (elements == 0 || origin < span));
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rgh_suite suite;
  rgh_message why = {""};
  if (rgh_suite_parse((const char *)data, size, "fuzz", &suite, &why)) {
    for (int c = 0; c < suite.num_cases; ++c) lay_out(&suite.cases[c]);
    rgh_suite_free(&suite);
  } else {
    demand(why.text[0] != '\0' && strchr(why.text, '\n') == NULL);
    demand(suite.cases == NULL && suite.num_cases == 0);
  }
  return 0;
}
