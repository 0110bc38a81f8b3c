#include <stdio.h>
#include <string.h>

#include "harness/evidence/sums.h"
#include "tools/ropegrad/evidence.h"

static const char help[] =
    "ropegrad records check DIR...       are the records sound? One line per problem\n"
    "ropegrad records reproduce FILE     run a record's command again on this machine, and print both\n"
    "ropegrad records COMMAND --help\n";

static const char check_help[] =
    "ropegrad records check DIR|FILE...: one line per problem\n"
    "\n"
    "Each record is held against schema/record.schema.json; every median, latency, floor, ratio, spread and aggregate\n"
    "is recomputed from its raw samples; a dirty or unknown commit, a missing field, a time below the roofline and a\n"
    "case that was timed without a pass are problems. Digests are recomputed: of the suite, of the kernel images "
    "where\n"
    "this build is of the record's commit, and of every file that an XXH128SUMS beside it lists (xxh128sum writes "
    "it).\n"
    "Lines that begin with \"note\" are worth knowing and no problems.\n"
    "\n"
    "Exit codes: 0 no problem; 1 problems; 2 wrong use, no record, or a file that cannot be read at all.\n";

/* Returns how many problems there were besides notes. */
static int print_problems(const char *path, const rge_problems *problems) {
  rgh_message shown;
  rgh_fail(&shown, "%s", path); /* a file's name may hold what a terminal obeys */
  for (int p = 0; p < problems->count; p++) {
    const bool note = problems->list[p].weight == RGE_NOTE;
    printf("%s%s: %s\n", note ? "note: " : "", shown.text, problems->list[p].what.text);
  }
  if (problems->left_out > 0) printf("%s: and %d more\n", shown.text, problems->left_out);
  if (problems->notes_left_out > 0) printf("note: %s: and %d more notes\n", shown.text, problems->notes_left_out);
  return rge_problems_count(problems);
}

static int check_record(const rge_record *record) {
  int count = print_problems(record->path, &record->problems);
  for (int e = 0; e < record->num_entries; e++) count += print_problems(record->path, &record->entries[e].problems);
  return count;
}

static int check_sums(const char *path) {
  rge_problems problems = {0};
  rge_sums_check(path, &problems);
  const int count = rge_problems_count(&problems);
  for (int p = 0; p < problems.count; p++) printf("%s\n", problems.list[p].what.text);
  if (problems.left_out > 0) printf("%s: and %d more\n", path, problems.left_out);
  rge_problems_free(&problems);
  return count;
}

int rgt_records_check(int argc, char **argv) {
  const rgt_form form = {.command = "records check",
                         .help = check_help,
                         .least_operands = 1,
                         .most_operands = RGT_MAX_PATHS - 1,
                         .operands = "a folder of records"};
  rgt_arguments arguments;
  rgt_library library;
  int code;
  if (!rgt_arguments_parse(&form, argc, argv, &arguments, &code)) return code;
  if (!rgt_library_open(&library, form.command, &code)) return code;
  const rge_sources sources = {.paths = arguments.operand, .schemas = library.schemas, .suites = &library.suites};
  rge_index index = {0};
  rgh_message why;
  if (!rge_index_load(&sources, &index, &why)) {
    code = rgt_complain(RGT_WRONG_USE, form.command, "%s", why.text);
  } else {
    int problems = 0;
    for (int r = 0; r < index.num_records; r++) problems += check_record(&index.records[r]);
    for (int i = 0; i < arguments.num_operands; i++) problems += check_sums(arguments.operand[i]);
    const int refused = rgt_complain_refusals(&index, form.command);
    printf("%d record%s checked, %d problem%s\n", index.num_records, index.num_records == 1 ? "" : "s",
           problems + refused, problems + refused == 1 ? "" : "s");
    code = refused > 0 ? RGT_WRONG_USE : problems > 0 ? RGT_MISMATCH : RGT_FINE;
    if (index.num_records + index.num_reported + refused + problems == 0) {
      code = rgt_complain(RGT_WRONG_USE, form.command, "no record found: %s holds no .json file", arguments.operand[0]);
    }
  }
  rge_index_free(&index);
  rgt_library_close(&library);
  return code;
}

int rgt_records(int argc, char **argv, const char *const *full_argv) {
  (void)full_argv;
  if (argc > 1 && strcmp(argv[1], "check") == 0) return rgt_records_check(argc - 1, argv + 1);
  if (argc > 1 && strcmp(argv[1], "reproduce") == 0) return rgt_records_reproduce(argc - 1, argv + 1);
  if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
    fputs(help, stdout);
    return RGT_FINE;
  }
  return rgt_complain(RGT_WRONG_USE, "records", "needs check or reproduce; see ropegrad records --help");
}
