#include <stdio.h>

#include "tools/ropegrad/progress.h"
#include "tools/ropegrad/table.h"
#include "tools/ropegrad/tool.h"

static const char help[] =
    "ropegrad bench [options]: verify every case, then time it beside its floor, a plain copy of as many bytes\n"
    "\n"
    "Which cases:\n"
    "  --suite NAME|FILE   default sol-execbench-rope; `ropegrad list` names the others\n"
    "  --op OP             cases of this operator only (may be repeated)\n"
    "  --case NAME         the case of this name only (may be repeated)\n"
    "  --in-place          time the operators that can work in place in that mode; leave the others out\n"
    "  --max-bytes N       skip cases whose tensors take more (suffixes K, M, G)\n"
    "How:\n"
    "  --device D          cpu, cuda or cuda:N; default: cuda where it can run, else cpu\n"
    "  --variant V         one of `ropegrad list`; default: the fastest\n"
    "  --threads N         default: all that this process may use\n"
    "  --protocol P        faithful: caches flushed and tensors moved before every call (default)\n"
    "                      strict: fresh input values too, guards checked, and one timed call compared\n"
    "  --timer T           of a GPU. cupti: from the first activity of a call on the GPU to the end of the last, by\n"
    "                      CUPTI's records (default); events: between two CUDA events, about a microsecond more.\n"
    "                      libcupti.so is looked for where the loader, CUDA toolkits and Python keep it; the\n"
    "                      environment's ROPEGRAD_CUPTI names another file\n"
    "  --warm              neither flush nor move anything: the speed in the caches\n"
    "  --budget SECONDS    time that a case may take, verification apart (default 2); calls are left out to keep to\n"
    "                      it, 5 a repetition at the least; 0: take them all, 3 times 10 + 50\n"
    "  --seed N            of the inputs (default 1)\n"
    "  --json FILE         write the record, schema ropegrad-record-1, with every sample\n"
    "\n"
    "Columns:\n"
    "  latency us   of one call: the mean of three medians\n"
    "  floor us     of the fastest plain copy that reads and writes as many bytes, measured between the calls\n"
    "  ratio        latency / floor: 1.00 is the limit of this machine\n"
    "  GB/s         compulsory bytes of the case over its latency; floor GB/s: over the floor\n"
    "  spread       of the three medians, (largest - smallest) / mean: beyond 10 % the machine was busy\n"
    "  below the roofline   faster than a GPU's memory can be by its datasheet: distrust it\n"
    "\n"
    "Examples:\n"
    "  ropegrad bench --json record.json\n"
    "  ropegrad bench --op OP --case NAME --budget 0\n"
    "  ropegrad bench --suite smoke --variant cpu.scalar --threads 1 --warm\n"
    "\n"
    "Exit codes: 0 all timed; 1 a case failed and was not timed; 2 wrong use or a bad file; 3 this machine or build "
    "lacks\n"
    "what was asked.\n";

enum { OP, CASE, LATENCY, FLOOR, RATIO, SPEED, FLOOR_SPEED, SPREAD, NOTE, NUM_COLUMNS };
enum { CELL_BYTES = 32 };

/* Where nothing is known of the caches. */
static const int64_t UNKNOWN_CACHE_BYTES = INT64_C(64) << 20;

/* Runnable processes per CPU before ours began, beyond which times are not to be trusted. */
static const double BUSY_LOAD = 0.5;

/* CUPTI unless events were asked for: what is missing is said, and nothing else is taken in its place. */
static bool create_gpu_timer(rgt_session *session, int *code) {
  const rgt_options *o = session->options;
  rgh_message why;
  if (o->events ? rgh_cuda_event_timer_create(&session->timer, session->cuda, o->warm, &why)
                : rgh_cuda_cupti_timer_create(&session->timer, session->cuda, o->warm, &why)) {
    return true;
  }
  *code = rgt_complain(RGT_LACKING, o->command, "--timer %s: %s", o->events ? "events" : "cupti", why.text);
  return false;
}

static bool create_cpu_timer(rgt_session *session, int *code) {
  int64_t cache_bytes = rgh_last_level_cache_bytes(&session->machine);
  if (cache_bytes == 0) cache_bytes = UNKNOWN_CACHE_BYTES;
  rgh_message why;
  const size_t flush_bytes = session->options->warm ? 0 : (size_t)(2 * cache_bytes);
  if (rgh_cpu_timer_create(&session->timer, flush_bytes, session->run.options.threads, &why)) return true;
  *code = rgt_complain(RGT_LACKING, session->options->command, "%s", why.text);
  return false;
}

static bool create_timer(rgt_session *session, int *code) {
  if (session->cuda != NULL) return create_gpu_timer(session, code);
  if (!session->options->timer_given) return create_cpu_timer(session, code);
  *code = rgt_complain(RGT_WRONG_USE, session->options->command, "--timer is for GPUs; the CPU has the one clock");
  return false;
}

static void print_protocol(const rgh_run *run) {
  const rgh_bench_options *o = &run->options;
  printf("protocol %s: ", o->strict ? "strict" : "faithful");
  if (o->warm) {
    printf("caches left warm");
  } else {
    printf("%.0f MiB flushed before every call", (double)run->timer->flush_bytes / (1 << 20));
  }
  printf("; %d x (%d + %d) calls", RGH_REPETITIONS, RGH_WARMUP_CALLS, RGH_TIMED_CALLS);
  if (o->budget_s > 0) printf(" at most, %g s a case", o->budget_s);
  putchar('\n');
  if (run->machine->load > run->machine->cpus_online * BUSY_LOAD) {
    printf("note: the load of the last minute is %.1f on %d CPUs; what else runs here disturbs the times\n",
           run->machine->load, run->machine->cpus_online);
  }
}

static double gigabytes_per_second(const rgh_measurement *m, double us) {
  return (double)(m->cost.read_bytes + m->cost.write_bytes) * 1e-3 / us;
}

/* After the point: a GPU's times are short and steady. */
static int digits_of(const rgh_run *run) { return run->gpu != NULL ? 2 : 1; }

static void print_row(const rgh_run *run, const rgt_column *columns, const rgh_row *row) {
  const int digits = digits_of(run);
  const rgh_measurement *m = &row->measurement;
  char cell[NUM_COLUMNS][CELL_BYTES];
  const char *cells[NUM_COLUMNS] = {row->item->op->name, row->item->name};
  if (!m->timed) {
    printf("%-*s  %-*s  %s: %s\n", columns[OP].width, cells[OP], columns[CASE].width, cells[CASE],
           rgh_status_name(m->verdict.status), m->verdict.reason.text);
    return;
  }
  snprintf(cell[LATENCY], CELL_BYTES, "%.*f", digits, m->latency.us);
  snprintf(cell[FLOOR], CELL_BYTES, "%.*f", digits, m->floor.us);
  snprintf(cell[RATIO], CELL_BYTES, "%.*f", digits + 1, m->ratio);
  snprintf(cell[SPEED], CELL_BYTES, "%.1f", gigabytes_per_second(m, m->latency.us));
  snprintf(cell[FLOOR_SPEED], CELL_BYTES, "%.1f", gigabytes_per_second(m, m->floor.us));
  snprintf(cell[SPREAD], CELL_BYTES, "%.1f %%", 100 * m->latency.spread);
  const bool impossible = rgh_below_roofline(run, m);
  snprintf(cell[NOTE], CELL_BYTES, "%s", impossible ? "below the roofline" : "");
  for (int c = LATENCY; c < NUM_COLUMNS; c++) cells[c] = cell[c];
  rgt_table_row(columns, NUM_COLUMNS, cells);
}

static void print_summary(const rgh_run *run) {
  const int digits = digits_of(run);
  rgh_summary summary[2 * RG_NUM_OPERATORS];
  const int groups = rgh_summarise(run, summary);
  if (groups == 0) return;
  printf("\nGeometric means; the ratio is the mean of the ratios, the worst case stands beside it\n");
  static const rgt_column columns[] = {{"op", 17, false},        {"mode", 8, false},      {"cases", 5, true},
                                       {"latency us", 11, true}, {"floor us", 11, true},  {"ratio", 6, true},
                                       {"worst", 6, true},       {"worst case", 0, false}};
  enum { COLUMNS = sizeof columns / sizeof columns[0] };
  rgt_table_head(columns, COLUMNS);
  for (int g = 0; g < groups; g++) {
    const rgh_summary *s = &summary[g];
    char cases[CELL_BYTES], latency[CELL_BYTES], floor[CELL_BYTES], ratio[CELL_BYTES], worst[CELL_BYTES];
    snprintf(cases, CELL_BYTES, "%d", s->cases);
    snprintf(latency, CELL_BYTES, "%.*f", digits, s->latency_us);
    snprintf(floor, CELL_BYTES, "%.*f", digits, s->floor_us);
    snprintf(ratio, CELL_BYTES, "%.*f", digits + 1, s->ratio);
    snprintf(worst, CELL_BYTES, "%.*f", digits + 1, s->worst_ratio);
    const char *cells[COLUMNS] = {s->op->name,  s->in_place ? "in place" : "-", cases, latency, floor, ratio, worst,
                                  s->worst_case};
    rgt_table_row(columns, COLUMNS, cells);
  }
}

int rgt_run_bench(const rgt_options *options) {
  rgt_session session;
  int code;
  if (!rgt_session_begin(&session, options, rgh_bench_device_bytes, &code)) return code;
  if (!create_timer(&session, &code)) {
    rgt_session_abandon(&session);
    return code;
  }
  session.run.timer = &session.timer;
  rgt_session_print_head(&session);
  print_protocol(&session.run);
  const rgt_column columns[NUM_COLUMNS] = {{"op", rgt_op_width(&session.run), false},
                                           {"case", rgt_case_width(&session.run), false},
                                           {"latency us", 11, true},
                                           {"floor us", 11, true},
                                           {"ratio", 5, true},
                                           {"GB/s", 6, true},
                                           {"floor GB/s", 10, true},
                                           {"spread", 7, true},
                                           {"", 0, false}};
  putchar('\n');
  rgt_table_head(columns, NUM_COLUMNS);
  const rgt_progress progress = rgt_progress_begin(session.run.num_rows);
  for (int c = 0; c < session.run.num_rows; c++) {
    rgh_row *row = &session.rows[c];
    rgt_progress_case(&progress, c, row->item->op->name, row->item->name);
    if (!rgt_session_skips(&session, c)) {
      rgh_bench_case(session.context, row->item, &session.timer, &session.run.options, &row->measurement);
    }
    rgt_progress_clear(&progress);
    print_row(&session.run, columns, row);
  }
  print_summary(&session.run);
  return rgt_session_end(&session, rgh_record_json);
}

int rgt_bench(int argc, char **argv, const char *const *full_argv) {
  rgt_options options;
  int code;
  if (!rgt_options_parse(RGT_BENCH, "bench", help, argc, argv, &options, &code)) return code;
  options.argv = full_argv;
  return rgt_run_bench(&options);
}
