#include "harness/timing/activity.h"

#include <stddef.h>

static bool is_mark(const rgh_activity *activity, rgh_activity_mark mark) {
  return activity->kind == RGH_ACTIVITY_SET && activity->bytes == mark.bytes && activity->value == mark.value;
}

bool rgh_activity_span(const rgh_activity *list, int count, rgh_activity_mark mark, double *us, rgh_message *why) {
  const rgh_activity *found = NULL;
  for (int i = 0; i < count; i++) {
    if (list[i].begin_ns == 0 || list[i].end_ns < list[i].begin_ns) {
      return rgh_fail(why, "an activity of the GPU was recorded without its times");
    }
    if (!is_mark(&list[i], mark)) continue;
    if (found != NULL) return rgh_fail(why, "the GPU's records show the memset before the call twice");
    found = &list[i];
  }
  if (found == NULL) return rgh_fail(why, "the GPU's records lack the memset before the call");
  uint64_t begin_ns = UINT64_MAX, end_ns = 0;
  for (int i = 0; i < count; i++) {
    const rgh_activity *a = &list[i];
    if (a == found) continue;
    if (a->begin_ns < found->end_ns) {
      if (a->end_ns <= found->end_ns) continue;
      return rgh_fail(why, "something ran on the GPU both during the memset before the call and after it");
    }
    if (a->begin_ns < begin_ns) begin_ns = a->begin_ns;
    if (a->end_ns > end_ns) end_ns = a->end_ns;
  }
  if (end_ns == 0) return rgh_fail(why, "the call ran nothing on the GPU");
  *us = (double)(end_ns - begin_ns) * 1e-3;
  return true;
}
