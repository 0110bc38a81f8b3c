#include <string.h>

#include "tools/site/page.h"
#include "tools/site/passes.h"

json_t *rgs_reported_best(const rge_index *index, const rg_operator *op) {
  const json_t *best = NULL, *source = NULL;
  for (int f = 0; f < index->num_reported; f++) {
    const json_t *list = json_object_get(index->reported[f].json, "records");
    for (size_t i = 0; i < json_array_size(list); i++) {
      const json_t *row = json_array_get(list, i);
      if (strcmp(json_string_value(json_object_get(row, "op")), op->name) != 0) continue;
      if (best != NULL && json_number_value(json_object_get(row, "latency_us")) >=
                              json_number_value(json_object_get(best, "latency_us"))) {
        continue;
      }
      best = row;
      source = index->reported[f].json;
    }
  }
  if (best == NULL) return json_null();
  return json_pack("{s:O, s:O, s:s}", "latency_us", json_object_get(best, "latency_us"), "hardware",
                   json_object_get(source, "hardware"), "tier", rge_tier_name(RGE_REPORTED));
}

static bool is_listed(const json_t *list, const rge_entry *entry) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t *row = json_array_get(list, i);
    if (json_is_true(json_object_get(row, "in_place")) == entry->in_place &&
        strcmp(json_string_value(json_object_get(row, "hardware")), entry->hardware) == 0 &&
        strcmp(json_string_value(json_object_get(row, "setting")), entry->setting) == 0) {
      return true;
    }
  }
  return false;
}

/* Where nothing of a hardware and setting ranks, the newest that was timed so, which says why it does not. */
static void add_unranked(const rgs_site *site, const rg_operator *op, json_t *list) {
  for (int r = 0; r < site->index->num_records; r++) {
    const rge_record *record = &site->index->records[r];
    for (int e = 0; e < record->num_entries; e++) {
      const rge_entry *entry = &record->entries[e];
      if (entry->op == op && entry->ratio > 0 && !record->warm && rgs_is_main_suite(record->suite, op) &&
          !is_listed(list, entry)) {
        json_array_append_new(list, rgs_entry_json(entry, 0));
      }
    }
  }
}

/* The first of every hardware and setting, of the main suite's boards. */
static json_t *best_json(const rgs_site *site, const rg_operator *op) {
  json_t *list = json_array();
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op != op || !rgs_is_main_suite(board->suite, op)) continue;
    for (int g = 0; g < board->num_groups; g++) {
      json_array_append_new(list, rgs_entry_json(board->groups[g].entries[0], 1));
    }
  }
  add_unranked(site, op, list);
  return list;
}

/* Every hardware that a row of the operators names, once. */
static json_t *hardware_json(const json_t *operators) {
  json_t *names = json_object(), *list = json_array();
  for (size_t o = 0; o < json_array_size(operators); o++) {
    const json_t *best = json_object_get(json_array_get(operators, o), "best");
    for (size_t i = 0; i < json_array_size(best); i++) {
      const char *hardware = json_string_value(json_object_get(json_array_get(best, i), "hardware"));
      if (json_object_get(names, hardware) == NULL) json_array_append_new(list, json_string(hardware));
      json_object_set_new(names, hardware, json_true());
    }
  }
  json_decref(names);
  return list;
}

/* The names of ops.def: what the filter offers, each with both its passes. */
static json_t *rows_json(void) {
  json_t *list = json_array();
  for (int id = 0; id < RG_NUM_OPS; id++) {
    json_array_append_new(list, json_string(rg_dev_operator((rg_op_id)id, RG_BACKWARD)->name));
  }
  return list;
}

bool rgs_page_index(const rgs_site *site, rgh_message *why) {
  json_t *operators = json_array();
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rgs_operator_at(index);
    json_array_append_new(
        operators,
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:o, s:o}", "op", op->name, "row", rgs_pass_of(op, RG_BACKWARD)->name,
                  "pass", rgs_direction_name(op->direction), "title", op->title, "formula", op->formula, "best",
                  best_json(site, op), "reported", rgs_reported_best(site->index, op)));
  }
  json_t *data = json_pack("{s:s, s:s, s:i, s:o, s:o, s:o, s:o, s:o}", "schema", "ropegrad-site-1", "version",
                           site->request->version, "records", site->index->num_records, "suites", rgs_suites_json(),
                           "rows", rows_json(), "hardware", hardware_json(operators), "operators", operators, "newest",
                           site->index->num_records > 0 ? rgs_text(site->index->records[0].utc) : json_null());
  const rgs_place place = {"index", "index", "RoPE gradients, measured", "index"};
  return rgs_page_write(site, &place, data, NULL, NULL, why);
}
