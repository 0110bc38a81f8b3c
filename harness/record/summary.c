#include <math.h>

#include "harness/record/record.h"

int rgh_count(const rgh_run *run, rgh_status status) {
  int count = 0;
  for (int r = 0; r < run->num_rows; r++) count += run->rows[r].measurement.verdict.status == status;
  return count;
}

double rgh_roofline_us(const rgh_run *run, const rgh_measurement *measurement) {
  const double bandwidth = run->gpu != NULL ? rgh_gpu_bandwidth(run->gpu) : 0;
  if (bandwidth <= 0) return 0;
  return 1e6 * (double)(measurement->cost.read_bytes + measurement->cost.write_bytes) / bandwidth;
}

bool rgh_below_roofline(const rgh_run *run, const rgh_measurement *measurement) {
  return measurement->timed && measurement->latency.us < rgh_roofline_us(run, measurement);
}

static rgh_summary *group_of(rgh_summary *summary, int *groups, const rgh_case *item) {
  const bool in_place = rgh_case_in_place(item);
  for (int g = 0; g < *groups; g++) {
    if (summary[g].op == item->op && summary[g].in_place == in_place) return &summary[g];
  }
  summary[*groups] = (rgh_summary){.op = item->op, .in_place = in_place};
  return &summary[(*groups)++];
}

int rgh_summarise(const rgh_run *run, rgh_summary summary[2 * RG_NUM_OPERATORS]) {
  int groups = 0;
  for (int r = 0; r < run->num_rows; r++) {
    const rgh_measurement *m = &run->rows[r].measurement;
    if (!m->timed) continue;
    rgh_summary *group = group_of(summary, &groups, run->rows[r].item);
    group->cases++;
    group->latency_us += log(m->latency.us);
    group->floor_us += log(m->floor.us);
    group->ratio += log(m->ratio);
    if (m->ratio > group->worst_ratio) {
      group->worst_ratio = m->ratio;
      group->worst_case = run->rows[r].item->name;
    }
  }
  for (int g = 0; g < groups; g++) {
    summary[g].latency_us = exp(summary[g].latency_us / summary[g].cases);
    summary[g].floor_us = exp(summary[g].floor_us / summary[g].cases);
    summary[g].ratio = exp(summary[g].ratio / summary[g].cases);
  }
  return groups;
}
