#include <stdio.h>
#include <string.h>

#include "tools/site/chart.h"
#include "tools/site/page.h"
#include "tools/site/passes.h"

/* ---- what was measured ---- */

static json_t *cases_json(const rgs_site *site, const rgs_board *board, int group) {
  const rge_entry *entry = board->groups[group].entries[0];
  json_t *list = json_array();
  for (int c = 0; c < entry->num_cases; c++) {
    const rge_case *item = &entry->cases[c];
    char anchor[48];
    rgs_anchor(&site->boards, board, group, c, anchor);
    json_t *row = rgs_case_json(entry, item, rgs_peer_for(site->index, entry, item));
    rgs_put(row, "anchor", json_string(anchor));
    json_array_append_new(list, row);
  }
  return list;
}

static bool any_peer(const json_t *cases) {
  for (size_t i = 0; i < json_array_size(cases); i++) {
    if (json_is_object(json_object_get(json_array_get(cases, i), "peer"))) return true;
  }
  return false;
}

/* The best entry of one hardware, case by case. */
static json_t *detail_json(const rgs_site *site, const rgs_board *board, int group) {
  char key[48];
  snprintf(key, sizeof key, "b%dh%d", (int)(board - site->boards.list), group);
  const rge_entry *entry = board->groups[group].entries[0];
  json_t *cases = cases_json(site, board, group);
  return json_pack("{s:s, s:b, s:b, s:o, s:o, s:o}", "key", key, "first", group == 0, "has_peers", any_peer(cases),
                   "entry", rgs_entry_json(entry, 1), "command", rgs_command_json(entry->record), "cases", cases);
}

static json_t *board_json(const rgs_site *site, const rgs_board *board) {
  char key[32];
  snprintf(key, sizeof key, "b%d", (int)(board - site->boards.list));
  json_t *ranked = json_array(), *details = json_array();
  for (int g = 0; g < board->num_groups; g++) {
    const rgs_group *group = &board->groups[g];
    for (int e = 0; e < group->count; e++) json_array_append_new(ranked, rgs_entry_json(group->entries[e], e + 1));
    if (g < RGS_SHOWN_GROUPS) json_array_append_new(details, detail_json(site, board, g));
  }
  return json_pack("{s:s, s:b, s:b, s:s, s:o, s:o}", "key", key, "in_place", board->in_place, "main_suite",
                   rgs_is_main_suite(board->suite, board->op), "suite", board->suite, "ranked", ranked, "details",
                   details);
}

/* Entries that a reader may look for and not find among the ranked ones. */
static json_t *unranked_json(const rgs_site *site, const rg_operator *op) {
  json_t *list = json_array();
  for (int r = 0; r < site->index->num_records; r++) {
    const rge_record *record = &site->index->records[r];
    for (int e = 0; e < record->num_entries; e++) {
      const char *why;
      if (record->entries[e].op != op || rge_entry_ranks(&record->entries[e], &why)) continue;
      json_array_append_new(list, rgs_entry_json(&record->entries[e], 0));
    }
  }
  return list;
}

/* ---- what others report ---- */

static json_t *reported_rows(const json_t *source, const rg_operator *op) {
  json_t *rows = json_array();
  const json_t *list = json_object_get(source, "records");
  for (size_t i = 0; i < json_array_size(list); i++) {
    json_t *row = json_array_get(list, i);
    if (strcmp(json_string_value(json_object_get(row, "op")), op->name) != 0) continue;
    json_t *copy = json_copy(row);
    rgs_put(copy, "tier", json_string(rge_tier_name(RGE_REPORTED)));
    json_array_append_new(rows, copy);
  }
  return rows;
}

/* Whether any record here is of the hardware that a list of reported times names. */
static bool is_measured_here(const rge_index *index, const char *hardware) {
  for (int r = 0; r < index->num_records; r++) {
    for (int e = 0; e < index->records[r].num_entries; e++) {
      if (strcasestr(index->records[r].entries[e].hardware, hardware) != NULL) return true;
    }
  }
  return false;
}

static json_t *reported_json(const rge_index *index, const rg_operator *op) {
  static const char *const keys[] = {"source", "hardware", "protocol", "statistic", "trust"};
  json_t *list = json_array();
  for (int f = 0; f < index->num_reported; f++) {
    const json_t *source = index->reported[f].json;
    json_t *rows = reported_rows(source, op);
    if (json_array_size(rows) == 0) {
      json_decref(rows);
      continue;
    }
    const char *hardware = json_string_value(json_object_get(source, "hardware"));
    json_t *object = json_pack("{s:o, s:b}", "rows", rows, "measured_here", is_measured_here(index, hardware));
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
      rgs_put(object, keys[k], json_incref(json_object_get(source, keys[k])));
    }
    json_array_append_new(list, object);
  }
  return list;
}

/* ---- what it is ---- */

static json_t *identity_json(const rgs_site *site, const rg_operator *op) {
  const rgh_suite *suite = rge_suites_find(site->request->suites, rgs_main_suite(op->direction));
  json_t *images = json_array();
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op != op) continue;
    for (int g = 0; g < board->num_groups; g++) {
      const rge_record *record = board->groups[g].entries[0]->record;
      const json_t *gpu = json_object_get(json_object_get(record->head, "environment"), "gpu");
      const char *digest = json_string_value(json_object_get(json_object_get(gpu, "images"), op->name));
      if (digest == NULL) continue;
      json_array_append_new(images, json_pack("{s:s, s:s}", "record", record->id, "digest", digest));
    }
  }
  return json_pack("{s:s, s:s, s:o, s:i, s:o}", "operator", op->name, "suite", rgs_main_suite(op->direction),
                   "suite_digest", suite != NULL ? rgs_text(suite->digest) : json_null(), "cases",
                   rge_suite_cases(suite, op), "images", images);
}

/* The sizes that an axis takes in the suite: whether it varies there, and between what. */
static void put_suite_values(const rgh_suite *suite, const rg_operator *op, int dim, json_t *axis) {
  int64_t least = -1, most = -1;
  for (int c = 0; suite != NULL && c < suite->num_cases; c++) {
    const rgh_case *item = &suite->cases[c];
    if (item->op != op || item->dim[dim] < 0) continue;
    if (least < 0 || item->dim[dim] < least) least = item->dim[dim];
    if (item->dim[dim] > most) most = item->dim[dim];
  }
  char text[64] = "not in the suite";
  if (least >= 0 && least == most) snprintf(text, sizeof text, "constant, %lld", (long long)least);
  if (least >= 0 && least < most) snprintf(text, sizeof text, "%lld to %lld", (long long)least, (long long)most);
  rgs_put(axis, "suite_values", json_string(text));
}

static void put_all_suite_values(const rgs_site *site, const rg_operator *op, json_t *data) {
  const rgh_suite *suite = rge_suites_find(site->request->suites, rgs_main_suite(op->direction));
  json_t *axes = json_object_get(data, "axes");
  for (int d = 0; d < op->num_dims; d++) put_suite_values(suite, op, d, json_array_get(axes, (size_t)d));
}

/* ---- the page ---- */

static void draw_board(const rgs_board *board, json_t *data) {
  const char *key = json_string_value(json_object_get(data, "key"));
  char id[64];
  snprintf(id, sizeof id, "%s-history", key);
  rgs_put(data, "history_chart", rgs_chart_history(board, id));
  json_t *details = json_object_get(data, "details");
  for (size_t g = 0; g < json_array_size(details); g++) {
    rgs_draw_entry(board->groups[g].entries[0], json_array_get(details, g));
  }
}

static void draw(const rgs_site *site, const void *subject, json_t *data) {
  json_t *boards = json_object_get(data, "boards");
  size_t drawn = 0;
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op == subject) draw_board(board, json_array_get(boards, drawn++));
  }
}

bool rgs_page_operator(const rgs_site *site, const rg_operator *op, rgh_message *why) {
  json_t *data = rgs_operator_json(op), *boards = json_array();
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op == op) json_array_append_new(boards, board_json(site, board));
  }
  put_all_suite_values(site, op, data);
  rgs_put(data, "identity", identity_json(site, op));
  rgs_put(data, "boards", boards);
  rgs_put(data, "unranked", unranked_json(site, op));
  rgs_put(data, "reported", reported_json(site->index, op));
  rgs_put(data, "is_ranked", json_boolean(json_array_size(boards) > 0));
  rgs_put(data, "has_unranked", json_boolean(json_array_size(json_object_get(data, "unranked")) > 0));
  rgs_put(data, "suite", json_string(rgs_main_suite(op->direction)));
  char path[128], title[256];
  snprintf(path, sizeof path, "operators/%s", op->name);
  snprintf(title, sizeof title, "%s, %s pass", op->name, rgs_direction_name(op->direction));
  const rgs_place place = {path, "operator", title, "index"};
  return rgs_page_write(site, &place, data, draw, op, why);
}
