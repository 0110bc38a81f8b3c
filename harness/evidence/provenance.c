#include "harness/evidence/provenance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/samples.h"
#include "harness/evidence/text.h"
#include "harness/record/environment.h"

static const json_t *environment_of(const rge_record *record) { return json_object_get(record->head, "environment"); }

static const json_t *gpu_of(const rge_record *record) { return json_object_get(environment_of(record), "gpu"); }

static bool on_gpu(const char *device) { return strncmp(device, "cuda", 4) == 0; }

char *rge_hardware_name(const rge_record *record, const char *device) {
  const char *name = on_gpu(device) ? json_string_value(json_object_get(gpu_of(record), "name"))
                                    : rge_record_text(record, "environment", "cpu_model");
  return strdup(name != NULL && *name != '\0' ? name : on_gpu(device) ? "unknown GPU" : "unknown CPU");
}

static const char *method_words(const char *method) {
  if (strcmp(method, "cupti") == 0) return "CUPTI";
  if (strcmp(method, "cuda_events") == 0) return "CUDA events";
  return strcmp(method, "monotonic_clock") == 0 ? "monotonic clock" : "unknown timer";
}

char *rge_setting_text(const rge_record *record, const char *device, int64_t threads) {
  rge_text text = {0};
  if (!on_gpu(device)) {
    const json_int_t online = json_integer_value(json_object_get(environment_of(record), "cpus_online"));
    rge_text_format(&text, "%lld thread%s of %lld CPU%s, ", (long long)threads, threads == 1 ? "" : "s",
                    (long long)online, online == 1 ? "" : "s");
  }
  rge_text_format(&text, "%s, %s%s", method_words(record->method),
                  record->protocol[0] != '\0' ? record->protocol : "unknown protocol",
                  record->warm ? ", warm caches" : "");
  if (!text.failed) return text.bytes;
  rge_text_free(&text);
  return NULL;
}

char *rge_setup_text(const rge_entry *entry) {
  const json_t *gpu = gpu_of(entry->record);
  if (!on_gpu(entry->device)) return NULL;
  rge_text text = {0};
  const char *driver = json_string_value(json_object_get(gpu, "driver_version"));
  const char *toolkit = json_string_value(json_object_get(gpu, "toolkit_version"));
  rge_text_format(&text, "driver %s, built with CUDA %s", driver != NULL ? driver : "unknown",
                  toolkit != NULL ? toolkit : "unknown");
  return text.bytes;
}

/* ---- one machine or two ---- */

static bool same_value(const json_t *a, const json_t *b, const char *key) {
  const json_t *x = json_object_get(a, key), *y = json_object_get(b, key);
  return x == y || (x != NULL && y != NULL && json_equal(x, y));
}

/* A new kernel counts a machine's memory a little differently. */
static bool same_memory(const json_t *a, const json_t *b) {
  const double x = json_number_value(json_object_get(a, "memory_bytes"));
  const double y = json_number_value(json_object_get(b, "memory_bytes"));
  return x - y < 1e9 && y - x < 1e9;
}

bool rge_same_machine(const rge_record *a, const rge_record *b) {
  const json_t *x = environment_of(a), *y = environment_of(b);
  return same_value(x, y, "cpu_model") && same_value(x, y, "cpus_online") && same_memory(x, y) &&
         (!json_is_object(gpu_of(a)) || !json_is_object(gpu_of(b)) || same_value(gpu_of(a), gpu_of(b), "name"));
}

/* ---- what is missing ---- */

static void check_commit(rge_record *record) {
  const json_t *dirty = json_object_get(environment_of(record), "dirty");
  if (record->commit[0] == '\0') {
    rge_problem_add(&record->problems, RGE_LOWERS, "environment.commit is not known: there is no source to build");
  } else if (strlen(record->commit) < 40 || strspn(record->commit, "0123456789abcdef") != strlen(record->commit)) {
    rge_problem_add(&record->problems, RGE_LOWERS, "environment.commit is no whole commit id");
  } else if (json_is_true(dirty)) {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "environment.dirty: the checkout held uncommitted changes, so the commit is not its source");
  } else if (!json_is_false(dirty)) {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "environment.dirty is not known: the checkout may have held uncommitted changes");
  }
}

/* Whether this build was made from the record's commit, so that its device code can be compared. */
static bool built_from(const char *commit) {
  char version[128], part[16];
  rgh_version_text(version, sizeof version);
  snprintf(part, sizeof part, "%.12s", commit);
  return strlen(commit) >= 12 && strstr(version, part) != NULL && strstr(version, "modified") == NULL;
}

static void check_image(rge_entry *entry) {
  const json_t *images = json_object_get(gpu_of(entry->record), "images");
  const char *stated = json_string_value(json_object_get(images, entry->op->name));
  if (stated == NULL) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s: the digest of its kernel image is missing", entry->op->name);
    return;
  }
  const void *image;
  size_t bytes;
  char digest[RGE_DIGEST_BYTES];
  rg_dev_cuda_image(rg_dev_find_operator(entry->op->name), &image, &bytes);
  if (image == NULL || !built_from(entry->record->commit)) return;
  rge_digest(image, bytes, digest);
  if (strcmp(strchr(digest, ':') + 1, stated) == 0) return;
  rge_problem_add(&entry->problems, RGE_NOTE, "%s: the kernel image of this build, of the same commit, is another one",
                  entry->op->name);
}

/* The roofline follows from the case's bytes and the datasheet's bandwidth, whatever the record says of it. */
static void check_roofline(rge_entry *entry) {
  const double gb_per_s = json_number_value(json_object_get(gpu_of(entry->record), "datasheet_gb_per_s"));
  if (gb_per_s <= 0) {
    rge_problem_add(&entry->problems, RGE_LOWERS,
                    "%s: environment.gpu.datasheet_gb_per_s is missing: nothing says how fast its bytes can move",
                    entry->op->name);
    return;
  }
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    const double roofline_us = (double)(item->read_bytes + item->write_bytes) * 1e-3 / gb_per_s;
    if (item->timed && item->latency_us < roofline_us) {
      rge_problem_add(&entry->problems, RGE_LOWERS, "%s %s: %.4g us is below the roofline that its bytes give, %.4g us",
                      entry->op->name, item->name, item->latency_us, roofline_us);
    } else if (item->timed && !rge_same(item->roofline_us, roofline_us)) {
      rge_problem_add(&entry->problems, RGE_LOWERS,
                      "%s %s: roofline_us does not follow from its bytes and the datasheet's bandwidth",
                      entry->op->name, item->name);
    }
  }
}

static void check_gpu(rge_record *record) {
  const json_t *gpu = gpu_of(record);
  bool used = false;
  for (int e = 0; e < record->num_entries; e++) {
    rge_entry *entry = &record->entries[e];
    if (!on_gpu(entry->device)) continue;
    used = true;
    if (!json_is_object(gpu)) continue;
    check_image(entry);
    check_roofline(entry);
  }
  if (used && !json_is_object(gpu)) {
    rge_problem_add(&record->problems, RGE_LOWERS, "environment.gpu is missing: which GPU it was is not known");
  } else if (used && json_string_value(json_object_get(gpu, "name")) == NULL) {
    rge_problem_add(&record->problems, RGE_LOWERS, "environment.gpu.name is not known");
  }
}

static void check_suite(rge_record *record, const rgh_suite *suite) {
  if (json_is_null(json_object_get(record->head, "suite_digest"))) {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "suite_digest is not known: nothing says which sizes and dtypes the suite %s had", record->suite);
  } else if (record->suite_digest[0] != '\0' && suite != NULL && strcmp(record->suite_digest, suite->digest) != 0) {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "suite_digest: the suite %s of the record is another one than the suite of that name here",
                    record->suite);
  }
}

static void check_machine_load(rge_record *record) {
  const json_t *environment = environment_of(record);
  const double load = json_number_value(json_object_get(environment, "load_at_start"));
  const double cpus = json_number_value(json_object_get(environment, "cpus_online"));
  if (cpus > 0 && load > cpus / 2) {
    rge_problem_add(&record->problems, RGE_NOTE, "the machine was busy when the run began: load %.1f on %.0f CPUs",
                    load, cpus);
  }
}

void rge_check_provenance(rge_record *record, const rgh_suite *suite) {
  check_commit(record);
  check_gpu(record);
  check_suite(record, suite);
  check_machine_load(record);
  if (record->warm) {
    rge_problem_add(&record->problems, RGE_NOTE, "timed with warm caches: not ranked beside cold ones");
  }
}
