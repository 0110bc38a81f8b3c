#include <stdio.h>
#include <string.h>

#include "harness/evidence/file.h"
#include "tools/site/page.h"
#include "tools/site/passes.h"

/* A device class: the entry's hardware has `match` in its name and its device begins with `device`. */
static bool is_of(const rge_entry *entry, const json_t *target) {
  const char *match = json_string_value(json_object_get(target, "match"));
  const char *device = json_string_value(json_object_get(target, "device"));
  return match != NULL && device != NULL && strncmp(entry->device, device, strlen(device)) == 0 &&
         strcasestr(entry->hardware, match) != NULL;
}

/* The first entry of the main suite's boards that fits; NULL: nobody has measured it. */
static const rge_entry *find_best(const rgs_site *site, const rg_operator *op, bool in_place, const json_t *target) {
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op != op || board->in_place != in_place || !rgs_is_main_suite(board->suite, op)) continue;
    for (int g = 0; g < board->num_groups; g++) {
      if (is_of(board->groups[g].entries[0], target)) return board->groups[g].entries[0];
    }
  }
  return NULL;
}

static void add_cell(const rgs_site *site, const rg_operator *op, bool in_place, const json_t *target, json_t *cells,
                     int *missing) {
  const rge_entry *best = find_best(site, op, in_place, target);
  *missing += best == NULL;
  json_array_append_new(cells, json_pack("{s:s, s:b, s:o, s:o}", "op", op->name, "in_place", in_place, "record",
                                         best != NULL ? json_string(best->record->id) : json_null(), "ratio",
                                         best != NULL ? rgs_number(best->ratio) : json_null()));
}

static json_t *row_json(const rgs_site *site, const json_t *target) {
  json_t *cells = json_array();
  int missing = 0;
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rgs_operator_at(index);
    add_cell(site, op, false, target, cells, &missing);
    if (op->in_place_param >= 0) add_cell(site, op, true, target, cells, &missing);
  }
  return json_pack("{s:O, s:O, s:o, s:i}", "hardware", json_object_get(target, "name"), "device",
                   json_object_get(target, "device"), "cells", cells, "missing", missing);
}

static void add_column(const rg_operator *op, bool in_place, json_t *columns) {
  json_array_append_new(columns, json_pack("{s:s, s:s, s:b}", "op", op->name, "pass", rgs_direction_name(op->direction),
                                           "in_place", in_place));
}

static json_t *columns_json(void) {
  json_t *list = json_array();
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rgs_operator_at(index);
    add_column(op, false, list);
    if (op->in_place_param >= 0) add_column(op, true, list);
  }
  return list;
}

/* Both passes of a row of ops.def stand under one head. */
static json_t *heads_json(void) {
  json_t *list = json_array();
  for (int id = 0; id < RG_NUM_OPS; id++) {
    const rg_operator *backward = rg_dev_operator((rg_op_id)id, RG_BACKWARD), *forward = rgs_other_pass(backward);
    const int modes = 2 + (backward->in_place_param >= 0) + (forward->in_place_param >= 0);
    json_array_append_new(list, json_pack("{s:s, s:i}", "row", backward->name, "columns", modes));
  }
  return list;
}

json_t *rgs_challenges_json(const rgs_site *site, rgh_message *why) {
  char path[RGS_PATH_BYTES];
  rge_file targets;
  snprintf(path, sizeof path, "%s/hardware.json", site->request->templates);
  if (!rge_file_read(path, &targets, why)) return NULL;
  json_t *rows = json_array();
  const json_t *list = json_object_get(targets.json, "hardware");
  for (size_t i = 0; i < json_array_size(list); i++) {
    json_array_append_new(rows, row_json(site, json_array_get(list, i)));
  }
  rge_file_free(&targets);
  return rows;
}

bool rgs_page_challenges(const rgs_site *site, rgh_message *why) {
  json_t *rows = rgs_challenges_json(site, why);
  if (rows == NULL) return false;
  json_t *data = json_pack("{s:o, s:o, s:o, s:o}", "suites", rgs_suites_json(), "heads", heads_json(), "columns",
                           columns_json(), "rows", rows);
  const rgs_place place = {"challenges", "challenges", "Challenges", "challenges"};
  return rgs_page_write(site, &place, data, NULL, NULL, why);
}
