#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/text.h"
#include "tools/site/passes.h"
#include "tools/site/search.h"

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

static void add_case(json_t *items, const rg_operator *op, bool in_place, const char *suite, const char *name,
                     const int64_t *dim, const char *detail, const char *address) {
  rge_text title = {0};
  char *axes = rgs_axes_text(op, dim);
  rge_text_format(&title, "%s%s: %s", op->name, in_place ? ", in place" : "",
                  axes != NULL && *axes != '\0' ? axes : name);
  if (title.bytes != NULL) {
    rgs_search_add(items, "case", title.bytes, words_json(op, suite, name, dim), rgs_text(detail), address);
  }
  rge_text_free(&title);
  free(axes);
}

/* The cases of an entry: one item each. `board` and `group` say where they have their rows on the operator's page; NULL:
 * they have them on the record's alone. */
static void add_entry(const rgs_site *site, const rge_entry *entry, const rgs_board *board, int group, json_t *items) {
  const int number = (int)(entry - entry->record->entries);
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    char anchor[48], address[256], detail[384];
    if (!item->timed) continue;
    if (board != NULL && group < RGS_SHOWN_GROUPS) {
      rgs_anchor(&site->boards, board, group, c, anchor);
      snprintf(address, sizeof address, "operators/%s.html#%s", entry->op->name, anchor);
    } else {
      snprintf(address, sizeof address, "records/%s.html#e%dc%d", entry->record->id, number, c);
    }
    snprintf(detail, sizeof detail, "%.*f us, %.3f times the floor, on %.120s (%.120s)", item->latency_us < 100 ? 2 : 0,
             item->latency_us, item->ratio, entry->hardware, entry->setting);
    add_case(items, entry->op, entry->in_place, entry->record->suite, item->name, item->dim, detail, address);
  }
}

static void add_ranked(const rgs_site *site, json_t *items) {
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    for (int g = 0; g < board->num_groups; g++) add_entry(site, board->groups[g].entries[0], board, g, items);
  }
}

/* What is measured well and not ranked, as on a suite of one's own or a part of one: the newest of those alike. */
static void add_others(const rgs_site *site, json_t *items) {
  const rge_index *index = site->index;
  const rge_entry **added = NULL;
  size_t count = 0;
  for (int r = 0; r < index->num_records; r++) {
    for (int e = 0; e < index->records[r].num_entries; e++) {
      const rge_entry *entry = &index->records[r].entries[e];
      const char *why;
      bool seen = !rge_entry_counts(entry, &why) || rge_entry_ranks(entry, &why);
      for (size_t a = 0; a < count && !seen; a++) seen = rge_entries_alike(added[a], entry);
      if (seen) continue;
      const rge_entry **longer = realloc(added, (count + 1) * sizeof(const rge_entry *));
      if (longer == NULL) continue;
      added = longer;
      added[count++] = entry;
      add_entry(site, entry, NULL, 0, items);
    }
  }
  free(added);
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
    add_case(items, item->op, false, suite->name, item->name, item->dim, detail, "challenges.html#make-title");
  }
}

/* Suites of sizes that people run, unlike those that look for mistakes. */
static bool is_of_interest(const rgh_suite *suite) {
  return strcmp(suite->name, rgs_main_suite(RG_BACKWARD)) == 0 ||
         strcmp(suite->name, rgs_main_suite(RG_FORWARD)) == 0 || strcmp(suite->name, "models") == 0;
}

void rgs_search_add_cases(const rgs_site *site, json_t *items) {
  add_ranked(site, items);
  add_others(site, items);
  const rge_suites *suites = site->request->suites;
  for (int s = 0; s < suites->count; s++) {
    if (is_of_interest(&suites->list[s])) add_unmeasured(site, &suites->list[s], items);
  }
}
