/* What the search box looks through. A script and not JSON, because a page opened from file:// may not read a file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/text.h"
#include "tools/site/page.h"

typedef struct found {
  const rge_entry *entry; /* NULL: nobody has timed the case */
  char address[160];
} found;

/* Every size by symbol and by name, so that "S=2048", "24 heads" and "seq_len 2048" all find it. */
static json_t *words_json(const rg_operator *op, const char *suite, const char *name, const int64_t *dim) {
  rge_text text = {0};
  rge_text_format(&text, "%s %s %s %s", op->name, op->title, suite, name);
  for (int d = 0; d < op->num_dims; d++) {
    if (dim[d] < 0) continue;
    rge_text_format(&text, " %s=%lld %s=%lld", op->dims[d].symbol, (long long)dim[d], op->dims[d].name,
                    (long long)dim[d]);
  }
  json_t *words = rgs_text(text.bytes);
  rge_text_free(&text);
  return words;
}

static void add_item(json_t *items, const char *kind, const char *title, json_t *words, json_t *detail,
                     const char *address) {
  json_array_append_new(items, json_pack("{s:s, s:s, s:o, s:o, s:s}", "kind", kind, "title", title, "words", words,
                                         "detail", detail, "address", address));
}

static void add_case(json_t *items, const rg_operator *op, bool in_place, const char *suite, const char *name,
                     const int64_t *dim, const char *detail, const char *address) {
  rge_text title = {0};
  char *axes = rgs_axes_text(op, dim);
  rge_text_format(&title, "%s%s: %s", op->name, in_place ? ", in place" : "",
                  axes != NULL && *axes != '\0' ? axes : name);
  if (title.bytes != NULL) {
    add_item(items, "case", title.bytes, words_json(op, suite, name, dim), rgs_text(detail), address);
  }
  rge_text_free(&title);
  free(axes);
}

/* The cases of a board: one item a case and hardware. */
static void add_board(const rgs_site *site, const rgs_board *board, json_t *items) {
  for (int g = 0; g < board->num_groups && g < RGS_SHOWN_GROUPS; g++) {
    const rge_entry *entry = board->groups[g].entries[0];
    for (int c = 0; c < entry->num_cases; c++) {
      const rge_case *item = &entry->cases[c];
      char anchor[48], address[160], detail[256];
      rgs_anchor(&site->boards, board, g, c, anchor);
      snprintf(address, sizeof address, "operators/%s.html#%s", board->op->name, anchor);
      snprintf(detail, sizeof detail, "%.*f us, %.3f times the floor, on %.120s", item->latency_us < 100 ? 2 : 0,
               item->latency_us, item->ratio, entry->hardware);
      add_case(items, board->op, board->in_place, board->suite, item->name, item->dim, detail, address);
    }
  }
}

static bool is_measured(const rgs_site *site, const rgh_suite *suite, const rg_operator *op) {
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op == op && strcmp(board->suite, suite->name) == 0) return true;
  }
  return false;
}

/* Cases that a reader may look for and nobody has timed, with the way to time them. */
static void add_unmeasured(const rgs_site *site, const rgh_suite *suite, json_t *items) {
  for (int c = 0; c < suite->num_cases; c++) {
    const rgh_case *item = &suite->cases[c];
    if (is_measured(site, suite, item->op)) continue;
    char detail[256];
    snprintf(detail, sizeof detail, "no record yet: ropegrad bench --suite %.60s --op %s --case %.60s", suite->name,
             item->op->name, item->name);
    add_case(items, item->op, false, suite->name, item->name, item->dim, detail, "challenges.html");
  }
}

/* Suites of sizes that people run, unlike those that look for mistakes. */
static bool is_of_interest(const rgh_suite *suite) {
  return strcmp(suite->name, RGS_MAIN_SUITE) == 0 || strcmp(suite->name, "models") == 0;
}

bool rgs_search_write(const rgs_site *site, rgh_message *why) {
  json_t *items = json_array();
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rg_dev_operator_at(index);
    char address[128];
    snprintf(address, sizeof address, "operators/%s.html", op->name);
    add_item(items, "operator", op->name, rgs_text(op->title), rgs_text(op->title), address);
  }
  for (int b = 0; b < site->boards.count; b++) add_board(site, &site->boards.list[b], items);
  const rge_suites *suites = site->request->suites;
  for (int s = 0; s < suites->count; s++) {
    if (is_of_interest(&suites->list[s])) add_unmeasured(site, &suites->list[s], items);
  }
  for (int r = 0; r < site->index->num_records; r++) {
    const rge_record *record = &site->index->records[r];
    char address[256];
    snprintf(address, sizeof address, "records/%s.html", record->id);
    rge_text words = {0};
    rge_text_format(&words, "record %s %s %s", record->entries[0].hardware, record->suite, record->commit);
    add_item(items, "record", record->id, rgs_text(words.bytes), rgs_text(record->entries[0].hardware), address);
    rge_text_free(&words);
  }
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
