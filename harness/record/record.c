#include "harness/record/record.h"

#include <math.h>

#include "harness/record/environment.h"

/* JSON has no infinity and no NaN. */
static json_t *real_json(double value) { return isfinite(value) ? json_real(value) : json_null(); }

/* ---- what verify and bench have in common ---- */

static json_t *head_json(const rgh_case *item, const rgh_run *run) {
  return json_pack("{s:s, s:s, s:s, s:s}", "op", item->op->name, "name", item->name, "device", run->device, "variant",
                   run->variant);
}

static json_t *worst_json(const rgh_case *item, const rgh_comparison *worst) {
  if (worst->tensor < 0) return json_null();
  json_t *index = json_array();
  for (int a = 0; a < item->op->tensors[worst->tensor].rank; a++) {
    json_array_append_new(index, json_integer(worst->index[a]));
  }
  return json_pack("{s:s, s:o, s:o, s:o}", "tensor", item->op->tensors[worst->tensor].name, "index", index, "got",
                   real_json(worst->got), "expected", real_json(worst->expected));
}

/* Adds the keys of the verdict to *object. */
static void add_verdict(json_t *object, const rgh_case *item, const rgh_verdict *verdict) {
  const bool compared = verdict->status != RGH_SKIP && verdict->worst.tensor >= 0;
  json_object_set_new(object, "status", json_string(rgh_status_name(verdict->status)));
  json_object_set_new(object, "allowance_used", compared ? real_json(verdict->worst.allowance_used) : json_null());
  json_object_set_new(object, "worst", compared ? worst_json(item, &verdict->worst) : json_null());
  json_object_set_new(object, "reason", json_string(verdict->reason.text));
}

static json_t *cases_json(const rgh_run *run, json_t *(*case_json)(const rgh_run *, const rgh_row *)) {
  json_t *list = json_array();
  for (int r = 0; r < run->num_rows; r++) json_array_append_new(list, case_json(run, &run->rows[r]));
  return list;
}

static json_t *run_json(const rgh_run *run, const char *schema) {
  return json_pack("{s:s, s:s, s:o, s:i, s:i, s:i}", "schema", schema, "suite", run->suite, "environment",
                   rgh_environment_json(run->machine, run->gpu, run->argv, run->options.threads), "passed",
                   rgh_count(run, RGH_PASS), "failed", rgh_count(run, RGH_FAIL), "skipped", rgh_count(run, RGH_SKIP));
}

/* ---- verify ---- */

static json_t *verified_case_json(const rgh_run *run, const rgh_row *row) {
  json_t *object = head_json(row->item, run);
  json_object_set_new(object, "in_place", json_boolean(rgh_case_in_place(row->item)));
  add_verdict(object, row->item, &row->measurement.verdict);
  return object;
}

json_t *rgh_verify_json(const rgh_run *run) {
  json_t *root = run_json(run, "ropegrad-verify-1");
  json_object_set_new(root, "seed", json_integer((json_int_t)run->options.seed));
  json_object_set_new(root, "repeats", json_integer(run->repeats));
  json_object_set_new(root, "cases", cases_json(run, verified_case_json));
  return root;
}

/* ---- bench ---- */

static json_t *samples_json(const rgh_series *series, int timed_calls) {
  json_t *list = json_array();
  for (int r = 0; r < RGH_REPETITIONS; r++) {
    for (int i = 0; i < timed_calls; i++) json_array_append_new(list, json_real(series->sample_us[r][i]));
  }
  return list;
}

static json_t *medians_json(const rgh_series *series) {
  json_t *list = json_array();
  for (int r = 0; r < RGH_REPETITIONS; r++) json_array_append_new(list, json_real(series->median_us[r]));
  return list;
}

/* null where the clock could not be read. */
static json_t *clocks_json(const rgh_measurement *m) {
  json_t *list = json_array();
  for (int r = 0; r < RGH_REPETITIONS; r++) {
    for (int i = 0; i < m->timed_calls; i++) {
      const int mhz = m->clock_mhz[r][i];
      json_array_append_new(list, mhz > 0 ? json_integer(mhz) : json_null());
    }
  }
  return list;
}

static json_t *floor_json(const rgh_measurement *m) {
  return json_pack("{s:s, s:i, s:o, s:f, s:o}", "copy", m->floor_copy, "copies_tried", m->floor_copies_tried,
                   "medians_us", medians_json(&m->floor), "spread", m->floor.spread, "samples_us",
                   samples_json(&m->floor, m->timed_calls));
}

/* The sizes by which the suite names the case, so that a record says what it measured without the suite at hand. */
static json_t *dims_json(const rgh_case *item) {
  json_t *dims = json_object();
  for (int d = 0; d < item->op->num_dims; d++) {
    if (item->dim[d] >= 0) json_object_set_new(dims, item->op->dims[d].name, json_integer((json_int_t)item->dim[d]));
  }
  return dims;
}

/* A case that was not timed has null for its times and no samples. */
static json_t *timed_case_json(const rgh_run *run, const rgh_row *row) {
  const rgh_measurement *m = &row->measurement;
  const double roofline_us = rgh_roofline_us(run, m);
  json_t *object = head_json(row->item, run);
  json_t *rest =
      json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "in_place", rgh_case_in_place(row->item), "latency_us",
                m->timed ? real_json(m->latency.us) : json_null(), "floor_us",
                m->timed ? real_json(m->floor.us) : json_null(), "ratio", m->timed ? real_json(m->ratio) : json_null(),
                "roofline_us", roofline_us > 0 ? real_json(roofline_us) : json_null(), "below_roofline",
                roofline_us > 0 && m->timed ? json_boolean(rgh_below_roofline(run, m)) : json_null(), "read_bytes",
                (json_int_t)m->cost.read_bytes, "write_bytes", (json_int_t)m->cost.write_bytes, "flops",
                (json_int_t)m->cost.flops);
  json_object_update_missing(object, rest);
  json_decref(rest);
  json_object_set_new(object, "dims", dims_json(row->item));
  json_object_set_new(object, "warmup_calls", json_integer(m->warmup_calls));
  json_object_set_new(object, "timed_calls", json_integer(m->timed ? m->timed_calls : 0));
  json_object_set_new(object, "medians_us", m->timed ? medians_json(&m->latency) : json_array());
  json_object_set_new(object, "spread", m->timed ? real_json(m->latency.spread) : json_null());
  json_object_set_new(object, "samples_us", m->timed ? samples_json(&m->latency, m->timed_calls) : json_array());
  json_object_set_new(object, "sm_clocks_mhz", m->timed && m->clocks_read ? clocks_json(m) : json_null());
  json_object_set_new(object, "floor", m->timed ? floor_json(m) : json_null());
  json_t *verdict = json_object();
  add_verdict(verdict, row->item, &m->verdict);
  json_object_set_new(object, "verify", verdict);
  return object;
}

static json_t *protocol_json(const rgh_run *run) {
  const rgh_bench_options *o = &run->options;
  json_t *protocol = json_pack(
      "{s:s, s:s, s:b, s:I, s:i, s:i, s:i, s:i, s:i, s:o, s:I, s:b, s:i}", "name", o->strict ? "strict" : "faithful",
      "method", run->timer->method, "warm", o->warm, "flush_bytes", (json_int_t)run->timer->flush_bytes,
      "offset_step_bytes", o->warm ? 0 : RGH_MOVE_BYTES, "offset_range_bytes", o->warm ? 0 : RGH_MOVE_RANGE_BYTES,
      "warmup_calls", RGH_WARMUP_CALLS, "timed_calls", RGH_TIMED_CALLS, "repetitions", RGH_REPETITIONS, "budget_s",
      o->budget_s > 0 ? json_real(o->budget_s) : json_null(), "seed", (json_int_t)o->seed, "fresh_inputs", o->strict,
      "calls_compared", o->strict ? 1 : 0);
  const int library = run->timer->library_version;
  json_object_set_new(protocol, "method_library_version", library > 0 ? json_integer(library) : json_null());
  json_object_set_new(protocol, "statistic", json_string("mean over the repetitions of the median of a repetition"));
  return protocol;
}

static json_t *summary_json(const rgh_run *run) {
  rgh_summary summary[2 * RG_NUM_OPERATORS];
  const int groups = rgh_summarise(run, summary);
  json_t *list = json_array();
  for (int g = 0; g < groups; g++) {
    const rgh_summary *s = &summary[g];
    json_array_append_new(
        list,
        json_pack("{s:s, s:b, s:i, s:o, s:o, s:o, s:o, s:s}", "op", s->op->name, "in_place", s->in_place, "cases",
                  s->cases, "geomean_latency_us", real_json(s->latency_us), "geomean_floor_us", real_json(s->floor_us),
                  "ratio", real_json(s->ratio), "worst_ratio", real_json(s->worst_ratio), "worst_case", s->worst_case));
  }
  return list;
}

json_t *rgh_record_json(const rgh_run *run) {
  json_t *root = run_json(run, "ropegrad-record-1");
  json_object_set_new(root, "suite_digest", rgh_text_json(run->suite_digest));
  json_object_set_new(root, "protocol", protocol_json(run));
  json_object_set_new(root, "cases", cases_json(run, timed_case_json));
  json_object_set_new(root, "summary", summary_json(run));
  return root;
}
