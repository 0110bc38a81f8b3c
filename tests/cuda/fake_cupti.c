#include "tests/cuda/fake_cupti.h"

#include <cupti.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT fake_cupti fake_cupti_state;
#define state fake_cupti_state

static CUpti_BuffersCallbackRequestFunc ask;
static CUpti_BuffersCallbackCompleteFunc deliver;

/* One record a place, whatever its kind. */
typedef union record {
  CUpti_Activity any;
  CUpti_ActivityKernel10 kernel;
  CUpti_ActivityMemset4 set;
  CUpti_ActivityMemcpy6 copy;
} record;

EXPORT CUptiResult CUPTIAPI cuptiGetVersion(uint32_t *version) {
  *version = 130001;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char **text) {
  *text = result == CUPTI_SUCCESS ? "fine" : "made to fail";
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                           CUpti_BuffersCallbackCompleteFunc complete) {
  ask = request;
  deliver = complete;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  (void)kind;
  state.enabled++;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  (void)kind;
  state.enabled--;
  return CUPTI_SUCCESS;
}

static record record_of(const rgh_activity *activity) {
  record made = {0};
  switch (activity->kind) {
    case RGH_ACTIVITY_KERNEL:
      made.kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      made.kernel.start = activity->begin_ns;
      made.kernel.end = activity->end_ns;
      break;
    case RGH_ACTIVITY_COPY:
      made.copy.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
      made.copy.start = activity->begin_ns;
      made.copy.end = activity->end_ns;
      made.copy.bytes = activity->bytes;
      break;
    case RGH_ACTIVITY_SET:
      made.set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
      made.set.start = activity->begin_ns;
      made.set.end = activity->end_ns;
      made.set.bytes = activity->bytes;
      made.set.value = activity->value;
      break;
  }
  return made;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag) {
  (void)flag;
  if (state.cannot_flush) return CUPTI_ERROR_UNKNOWN;
  int now = state.flushes++ == 0 ? state.at_once : 1;
  if (now > state.count - state.handed_out) now = state.count - state.handed_out;
  if (now == 0) return CUPTI_SUCCESS;
  uint8_t *buffer;
  size_t bytes, most;
  ask(&buffer, &bytes, &most);
  for (int i = 0; i < now; ++i) ((record *)(void *)buffer)[i] = record_of(&state.activity[state.handed_out + i]);
  state.handed_out += now;
  deliver(NULL, 0, buffer, bytes, (size_t)now * sizeof(record));
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **at) {
  record *next = *at == NULL ? (record *)(void *)buffer : (record *)(void *)*at + 1;
  if ((uint8_t *)next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  *at = &next->any;
  return CUPTI_SUCCESS;
}

EXPORT CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped) {
  (void)context;
  (void)stream;
  *dropped = state.dropped;
  return CUPTI_SUCCESS;
}
