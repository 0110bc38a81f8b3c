#include "tools/site/data.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/provenance.h"
#include "harness/evidence/text.h"

json_t *rgs_number(double value) { return value > 0 && isfinite(value) ? json_real(value) : json_null(); }

json_t *rgs_text(const char *text) { return text != NULL && *text != '\0' ? json_string(text) : json_null(); }

void rgs_put(json_t *object, const char *key, json_t *value) { json_object_set_new(object, key, value); }

json_t *rgs_problems_json(const rge_problems *problems) {
  static const char *const names[] = {"note", "lowers", "unusable"};
  json_t *list = json_array();
  for (int p = 0; p < problems->count; p++) {
    const rge_problem *problem = &problems->list[p];
    json_array_append_new(list, json_pack("{s:s, s:b, s:o}", "weight", names[problem->weight], "lowers",
                                          problem->weight >= RGE_LOWERS, "text", rgs_text(problem->what.text)));
  }
  const int left_out[] = {problems->notes_left_out, problems->left_out};
  for (int kind = RGE_NOTE; kind <= RGE_LOWERS; kind++) {
    char text[32];
    if (left_out[kind] == 0) continue;
    snprintf(text, sizeof text, "and %d more", left_out[kind]);
    json_array_append_new(
        list, json_pack("{s:s, s:b, s:s}", "weight", names[kind], "lowers", kind == RGE_LOWERS, "text", text));
  }
  return list;
}

/* ---- entries ---- */

static void put_own(json_t *object, const char *key, char *text) {
  rgs_put(object, key, rgs_text(text));
  free(text);
}

json_t *rgs_entry_json(const rge_entry *entry, int rank) {
  const rge_record *record = entry->record;
  const char *why;
  rge_entry_ranks(entry, &why);
  json_t *object =
      json_pack("{s:s, s:s, s:b, s:s, s:s, s:s}", "op", entry->op->name, "title", entry->op->title, "in_place",
                entry->in_place, "variant", entry->variant, "device", entry->device, "hardware", entry->hardware);
  rgs_put(object, "setting", json_string(entry->setting));
  put_own(object, "setup", rge_setup_text(entry));
  rgs_put(object, "suite", rgs_text(record->suite));
  rgs_put(object, "record", json_string(record->id));
  rgs_put(object, "utc", rgs_text(record->utc));
  rgs_put(object, "commit", rgs_text(record->commit));
  rgs_put(object, "protocol", rgs_text(record->protocol));
  rgs_put(object, "method", rgs_text(record->method));
  rgs_put(object, "warm", json_boolean(record->warm));
  rgs_put(object, "cases_timed", json_integer(entry->num_timed));
  rgs_put(object, "cases_of_suite", entry->suite_cases > 0 ? json_integer(entry->suite_cases) : json_null());
  rgs_put(object, "latency_us", rgs_number(entry->latency_us));
  rgs_put(object, "floor_us", rgs_number(entry->floor_us));
  rgs_put(object, "ratio", rgs_number(entry->ratio));
  rgs_put(object, "gb_per_s", rgs_number(entry->gigabytes_per_second));
  rgs_put(object, "mean_latency_us", rgs_number(entry->mean_latency_us));
  rgs_put(object, "mean_floor_us", rgs_number(entry->mean_floor_us));
  rgs_put(object, "worst_ratio", rgs_number(entry->worst_ratio));
  rgs_put(object, "worst_case", rgs_text(entry->worst_case));
  rgs_put(object, "tier", json_string(rge_tier_name(entry->tier)));
  rgs_put(object, "witness", entry->witness != NULL ? json_string(entry->witness->record->id) : json_null());
  rgs_put(object, "rank", rank > 0 ? json_integer(rank) : json_null());
  rgs_put(object, "not_ranked_because", rgs_text(why));
  rgs_put(object, "problems", rgs_problems_json(&entry->problems));
  return object;
}

/* ---- cases ---- */

char *rgs_axes_text(const rg_operator *op, const int64_t *dim) {
  rge_text text = {0};
  rge_text_add(&text, "");
  for (int d = 0; d < op->num_dims; d++) {
    if (dim[d] < 0) continue;
    rge_text_format(&text, "%s%s=%lld", text.length > 0 ? " " : "", op->dims[d].symbol, (long long)dim[d]);
  }
  return text.bytes;
}

json_t *rgs_case_json(const rge_entry *entry, const rge_case *item, const rge_peer *peer) {
  const double bytes = (double)item->read_bytes + (double)item->write_bytes;
  json_t *object = json_pack("{s:s, s:b}", "name", item->name, "timed", item->timed);
  json_t *dims = json_object();
  for (int d = 0; d < entry->op->num_dims; d++) {
    if (item->dim[d] >= 0) rgs_put(dims, entry->op->dims[d].name, json_integer(item->dim[d]));
  }
  rgs_put(object, "dims", dims);
  put_own(object, "axes", rgs_axes_text(entry->op, item->dim));
  rgs_put(object, "latency_us", rgs_number(item->latency_us));
  rgs_put(object, "floor_us", rgs_number(item->floor_us));
  rgs_put(object, "ratio", rgs_number(item->ratio));
  rgs_put(object, "roofline_us", rgs_number(item->roofline_us));
  rgs_put(object, "spread", item->timed ? json_real(item->spread) : json_null());
  rgs_put(object, "bytes", json_integer(item->read_bytes + item->write_bytes));
  rgs_put(object, "gb_per_s", rgs_number(item->timed ? bytes * 1e-3 / item->latency_us : 0));
  rgs_put(object, "samples", json_integer(item->sample.count));
  rgs_put(object, "allowance_used", item->allowance_used >= 0 ? json_real(item->allowance_used) : json_null());
  rgs_put(object, "worst_tensor", rgs_text(item->worst_tensor));
  rgs_put(object, "reason", rgs_text(item->reason));
  rgs_put(object, "peer",
          peer == NULL ? json_null()
                       : json_pack("{s:o, s:f, s:o}", "name", rgs_text(peer->name), "latency_us", peer->latency_us,
                                   "times_as_long", rgs_number(peer->ratio)));
  return object;
}

static const rge_peer *fastest_of(const rge_case *item) {
  const rge_peer *best = NULL;
  for (int p = 0; p < item->num_peers; p++) {
    if (best == NULL || item->peers[p].latency_us < best->latency_us) best = &item->peers[p];
  }
  return best;
}

const rge_peer *rgs_peer_for(const rge_index *index, const rge_entry *entry, const rge_case *item) {
  const rge_peer *best = NULL;
  for (int r = 0; r < index->num_records; r++) {
    const rge_record *record = &index->records[r];
    for (int e = 0; e < record->num_entries; e++) {
      const rge_entry *other = &record->entries[e];
      if (!other->has_peers || !rge_entries_alike(entry, other)) continue;
      for (int c = 0; c < other->num_cases; c++) {
        if (strcmp(other->cases[c].name, item->name) != 0) continue;
        const rge_peer *peer = fastest_of(&other->cases[c]);
        if (peer != NULL && (best == NULL || peer->latency_us < best->latency_us)) best = peer;
      }
    }
  }
  return best;
}
