#include "harness/evidence/protocol.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "harness/evidence/expect.h"
#include "harness/timing/bench.h"

static double number_of(const json_t *source, const char *key) {
  return json_number_value(json_object_get(source, key));
}

static bool on_gpu(const rge_entry *entry) { return strncmp(entry->device, "cuda", 4) == 0; }

static void lower(rge_record *record, const char *what) { rge_problem_add(&record->problems, RGE_LOWERS, "%s", what); }

/* ---- calls of a case ---- */

void rge_check_calls(const json_t *source, const json_t *protocol, rge_entry *entry, const rge_case *item) {
  const json_t *stated = json_object_get(source, "timed_calls"), *most = json_object_get(protocol, "timed_calls");
  const json_t *warmups = json_object_get(source, "warmup_calls"),
               *most_warmups = json_object_get(protocol, "warmup_calls");
  const double calls = json_number_value(stated), repetitions = number_of(protocol, "repetitions");
  const bool no_budget = json_is_null(json_object_get(protocol, "budget_s"));
  if (stated == NULL || most == NULL || warmups == NULL || most_warmups == NULL) return; /* the schema check said so */
  if (calls * repetitions != item->sample.count) {
    rge_case_problem(entry, item, RGE_LOWERS, "%.0f timed calls in %.0f repetitions are not its %d samples", calls,
                     repetitions, item->sample.count);
  } else if (item->floor_sample.count > 0 && item->floor_sample.count != item->sample.count) {
    rge_case_problem(entry, item, RGE_LOWERS, "it has %d samples, and its floor %d", item->sample.count,
                     item->floor_sample.count);
  } else if (calls < RGH_MIN_TIMED_CALLS) {
    rge_case_problem(entry, item, RGE_LOWERS, "%.0f timed calls a repetition are too few for a median", calls);
  } else if (calls > json_number_value(most) || (no_budget && calls != json_number_value(most))) {
    rge_case_problem(entry, item, RGE_LOWERS, "%.0f timed calls a repetition are not the protocol's %.0f", calls,
                     json_number_value(most));
  }
  if (json_number_value(warmups) < RGH_MIN_WARMUP_CALLS ||
      json_number_value(warmups) > json_number_value(most_warmups) ||
      (no_budget && json_number_value(warmups) != json_number_value(most_warmups))) {
    rge_case_problem(entry, item, RGE_LOWERS, "%.0f warm-up calls a repetition are not the protocol's %.0f",
                     json_number_value(warmups), json_number_value(most_warmups));
  }
  const json_t *clocks = json_object_get(source, "sm_clocks_mhz");
  if (json_is_array(clocks) && json_array_size(clocks) != (size_t)item->sample.count) {
    rge_case_problem(entry, item, RGE_LOWERS, "it has %d samples and %zu clocks", item->sample.count,
                     json_array_size(clocks));
  }
  const json_t *below = json_object_get(source, "below_roofline");
  if (json_is_boolean(below) && item->roofline_us > 0 &&
      json_is_true(below) != (item->latency_us < item->roofline_us)) {
    rge_case_problem(entry, item, RGE_LOWERS, "below_roofline is not what its latency and roofline say");
  }
}

/* ---- caches ---- */

/* Of the caches that a cold call must not find anything in; 0: not known. */
static double cache_bytes(const rge_record *record, const rge_entry *entry) {
  const json_t *environment = json_object_get(record->head, "environment");
  if (on_gpu(entry)) return number_of(json_object_get(environment, "gpu"), "l2_bytes");
  const json_t *caches = json_object_get(environment, "caches"), *last = NULL;
  for (size_t c = 0; c < json_array_size(caches); c++) {
    const json_t *cache = json_array_get(caches, c);
    if (last == NULL || number_of(cache, "level") >= number_of(last, "level")) last = cache;
  }
  return number_of(last, "bytes") * number_of(last, "instances");
}

static void check_cold(rge_record *record, const json_t *protocol) {
  const double flushed = number_of(protocol, "flush_bytes");
  if (record->warm) return;
  if (number_of(protocol, "offset_step_bytes") <= 0 || number_of(protocol, "offset_range_bytes") <= 0) {
    lower(record,
          "protocol.offset_step_bytes and offset_range_bytes: the tensors did not move, and it is not called warm");
  }
  for (int e = 0; e < record->num_entries; e++) {
    const double needed = 2 * cache_bytes(record, &record->entries[e]);
    if (flushed > 0 && flushed >= needed) continue;
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "protocol.flush_bytes: %.0f bytes do not empty the caches, which takes %.0f, and it is not called "
                    "warm",
                    flushed, needed);
    return;
  }
}

/* ---- the rest ---- */

/* Faithful runs neither draw fresh values nor compare a timed call; strict ones do both. */
static void check_name(rge_record *record, const json_t *protocol) {
  const bool strict = strcmp(record->protocol, "strict") == 0;
  if (json_is_true(json_object_get(protocol, "fresh_inputs")) != strict ||
      (number_of(protocol, "calls_compared") > 0) != strict) {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "protocol: %s, but fresh_inputs and calls_compared are those of the other protocol",
                    strict ? "strict" : "faithful");
  }
  if (number_of(protocol, "repetitions") < RGH_REPETITIONS) {
    rge_problem_add(&record->problems, RGE_LOWERS, "protocol.repetitions: fewer than %d say nothing of the spread",
                    RGH_REPETITIONS);
  }
}

static void check_device(rge_record *record, rge_entry *entry) {
  const bool gpu = on_gpu(entry), clock = strcmp(record->method, "monotonic_clock") == 0;
  const bool gpu_variant = strncmp(entry->variant, "cuda.", 5) == 0;
  const bool cpu_variant = strncmp(entry->variant, "cpu.", 4) == 0 || strcmp(entry->variant, "ref") == 0;
  if (gpu ? !gpu_variant : !cpu_variant) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s: the variant %.40s does not run on %s", entry->op->name,
                    entry->variant, entry->device);
  }
  if (record->method[0] != '\0' && gpu == clock) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s: the timer %s does not time calls on %s", entry->op->name,
                    record->method, entry->device);
  }
}

static void check_counts(rge_record *record, const json_t *cases) {
  static const char *const keys[] = {"passed", "failed", "skipped"}, *const statuses[] = {"pass", "fail", "skip"};
  for (int k = 0; k < 3; k++) {
    const json_t *stated = json_object_get(record->head, keys[k]);
    int count = 0;
    for (size_t c = 0; c < json_array_size(cases); c++) {
      const json_t *verdict = json_object_get(json_array_get(cases, c), "verify");
      const char *status = json_string_value(json_object_get(verdict, "status"));
      count += status != NULL && strcmp(status, statuses[k]) == 0;
    }
    if (stated == NULL || json_integer_value(stated) == count) continue;
    rge_problem_add(&record->problems, RGE_LOWERS, "%s is %lld, but %d of its cases did", keys[k],
                    (long long)json_integer_value(stated), count);
  }
}

/* The schema has the form; this, whether there is such a day and time. */
static void check_utc(rge_record *record) {
  struct tm parts = {0}, again;
  if (record->utc[0] == '\0') return;
  const char *end = strptime(record->utc, "%Y-%m-%dT%H:%M:%SZ", &parts);
  const time_t seconds = timegm(&parts);
  char text[32] = "";
  if (gmtime_r(&seconds, &again) != NULL) strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &again);
  if (end != NULL && *end == '\0' && strcmp(text, record->utc) == 0) return;
  rge_problem_add(&record->problems, RGE_LOWERS, "environment.utc: there is no such time as %.40s", record->utc);
}

void rge_check_protocol(rge_record *record, const json_t *cases) {
  const json_t *protocol = json_object_get(record->head, "protocol");
  if (json_is_object(protocol)) {
    check_name(record, protocol);
    check_cold(record, protocol);
  }
  for (int e = 0; e < record->num_entries; e++) check_device(record, &record->entries[e]);
  check_counts(record, cases);
  check_utc(record);
}
