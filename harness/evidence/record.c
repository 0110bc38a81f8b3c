#include "harness/evidence/record.h"

#include <stdlib.h>
#include <string.h>

#include "harness/evidence/aggregate.h"
#include "harness/evidence/protocol.h"
#include "harness/evidence/provenance.h"
#include "harness/evidence/read_case.h"

const char *rge_tier_name(rge_tier tier) {
  static const char *const names[RGE_NUM_TIERS] = {"reported", "reproducible", "verified", "replicated"};
  return names[tier];
}

const char *rge_record_text(const rge_record *record, const char *part, const char *key) {
  return json_string_value(json_object_get(json_object_get(record->head, part), key));
}

/* ---- entries ---- */

static const char *text_of(const json_t *source, const char *key) {
  return json_string_value(json_object_get(source, key));
}

/* A record may hold cases of several numbers of threads, each with its own; else the environment has it for all. */
static int64_t threads_of(const rge_record *record, const json_t *source, const char *device) {
  const json_t *own = json_object_get(source, "threads");
  if (strncmp(device, "cuda", 4) == 0) return 0;
  return json_integer_value(own != NULL ? own
                                        : json_object_get(json_object_get(record->head, "environment"), "threads"));
}

/* The entry that a case belongs to, made where it is the first of its kind. NULL: no memory. */
static rge_entry *entry_for(rge_record *record, const rgh_suite *suite, const json_t *source, const rg_operator *op) {
  const bool in_place = json_is_true(json_object_get(source, "in_place"));
  const char *variant = text_of(source, "variant"), *device = text_of(source, "device");
  const int64_t threads = threads_of(record, source, device);
  for (int e = 0; e < record->num_entries; e++) {
    rge_entry *entry = &record->entries[e];
    if (entry->op == op && entry->in_place == in_place && entry->threads == threads &&
        strcmp(entry->variant, variant) == 0 && strcmp(entry->device, device) == 0) {
      return entry;
    }
  }
  rge_entry *longer = realloc(record->entries, (size_t)(record->num_entries + 1) * sizeof *longer);
  if (longer == NULL) return NULL;
  record->entries = longer;
  rge_entry *entry = &record->entries[record->num_entries++];
  *entry = (rge_entry){.op = op,
                       .in_place = in_place,
                       .variant = strdup(variant),
                       .device = strdup(device),
                       .threads = threads,
                       .hardware = rge_hardware_name(record, device),
                       .setting = rge_setting_text(record, device, threads),
                       .suite_cases = rge_suite_cases(suite, op)};
  const bool complete =
      entry->variant != NULL && entry->device != NULL && entry->hardware != NULL && entry->setting != NULL;
  return complete ? entry : NULL;
}

static bool holds_case(const rge_entry *entry, const char *name) {
  for (int c = 0; c < entry->num_cases; c++) {
    if (strcmp(entry->cases[c].name, name) == 0) return true;
  }
  return false;
}

static bool add_case(rge_record *record, const rgh_suite *suite, const json_t *source, int repetitions, size_t index) {
  const char *op_name = text_of(source, "op"), *name = text_of(source, "name");
  if (op_name == NULL || name == NULL || text_of(source, "variant") == NULL || text_of(source, "device") == NULL) {
    return true; /* the schema check has named what is missing */
  }
  const int found = rg_dev_find_operator(op_name);
  if (found < 0) {
    rge_problem_add(&record->problems, RGE_LOWERS, "cases[%zu]: there is no operator '%.60s'", index, op_name);
    return true;
  }
  rge_entry *entry = entry_for(record, suite, source, rg_dev_operator_at(found));
  if (entry == NULL) return false;
  if (holds_case(entry, name)) {
    rge_problem_add(&entry->problems, RGE_LOWERS, "%s: case %.60s is there twice", op_name, name);
    return true;
  }
  /* Doubles in size at every power of two. */
  if ((entry->num_cases & (entry->num_cases - 1)) == 0) {
    const size_t room = entry->num_cases == 0 ? 1 : 2 * (size_t)entry->num_cases;
    rge_case *longer = realloc(entry->cases, room * sizeof *longer);
    if (longer == NULL) return false;
    entry->cases = longer;
  }
  rge_case *item = &entry->cases[entry->num_cases++];
  if (!rge_case_read(source, repetitions, suite, entry, item)) return false;
  if (item->sample.count > 0) rge_check_calls(source, json_object_get(record->head, "protocol"), entry, item);
  return true;
}

static int repetitions_of(const json_t *root) {
  const json_t *stated = json_object_get(json_object_get(root, "protocol"), "repetitions");
  const json_int_t value = json_integer_value(stated);
  return value >= 1 && value <= 1000000 ? (int)value : 1;
}

/* ---- the record ---- */

static json_t *head_of(const json_t *root) {
  json_t *head = json_copy((json_t *)root);
  json_object_del(head, "cases");
  return head;
}

static const char *known(const char *text) { return text != NULL ? text : ""; }

static void read_head(rge_record *record) {
  const json_t *protocol = json_object_get(record->head, "protocol");
  record->suite = known(text_of(record->head, "suite"));
  record->suite_digest = known(text_of(record->head, "suite_digest"));
  record->utc = known(rge_record_text(record, "environment", "utc"));
  record->commit = known(rge_record_text(record, "environment", "commit"));
  record->method = known(text_of(protocol, "method"));
  record->protocol = known(text_of(protocol, "name"));
  record->warm = json_is_true(json_object_get(protocol, "warm"));
}

bool rge_record_read(const rge_file *file, const rge_suites *suites, rge_record *record, rgh_message *why) {
  const json_t *root = file->json;
  const json_t *cases = json_object_get(root, "cases");
  record->bytes = file->length;
  memcpy(record->digest, file->digest, sizeof record->digest);
  record->head = head_of(root);
  if (record->head == NULL) return rgh_fail(why, "no memory");
  read_head(record);
  if (json_array_size(cases) == 0) return rgh_fail(why, "it has no cases");
  const rgh_suite *suite = rge_suites_find(suites, record->suite);
  const int repetitions = repetitions_of(root);
  for (size_t i = 0; i < json_array_size(cases); i++) {
    if (!add_case(record, suite, json_array_get(cases, i), repetitions, i)) return rgh_fail(why, "no memory");
  }
  if (record->num_entries == 0) return rgh_fail(why, "none of its cases is of an operator that is known here");
  for (int e = 0; e < record->num_entries; e++) {
    rge_entry *entry = &record->entries[e];
    entry->record = record;
    rge_aggregate(entry);
  }
  rge_check_summary(json_object_get(root, "summary"), record);
  rge_check_protocol(record, cases);
  rge_check_provenance(record, suite);
  return true;
}

static void free_entry(rge_entry *entry) {
  for (int c = 0; c < entry->num_cases; c++) rge_case_free(&entry->cases[c]);
  free(entry->cases);
  free(entry->variant);
  free(entry->device);
  free(entry->hardware);
  free(entry->setting);
  rge_problems_free(&entry->problems);
}

void rge_record_free(rge_record *record) {
  for (int e = 0; e < record->num_entries; e++) free_entry(&record->entries[e]);
  free(record->entries);
  free(record->path);
  free(record->id);
  json_decref(record->head);
  rge_problems_free(&record->problems);
  *record = (rge_record){0};
}
