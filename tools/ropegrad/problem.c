#include <stdio.h>
#include <string.h>

#include "tools/ropegrad/tool.h"

static const char help[] =
    "ropegrad problem DIR [verify|bench] [options]: the workloads of a SOL-ExecBench problem, a case each\n"
    "\n"
    "DIR holds definition.json and workload.jsonl of one of the problems that an operator solves: the names of its "
    "outputs\n"
    "tell which. Sizes, dtypes, scalar inputs and the problem's fixed options are taken from it; tensors are filled as "
    "in\n"
    "`ropegrad verify` and `ropegrad bench`, and results are held against ropegrad's own reference and allowance, "
    "which\n"
    "is stricter than the problem's. docs/sol-execbench.md says what of the files is read.\n"
    "\n"
    "  verify              hold every output against the float64 reference (default)\n"
    "  bench               verify, then time beside the floor\n"
    "\n"
    "Options are those of the two commands, but for --suite and --op; a case's name is the workload's uuid:\n"
    "  --case UUID  --in-place  --max-bytes N  --device D  --variant V  --threads N  --seed N  --json FILE\n"
    "  verify: --repeat N     bench: --protocol P  --timer T  --warm  --budget SECONDS\n"
    "\n"
    "Examples:\n"
    "  ropegrad problem DIR\n"
    "  ropegrad problem DIR bench --budget 0 --json record.json\n"
    "\n"
    "Exit codes: 0 fine; 1 a case failed; 2 wrong use or a bad file; 3 this machine or build lacks what was asked "
    "for.\n";

int rgt_problem(int argc, char **argv, const char *const *full_argv) {
  if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return RGT_FINE;
  }
  if (argc < 2 || argv[1][0] == '-' || argv[1][0] == '\0') {
    return rgt_complain(RGT_WRONG_USE, "problem", "the problem's folder is missing; see ropegrad problem --help");
  }
  const bool named = argc >= 3 && argv[2][0] != '-';
  const bool bench = named && strcmp(argv[2], "bench") == 0;
  if (named && !bench && strcmp(argv[2], "verify") != 0) {
    return rgt_complain(RGT_WRONG_USE, "problem", "after the folder comes verify or bench, not '%s'", argv[2]);
  }
  const int used = named ? 2 : 1; /* the last of them stands in the place of the command's name */
  rgt_options options;
  int code;
  if (!rgt_options_parse(bench ? RGT_PROBLEM_BENCH : RGT_PROBLEM_VERIFY, "problem", help, argc - used, argv + used,
                         &options, &code)) {
    return code;
  }
  options.request.problem = argv[1];
  options.argv = full_argv;
  return bench ? rgt_run_bench(&options) : rgt_run_verify(&options);
}
