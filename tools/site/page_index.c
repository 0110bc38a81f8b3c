#include <string.h>

#include "tools/site/page.h"

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

/* The first of every hardware, of the main suite's boards. */
static json_t *best_json(const rgs_site *site, const rg_operator *op) {
  json_t *list = json_array();
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (board->op != op || strcmp(board->suite, RGS_MAIN_SUITE) != 0) continue;
    for (int g = 0; g < board->num_groups; g++) {
      json_array_append_new(list, rgs_entry_json(board->groups[g].entries[0], 1));
    }
  }
  return list;
}

static bool holds(const json_t *list, const char *text) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    if (strcmp(json_string_value(json_array_get(list, i)), text) == 0) return true;
  }
  return false;
}

static json_t *hardware_json(const rgs_site *site) {
  json_t *list = json_array();
  for (int b = 0; b < site->boards.count; b++) {
    const rgs_board *board = &site->boards.list[b];
    if (strcmp(board->suite, RGS_MAIN_SUITE) != 0) continue;
    for (int g = 0; g < board->num_groups; g++) {
      const char *hardware = board->groups[g].hardware;
      if (!holds(list, hardware)) json_array_append_new(list, json_string(hardware));
    }
  }
  return list;
}

bool rgs_page_index(const rgs_site *site, rgh_message *why) {
  json_t *operators = json_array();
  for (int id = 0; id < RG_NUM_OPS; id++) {
    const rg_operator *op = rg_dev_operator((rg_op_id)id, RG_BACKWARD);
    json_array_append_new(operators,
                          json_pack("{s:s, s:s, s:s, s:o, s:o}", "op", op->name, "title", op->title, "formula",
                                    op->formula, "best", best_json(site, op), "reported",
                                    rgs_reported_best(site->index, op)));
  }
  json_t *data = json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:o}", "schema", "ropegrad-site-1", "version",
                           site->request->version, "records", site->index->num_records, "suite", RGS_MAIN_SUITE,
                           "hardware", hardware_json(site), "operators", operators, "newest",
                           site->index->num_records > 0 ? rgs_text(site->index->records[0].utc) : json_null());
  const rgs_place place = {"index", "index", "RoPE gradients, measured", "index"};
  return rgs_page_write(site, &place, data, NULL, NULL, why);
}
