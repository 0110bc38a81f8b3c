/* A script and not JSON, because a page opened from file:// may not read a file. */
#include "tools/site/search.h"

#include <stdio.h>
#include <string.h>

#include "harness/evidence/text.h"
#include "tools/site/passes.h"

void rgs_search_add(json_t *items, const char *kind, const char *title, json_t *words, json_t *detail,
                    const char *address) {
  json_array_append_new(items, json_pack("{s:s, s:s, s:o, s:o, s:s}", "kind", kind, "title", title, "words", words,
                                         "detail", detail, "address", address));
}

static void add_operators(json_t *items) {
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rgs_operator_at(index);
    char address[128];
    snprintf(address, sizeof address, "operators/%s.html", op->name);
    rgs_search_add(items, "operator", op->name, rgs_text(op->formula), rgs_text(op->title), address);
  }
}

/* What the pages that are no data say. */
static void add_pages(json_t *items) {
  static const struct {
    const char *title, *words, *detail, *address;
  } pages[] = {
      {"Run it yourself", "make bench build test install clone command how to ropegrad bench reproduce",
       "make bench; ropegrad bench; ropegrad records reproduce", "index.html#run-title"},
      {"Make a record", "make build bench command how to record add contribute gpu cpu own sizes suite json",
       "the commands, on a GPU, on a CPU, with your own sizes", "challenges.html#make-title"},
      {"Challenges", "hardware missing open nobody", "hardware that has no record yet", "challenges.html"},
      {"All records", "history newest list", "the newest first", "records.html"},
      {"Tiers of trust", "trust reported reproducible verified replicated tier evidence", "what each word promises",
       "rules.html#tiers"},
      {"How records are decided", "rules protocol statistics ranking floor ratio roofline noise comparable median",
       "what is measured, what is compared", "rules.html"},
  };
  for (size_t p = 0; p < sizeof pages / sizeof pages[0]; p++) {
    rgs_search_add(items, "page", pages[p].title, json_string(pages[p].words), json_string(pages[p].detail),
                   pages[p].address);
  }
}

static void add_records(const rgs_site *site, json_t *items) {
  for (int r = 0; r < site->index->num_records; r++) {
    const rge_record *record = &site->index->records[r];
    const rge_entry *entry = &record->entries[0];
    char address[256];
    snprintf(address, sizeof address, "records/%s.html", record->id);
    rge_text words = {0}, detail = {0};
    rge_text_format(&words, "record suite %s commit %s", record->suite, record->commit);
    rge_text_format(&detail, "record of %s (%s)", entry->hardware, entry->setting);
    rgs_search_add(items, "record", record->id, rgs_text(words.bytes), rgs_text(detail.bytes), address);
    rge_text_free(&words);
    rge_text_free(&detail);
  }
}

static void add_hardware(const json_t *rows, json_t *items) {
  for (size_t i = 0; i < json_array_size(rows); i++) {
    const json_t *row = json_array_get(rows, i);
    const long long missing = json_integer_value(json_object_get(row, "missing"));
    char detail[96];
    snprintf(detail, sizeof detail, missing > 0 ? "%lld operators and modes have no record there yet" : "all measured",
             missing);
    rgs_search_add(items, "hardware", json_string_value(json_object_get(row, "hardware")), json_string("hardware"),
                   json_string(detail), "challenges.html");
  }
}

static void add_reported(const rgs_site *site, json_t *items) {
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rgs_operator_at(index);
    json_t *best = rgs_reported_best(site->index, op);
    if (json_is_object(best)) {
      char title[256], address[128];
      snprintf(title, sizeof title, "%s: reported elsewhere on %.100s", op->name,
               json_string_value(json_object_get(best, "hardware")));
      snprintf(address, sizeof address, "operators/%s.html#reported", op->name);
      rge_text detail = {0};
      rge_text_format(&detail, "%g us at the best, not reproduced",
                      json_number_value(json_object_get(best, "latency_us")));
      rgs_search_add(items, "reported", title, rgs_text(op->title), rgs_text(detail.bytes), address);
      rge_text_free(&detail);
    }
    json_decref(best);
  }
}

bool rgs_search_write(const rgs_site *site, rgh_message *why) {
  json_t *hardware = rgs_challenges_json(site, why);
  if (hardware == NULL) return false;
  json_t *items = json_array();
  add_operators(items);
  rgs_search_add_cases(site, items);
  add_hardware(hardware, items);
  add_reported(site, items);
  add_pages(items);
  add_records(site, items);
  json_decref(hardware);
  rge_text script = {0};
  rge_text_add(&script, "\"use strict\";\nwindow.ropegradSearch = ");
  rgs_add_json(items, &script);
  rge_text_add(&script, ";\n");
  json_decref(items);
  const bool good = !script.failed || rgh_fail(why, "no memory");
  const bool written = good && rgs_folder_write(&site->folder, "search.js", script.bytes, script.length, why);
  rge_text_free(&script);
  return written;
}
