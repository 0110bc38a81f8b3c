#include <stdio.h>

#include "tools/ropegrad/progress.h"
#include "tools/ropegrad/table.h"
#include "tools/ropegrad/tool.h"

static const char help[] =
    "ropegrad verify [options]: run every case and hold each element of each output against the float64 reference\n"
    "\n"
    "Which cases:\n"
    "  --suite NAME|FILE   default sol-execbench-rope; `ropegrad list` names the others\n"
    "  --op OP             cases of this operator only (may be repeated)\n"
    "  --case NAME         the case of this name only (may be repeated)\n"
    "  --in-place          run the operators that can work in place in that mode; leave the others out\n"
    "  --max-bytes N       skip cases whose tensors take more (suffixes K, M, G)\n"
    "How:\n"
    "  --device D          cpu, cuda or cuda:N; default: cuda where it can run, else cpu\n"
    "  --variant V         one of `ropegrad list`; default: the fastest\n"
    "  --threads N         default: all that this process may use\n"
    "  --repeat N          run each case N times; all runs must give the same bits (default 2)\n"
    "  --seed N            of the inputs (default 1)\n"
    "  --json FILE         write the result, schema ropegrad-verify-1\n"
    "\n"
    "Columns:\n"
    "  used    share of the contract's allowance that the worst element used: above 1.00 it fails\n"
    "  worst   which element that was; for a case that failed or was skipped, why\n"
    "\n"
    "Examples:\n"
    "  ropegrad verify --suite smoke\n"
    "  ropegrad verify --suite edge --variant cpu.scalar\n"
    "  ropegrad verify --suite my-cases.json --repeat 100 --json result.json\n"
    "\n"
    "Exit codes: 0 all passed; 1 a case failed; 2 wrong use or a bad file; 3 this machine or build lacks what was "
    "asked.\n";

enum { OP, CASE, STATUS, USED, WORST, NUM_COLUMNS };

static void print_row(const rgt_column *columns, const rgh_row *row) {
  const rgh_verdict *verdict = &row->measurement.verdict;
  const rgh_comparison *worst = &verdict->worst;
  char used[32] = "-", place[128] = "", index[RGH_INDEX_TEXT];
  if (verdict->status != RGH_SKIP && worst->tensor >= 0) {
    snprintf(used, sizeof used, "%.2f", worst->allowance_used);
    const rg_tensor_spec *tensor = &row->item->op->tensors[worst->tensor];
    rgh_index_text(worst->index, tensor->rank, index);
    snprintf(place, sizeof place, "%s%s", tensor->name, index);
  }
  const char *cells[NUM_COLUMNS] = {row->item->op->name, row->item->name, rgh_status_name(verdict->status), used,
                                    verdict->status == RGH_PASS ? place : verdict->reason.text};
  rgt_table_row(columns, NUM_COLUMNS, cells);
}

int rgt_run_verify(const rgt_options *options) {
  rgt_session session;
  int code;
  if (!rgt_session_begin(&session, options, rgh_verify_device_bytes, &code)) return code;
  const rgt_column columns[NUM_COLUMNS] = {{"op", rgt_op_width(&session.run), false},
                                           {"case", rgt_case_width(&session.run), false},
                                           {"status", 6, false},
                                           {"used", 6, true},
                                           {"worst", 0, false}};
  rgt_session_print_head(&session);
  putchar('\n');
  rgt_table_head(columns, NUM_COLUMNS);
  const rgt_progress progress = rgt_progress_begin(session.run.num_rows);
  for (int c = 0; c < session.run.num_rows; c++) {
    rgh_row *row = &session.rows[c];
    const rgh_device *device = session.run.options.device;
    const rgh_verify_options verify = {.repeats = options->repeat,
                                       .seed = options->seed,
                                       .threads = session.run.options.threads,
                                       .memory = device != NULL ? device->memory : NULL};
    rgt_progress_case(&progress, c, row->item->op->name, row->item->name);
    if (!rgt_session_skips(&session, c)) {
      rgh_verify_case(session.context, row->item, &verify, &row->measurement.verdict);
    }
    rgt_progress_clear(&progress);
    print_row(columns, row);
  }
  return rgt_session_end(&session, rgh_verify_json);
}

int rgt_verify(int argc, char **argv, const char *const *full_argv) {
  rgt_options options;
  int code;
  if (!rgt_options_parse(RGT_VERIFY, "verify", help, argc, argv, &options, &code)) return code;
  options.argv = full_argv;
  return rgt_run_verify(&options);
}
