#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/text.h"
#include "tools/site/chart.h"
#include "tools/site/page.h"

enum { MAX_HISTORY = 40, MAX_FACT_DEPTH = 4 };

void rgs_draw_entry(const rge_entry *entry, json_t *data) {
  const char *key = json_string_value(json_object_get(data, "key"));
  char id[64];
  snprintf(id, sizeof id, "%s-latency", key);
  rgs_put(data, "latency_chart", rgs_chart_latency(entry, id));
  snprintf(id, sizeof id, "%s-ratio", key);
  rgs_put(data, "ratio_chart", rgs_chart_ratio(entry, id));
  snprintf(id, sizeof id, "%s-samples", key);
  rgs_put(data, "samples_chart", rgs_chart_samples(entry, id));
}

/* ---- the command ---- */

/* As a shell takes it. */
static void add_quoted(const char *argument, rge_text *text) {
  static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=:,+@%";
  if (*argument != '\0' && strspn(argument, plain) == strlen(argument)) {
    rge_text_add(text, argument);
    return;
  }
  rge_text_add(text, "'");
  for (; *argument != '\0'; argument++) {
    if (*argument == '\'') {
      rge_text_add(text, "'\\''");
    } else {
      rge_text_add_bytes(text, argument, 1);
    }
  }
  rge_text_add(text, "'");
}

json_t *rgs_command_json(const rge_record *record) {
  const json_t *argv = json_object_get(json_object_get(record->head, "environment"), "argv");
  rge_text text = {0};
  for (size_t i = 0; i < json_array_size(argv); i++) {
    const char *argument = json_string_value(json_array_get(argv, i));
    if (argument == NULL) continue;
    if (i > 0) rge_text_add(&text, " ");
    add_quoted(argument, &text);
  }
  json_t *command = rgs_text(text.bytes);
  rge_text_free(&text);
  return command;
}

/* ---- facts: an object of the record, one line a value ---- */

static void add_facts(const json_t *object, const char *prefix, int depth, json_t *list);

static void add_fact(const char *name, const json_t *value, int depth, json_t *list) {
  if (json_is_object(value) && depth < MAX_FACT_DEPTH) {
    add_facts(value, name, depth + 1, list);
    return;
  }
  char *text = json_is_string(value) ? strdup(json_string_value(value))
                                     : json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
  json_array_append_new(
      list, json_pack("{s:s, s:o}", "name", name, "value", json_is_null(value) ? json_null() : rgs_text(text)));
  free(text);
}

static void add_facts(const json_t *object, const char *prefix, int depth, json_t *list) {
  const char *key;
  json_t *value;
  json_object_foreach((json_t *)object, key, value) {
    rge_text name = {0};
    rge_text_format(&name, "%s%s%s", prefix, *prefix != '\0' ? "." : "", key);
    if (name.bytes != NULL) add_fact(name.bytes, value, depth, list);
    rge_text_free(&name);
  }
}

static json_t *facts_json(const rge_record *record, const char *part) {
  json_t *list = json_array();
  add_facts(json_object_get(record->head, part), "", 0, list);
  return list;
}

/* ---- entries ---- */

static json_t *cases_json(const rge_entry *entry, const char *key) {
  json_t *list = json_array();
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    const rge_peer *peer = NULL;
    for (int p = 0; p < item->num_peers; p++) {
      if (peer == NULL || item->peers[p].latency_us < peer->latency_us) peer = &item->peers[p];
    }
    json_t *row = rgs_case_json(entry, item, peer);
    char anchor[64];
    snprintf(anchor, sizeof anchor, "%sc%d", key, c);
    rgs_put(row, "anchor", json_string(anchor));
    json_array_append_new(list, row);
  }
  return list;
}

static json_t *entries_json(const rgs_site *site, const rge_record *record) {
  json_t *list = json_array();
  for (int e = 0; e < record->num_entries; e++) {
    const rge_entry *entry = &record->entries[e];
    char key[32];
    snprintf(key, sizeof key, "e%d", e);
    json_array_append_new(
        list,
        json_pack("{s:s, s:b, s:b, s:o, s:o}", "key", key, "first", e == 0, "has_peers", entry->has_peers, "entry",
                  rgs_entry_json(entry, rgs_boards_rank(&site->boards, entry)), "cases", cases_json(entry, key)));
  }
  return list;
}

/* Other records of the same hardware and suite, the newest first. */
static json_t *history_json(const rgs_site *site, const rge_record *record) {
  json_t *list = json_array();
  for (int r = 0; r < site->index->num_records && json_array_size(list) < MAX_HISTORY; r++) {
    const rge_record *other = &site->index->records[r];
    const rge_entry *mine = &record->entries[0], *theirs = &other->entries[0];
    if (strcmp(mine->hardware, theirs->hardware) != 0 || strcmp(record->suite, other->suite) != 0) continue;
    json_array_append_new(
        list, json_pack("{s:s, s:o, s:o, s:b, s:i}", "record", other->id, "utc", rgs_text(other->utc), "commit",
                        rgs_text(other->commit), "this", other == record, "entries", other->num_entries));
  }
  return list;
}

/* The lowest tier of its entries: a record is no better than what it is weakest in. */
static rge_tier tier_of(const rge_record *record) {
  rge_tier tier = RGE_REPLICATED;
  for (int e = 0; e < record->num_entries; e++) {
    if (record->entries[e].tier < tier) tier = record->entries[e].tier;
  }
  return tier;
}

/* ---- the pages ---- */

static json_t *head_json(const rge_record *record) {
  const rge_entry *entry = &record->entries[0];
  json_t *data = json_pack("{s:s, s:s, s:I, s:s, s:s, s:s}", "id", record->id, "digest", record->digest, "bytes",
                           (json_int_t)record->bytes, "tier", rge_tier_name(tier_of(record)), "hardware",
                           entry->hardware, "device", entry->device);
  const json_t *dirty = json_object_get(json_object_get(record->head, "environment"), "dirty");
  rgs_put(data, "suite", rgs_text(record->suite));
  rgs_put(data, "utc", rgs_text(record->utc));
  rgs_put(data, "commit", rgs_text(record->commit));
  rgs_put(data, "clean", json_is_boolean(dirty) ? json_boolean(json_is_false(dirty)) : json_null());
  rgs_put(data, "protocol", rgs_text(record->protocol));
  rgs_put(data, "problems", rgs_problems_json(&record->problems));
  return data;
}

static void draw(const rgs_site *site, const void *subject, json_t *data) {
  (void)site;
  const rge_record *record = subject;
  json_t *entries = json_object_get(data, "entries");
  for (size_t e = 0; e < json_array_size(entries); e++) rgs_draw_entry(&record->entries[e], json_array_get(entries, e));
}

bool rgs_page_record(const rgs_site *site, const rge_record *record, rgh_message *why) {
  json_t *data = head_json(record);
  rgs_put(data, "command", rgs_command_json(record));
  rgs_put(data, "environment", facts_json(record, "environment"));
  rgs_put(data, "protocol_facts", facts_json(record, "protocol"));
  rgs_put(data, "entries", entries_json(site, record));
  rgs_put(data, "history", history_json(site, record));
  char path[256], title[256];
  snprintf(path, sizeof path, "records/%s", record->id);
  snprintf(title, sizeof title, "Record %s", record->id);
  const rgs_place place = {path, "record", title, "records"};
  return rgs_page_write(site, &place, data, draw, record, why);
}

bool rgs_page_records(const rgs_site *site, rgh_message *why) {
  json_t *list = json_array();
  for (int r = 0; r < site->index->num_records; r++) {
    const rge_record *record = &site->index->records[r];
    json_t *row = head_json(record), *entries = json_array();
    for (int e = 0; e < record->num_entries; e++) {
      const rge_entry *entry = &record->entries[e];
      json_array_append_new(
          entries, json_pack("{s:s, s:b, s:i, s:o, s:o, s:s}", "op", entry->op->name, "in_place", entry->in_place,
                             "cases_timed", entry->num_timed, "latency_us", rgs_number(entry->latency_us), "ratio",
                             rgs_number(entry->ratio), "tier", rge_tier_name(entry->tier)));
    }
    rgs_put(row, "entries", entries);
    json_array_append_new(list, row);
  }
  json_t *data = json_pack("{s:i, s:o}", "count", site->index->num_records, "records", list);
  const rgs_place place = {"records", "records", "All records", "records"};
  return rgs_page_write(site, &place, data, NULL, NULL, why);
}
