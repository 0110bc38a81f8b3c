#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "harness/cuda/cupti_library.h"
#include "harness/cuda/gpu_state.h"

enum {
  BUFFER_BYTES = 256 << 10,
  MAX_ACTIVITIES = 4096, /* of one call; an operator has a handful */
  /* Records may come a little after the work: how often they are asked for before that counts as an error. */
  MAX_FLUSHES = 100,
};

typedef struct cupti_timer {
  rgh_cupti cupti;
  rgh_cuda_flush flush;
  rgh_activity list[MAX_ACTIVITIES]; /* of the call being timed */
  int count;
  bool overflowed;
  size_t dropped; /* records that CUPTI had no room for */
} cupti_timer;

/* CUPTI belongs to the process and hands its callbacks no argument of ours, so the timer that they serve stands here:
 * one at a time. The lock is for CUPTI's own threads. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cupti_timer *active;

static const CUpti_ActivityKind kinds[] = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                           CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- records ---- */

static bool read_record(const CUpti_Activity *record, rgh_activity *activity) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_KERNEL:
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: {
      /* The times have had their place since the fourth version of this record. */
      const CUpti_ActivityKernel4 *kernel = (const CUpti_ActivityKernel4 *)record;
      *activity = (rgh_activity){RGH_ACTIVITY_KERNEL, kernel->start, kernel->end, 0, 0};
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMCPY2: {
      const CUpti_ActivityMemcpy *copy = (const CUpti_ActivityMemcpy *)record;
      *activity = (rgh_activity){RGH_ACTIVITY_COPY, copy->start, copy->end, copy->bytes, 0};
      return true;
    }
    case CUPTI_ACTIVITY_KIND_MEMSET: {
      const CUpti_ActivityMemset *set = (const CUpti_ActivityMemset *)record;
      *activity = (rgh_activity){RGH_ACTIVITY_SET, set->start, set->end, set->bytes, set->value};
      return true;
    }
    default:
      return false;
  }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *max_records) {
  *buffer = aligned_alloc(ACTIVITY_RECORD_ALIGNMENT, BUFFER_BYTES);
  *bytes = *buffer != NULL ? BUFFER_BYTES : 0;
  *max_records = 0; /* as many as fit */
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes, size_t valid) {
  (void)bytes;
  pthread_mutex_lock(&lock);
  cupti_timer *t = active;
  CUpti_Activity *record = NULL;
  while (t != NULL && t->cupti.cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS) {
    if (t->count == MAX_ACTIVITIES) {
      t->overflowed = true;
    } else {
      t->count += read_record(record, &t->list[t->count]);
    }
  }
  size_t dropped = 0;
  if (t != NULL) t->cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
  if (t != NULL) t->dropped += dropped;
  pthread_mutex_unlock(&lock);
  free(buffer);
}

/* ---- timing ---- */

static bool good(const cupti_timer *t, CUptiResult result, const char *what, rgh_message *why) {
  if (result == CUPTI_SUCCESS) return true;
  const char *text = NULL;
  t->cupti.cuptiGetResultString(result, &text);
  return rgh_fail(why, "CUPTI, %s: %s", what, text != NULL ? text : "unknown error");
}

static bool time_call(rgh_timer *timer, rgh_timed_call call, void *argument, double *us, rgh_message *why) {
  cupti_timer *t = timer->state;
  const rgh_cuda *cuda = t->flush.cuda;
  pthread_mutex_lock(&lock);
  t->count = 0;
  pthread_mutex_unlock(&lock);
  if (!rgh_cuda_flush_run(&t->flush, why) || !call(argument, why) || !rgh_cuda_wait(cuda, "the timed call", why)) {
    return false;
  }
  /* Until the call's records are there and asking once more brings no other. */
  bool found = false, lost = false;
  for (int f = 0, before = -1, count = 0; f < MAX_FLUSHES && !(found && before == count); f++) {
    before = count;
    if (!good(t, t->cupti.cuptiActivityFlushAll(0), "fetching the records", why)) return false;
    pthread_mutex_lock(&lock);
    count = t->count;
    lost = t->overflowed || t->dropped > 0;
    found = rgh_activity_span(t->list, count, t->flush.mark, us, why);
    pthread_mutex_unlock(&lock);
  }
  return lost ? rgh_fail(why, "CUPTI lost records of the GPU's activities") : found;
}

static void destroy(rgh_timer *timer) {
  cupti_timer *t = timer->state;
  if (t == NULL) return;
  if (active == t) {
    for (int k = 0; k < NUM_KINDS; k++) t->cupti.cuptiActivityDisable(kinds[k]);
    t->cupti.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    pthread_mutex_lock(&lock);
    active = NULL;
    pthread_mutex_unlock(&lock);
  }
  /* The library stays loaded: its own threads may still be in it. */
  rgh_cuda_flush_destroy(&t->flush);
  free(t);
  *timer = (rgh_timer){0};
}

static bool start(cupti_timer *t, rgh_message *why) {
  pthread_mutex_lock(&lock);
  const bool taken = active != NULL;
  if (!taken) active = t;
  pthread_mutex_unlock(&lock);
  if (taken) return rgh_fail(why, "CUPTI serves one timer at a time");
  if (!good(t, t->cupti.cuptiActivityRegisterCallbacks(give_buffer, take_buffer), "registering", why)) return false;
  for (int k = 0; k < NUM_KINDS; k++) {
    if (!good(t, t->cupti.cuptiActivityEnable(kinds[k]), "starting to record", why)) return false;
  }
  return true;
}

bool rgh_cuda_cupti_timer_create(rgh_timer *timer, rgh_cuda *cuda, bool warm, rgh_message *why) {
  cupti_timer *t = calloc(1, sizeof *t);
  if (t == NULL) return rgh_fail(why, "no memory");
  *timer = (rgh_timer){.method = "cupti", .state = t, .time = time_call, .destroy = destroy};
  if (rgh_cupti_load(&t->cupti, why) && rgh_cuda_flush_create(&t->flush, cuda, warm, why) && start(t, why)) {
    timer->library_version = (int)t->cupti.version;
    timer->flush_bytes = warm ? 0 : t->flush.mark.bytes;
    return true;
  }
  destroy(timer);
  return false;
}
