#include "harness/evidence/read_case.h"

#include <stdlib.h>
#include <string.h>

#include "harness/evidence/expect.h"
#include "harness/evidence/peers.h"

/* Beyond this the medians of the repetitions disagree too much for one number to stand for them. */
static const double NOISY_SPREAD = 0.10;
/* A call that is so much faster than the fastest copy of its bytes did not move them. */
static const double IMPLAUSIBLE_RATIO = 0.7;

/* ---- sizes ---- */

static void read_dims(const json_t *source, const rgh_suite *suite, rge_entry *entry, rge_case *item) {
  const rg_operator *op = entry->op;
  const json_t *dims = json_object_get(source, "dims");
  const rgh_case *known = rge_suite_case(suite, op, item->name);
  for (int d = 0; d < RG_MAX_DIMS; d++) {
    const json_t *size = d < op->num_dims ? json_object_get(dims, op->dims[d].name) : NULL;
    item->dim[d] = json_is_integer(size) ? json_integer_value(size) : known != NULL ? known->dim[d] : -1;
    if (known == NULL || d >= op->num_dims || item->dim[d] == known->dim[d]) continue;
    rge_case_problem(entry, item, RGE_LOWERS, "its %s is not that of the suite's case of this name", op->dims[d].name);
  }
  if (suite != NULL && known == NULL) rge_case_problem(entry, item, RGE_LOWERS, "the suite has no such case");
}

/* ---- times ---- */

/* A record of peers has no floor: it is not ranked, but its peers stand beside the cases of records that have one. */
static void miss_floor(const json_t *source, rge_entry *entry, const rge_case *item) {
  const bool has_peers = json_is_array(json_object_get(source, "peers"));
  if (!has_peers) rge_case_problem(entry, item, RGE_LOWERS, "there is no floor beside the time");
}

static bool read_floor(const json_t *source, int repetitions, rge_entry *entry, rge_case *item) {
  const json_t *floor = json_object_get(source, "floor");
  rge_series series;
  rgh_message why;
  if (!json_is_object(floor)) {
    miss_floor(source, entry, item);
    return false;
  }
  if (!rge_series_read(json_object_get(floor, "samples_us"), repetitions, &series, &why)) {
    rge_case_problem(entry, item, RGE_LOWERS, "floor: %s", why.text);
    return false;
  }
  item->floor_us = series.us;
  item->floor_spread = series.spread;
  item->floor_sample = series.quantiles;
  item->samples_hash = item->samples_hash * 31 + series.hash;
  rge_expect(entry, item, source, "", "floor_us", series.us);
  rge_expect(entry, item, floor, "of the floor ", "spread", series.spread);
  rge_expect_medians(entry, item, floor, "of the floor ", &series);
  rge_series_free(&series);
  return item->floor_us > 0;
}

static void check_plausible(rge_entry *entry, const rge_case *item) {
  if (item->roofline_us > 0 && item->latency_us < item->roofline_us) {
    rge_case_problem(entry, item, RGE_LOWERS,
                     "%.4g us is below the roofline, %.4g us: its bytes cannot have moved so fast", item->latency_us,
                     item->roofline_us);
  }
  if (item->ratio > 0 && item->ratio < IMPLAUSIBLE_RATIO) {
    rge_case_problem(entry, item, RGE_LOWERS, "%.2f of the time of a plain copy of the same bytes is not plausible",
                     item->ratio);
  }
  if (item->spread > NOISY_SPREAD) {
    rge_case_problem(entry, item, RGE_NOTE, "its repetitions differ by %.0f %%: the machine was busy",
                     item->spread * 100);
  }
}

static void read_times(const json_t *source, int repetitions, rge_entry *entry, rge_case *item) {
  rge_series series;
  rgh_message why;
  const json_t *stated = json_object_get(source, "latency_us");
  if (!rge_series_read(json_object_get(source, "samples_us"), repetitions, &series, &why)) {
    if (!json_is_number(stated)) return; /* not timed */
    rge_case_problem(entry, item, RGE_LOWERS, "%s: its latency cannot be recomputed", why.text);
    item->latency_us = json_number_value(stated);
    item->floor_us = json_number_value(json_object_get(source, "floor_us"));
  } else {
    item->latency_us = series.us;
    item->spread = series.spread;
    item->sample = series.quantiles;
    item->samples_hash = series.hash;
    rge_expect(entry, item, source, "", "latency_us", series.us);
    rge_expect(entry, item, source, "", "spread", series.spread);
    rge_expect_medians(entry, item, source, "", &series);
    rge_series_free(&series);
    const bool floor = read_floor(source, repetitions, entry, item);
    if (floor) rge_expect(entry, item, source, "", "ratio", item->latency_us / item->floor_us);
  }
  item->timed = item->latency_us > 0;
  if (item->timed && item->floor_us > 0) item->ratio = item->latency_us / item->floor_us;
  item->roofline_us = json_number_value(json_object_get(source, "roofline_us"));
  if (item->timed) check_plausible(entry, item);
}

/* ---- errors against the reference ---- */

static void read_verdict(const json_t *source, rge_entry *entry, rge_case *item) {
  const json_t *verdict = json_object_get(source, "verify");
  const json_t *used = json_object_get(verdict, "allowance_used");
  const char *status = json_string_value(json_object_get(verdict, "status"));
  const char *tensor = json_string_value(json_object_get(json_object_get(verdict, "worst"), "tensor"));
  const char *reason = json_string_value(json_object_get(verdict, "reason"));
  item->allowance_used = json_is_number(used) ? json_number_value(used) : -1;
  const int worst = tensor != NULL ? rg_dev_find_tensor(entry->op, tensor) : -1;
  if (worst >= 0) item->worst_tensor = entry->op->tensors[worst].name;
  if (!item->timed) {
    item->reason = strdup(reason != NULL && *reason != '\0' ? reason : "not timed");
    return;
  }
  if (status == NULL || strcmp(status, "pass") != 0) {
    rge_case_problem(entry, item, RGE_LOWERS, "was timed without a pass against the reference");
  } else if (item->allowance_used > 1) {
    rge_case_problem(entry, item, RGE_LOWERS, "uses %.3g of the accuracy allowed, which is not a pass",
                     item->allowance_used);
  }
}

bool rge_case_read(const json_t *source, int repetitions, const rgh_suite *suite, rge_entry *entry, rge_case *item) {
  *item = (rge_case){.allowance_used = -1};
  item->name = strdup(json_string_value(json_object_get(source, "name")));
  if (item->name == NULL) return false;
  const double read = json_number_value(json_object_get(source, "read_bytes"));
  const double written = json_number_value(json_object_get(source, "write_bytes"));
  item->read_bytes = read < 1e18 ? (int64_t)read : 0;
  item->write_bytes = written < 1e18 ? (int64_t)written : 0;
  read_dims(source, suite, entry, item);
  read_times(source, repetitions, entry, item);
  read_verdict(source, entry, item);
  const json_t *peers = json_object_get(source, "peers");
  return !json_is_array(peers) || rge_peers_read(peers, repetitions, entry, item);
}

void rge_case_free(rge_case *item) {
  rge_peers_free(item);
  free(item->name);
  free(item->reason);
}
