/* ropegrad: verifies and times rotary position embeddings, forward and backward. */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "harness/base/suggest.h"
#include "harness/record/environment.h"
#include "tools/ropegrad/tool.h"

static const struct {
  const char *name;
  int (*run)(int argc, char **argv, const char *const *full_argv);
} commands[] = {{"list", rgt_list},       {"verify", rgt_verify},
                {"bench", rgt_bench},     {"problem", rgt_problem},
                {"report", rgt_report},   {"records", rgt_records},
                {"compare", rgt_compare}, {"export-solution", rgt_export_solution}};
enum { NUM_COMMANDS = sizeof commands / sizeof commands[0] };

static const char help[] =
    "ropegrad verifies and times rotary position embeddings (RoPE), forward and backward.\n"
    "\n"
    "  ropegrad list                    operators, variants, suites, and what this machine can run\n"
    "  ropegrad verify [options]        hold every output against a float64 reference\n"
    "  ropegrad bench  [options]        verify, then time beside the floor: a plain copy of the same bytes\n"
    "  ropegrad problem DIR             verify or bench the workloads of a SOL-ExecBench problem's folder\n"
    "  ropegrad report [options]        the site of the records\n"
    "  ropegrad records check DIR       hold records against their schema and their own samples\n"
    "  ropegrad records reproduce FILE  run a record's command again here, and compare\n"
    "  ropegrad compare OLD NEW         what became slower or faster beyond noise\n"
    "  ropegrad export-solution         an operator's kernels as a solution for SOL-ExecBench's harness\n"
    "  ropegrad help COMMAND            options, examples, and what the columns mean (also: COMMAND --help)\n"
    "  ropegrad --version\n"
    "\n"
    "To begin with:\n"
    "  ropegrad verify --suite smoke\n"
    "  ropegrad bench --json record.json\n"
    "\n"
    "Exit codes: 0 fine; 1 a case failed; 2 wrong use or a bad file; 3 this machine or build lacks what was asked "
    "for.\n";

static int run_command(int argc, char **argv) {
  /* The two of `records` are looked for by their own names too. */
  const char *names[NUM_COMMANDS + 2] = {[NUM_COMMANDS] = "records check", "records reproduce"};
  for (int c = 0; c < NUM_COMMANDS; c++) {
    names[c] = commands[c].name;
    if (strcmp(argv[1], names[c]) == 0) return commands[c].run(argc - 1, argv + 1, (const char *const *)argv);
  }
  const int nearest = rgh_nearest_name(argv[1], names, NUM_COMMANDS + 2);
  if (nearest < 0) return rgt_complain(RGT_WRONG_USE, "", "no command is named '%s'; see ropegrad --help", argv[1]);
  return rgt_complain(RGT_WRONG_USE, "", "no command is named '%s'; did you mean '%s'? See ropegrad --help", argv[1],
                      names[nearest]);
}

/* ropegrad help [COMMAND], or help records COMMAND */
static int run_help(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[2], "records") == 0) {
    return run_command(4, (char *[]){argv[0], argv[2], argv[3], (char[]){"--help"}, NULL});
  }
  if (argc > 3) return rgt_complain(RGT_WRONG_USE, "help", "it takes the name of one command");
  const bool of_itself = argc == 3 && (strcmp(argv[2], "help") == 0 || strcmp(argv[2], "--help") == 0);
  if (argc == 3 && !of_itself) return run_command(3, (char *[]){argv[0], argv[2], (char[]){"--help"}, NULL});
  fputs(help, stdout);
  return RGT_FINE;
}

int main(int argc, char **argv) {
  int code = RGT_FINE;
  if (argc < 2) {
    fputs(help, stderr);
    return RGT_WRONG_USE;
  }
  if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
    fputs(help, stdout);
  } else if (strcmp(argv[1], "help") == 0) {
    code = run_help(argc, argv);
  } else if (strcmp(argv[1], "--version") == 0) {
    char version[128];
    rgh_version_text(version, sizeof version);
    printf("ropegrad %s\n", version);
  } else {
    code = run_command(argc, argv);
  }
  /* A full disk must not look like success. */
  if ((fflush(stdout) != 0 || ferror(stdout)) && code == RGT_FINE) {
    return rgt_complain(RGT_WRONG_USE, "", "standard output could not be written");
  }
  return code;
}
