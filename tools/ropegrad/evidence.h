/* evidence.h: what report, records and compare share. */
#ifndef ROPEGRAD_TOOLS_EVIDENCE_H
#define ROPEGRAD_TOOLS_EVIDENCE_H

#include "harness/evidence/change.h"
#include "harness/evidence/index.h"
#include "tools/ropegrad/tool.h"

enum { RGT_MAX_PATHS = 16 };

/* The command line of these commands: options with a path each, and operands. */
typedef struct rgt_arguments {
  const char *records[RGT_MAX_PATHS + 1]; /* --records, ended by NULL */
  int num_records;
  const char *out;  /* --out */
  const char *json; /* --json */
  const char *operand[RGT_MAX_PATHS];
  int num_operands;
} rgt_arguments;

typedef struct rgt_form {
  const char *command, *help;
  bool takes_records, takes_json; /* --records and --out; --json */
  int least_operands, most_operands;
  const char *operands; /* what they are, for the complaint */
} rgt_form;

/* True: go on. False: the command is over, with *code. */
bool rgt_arguments_parse(const rgt_form *form, int argc, char **argv, rgt_arguments *arguments, int *code);

/* Everything that reading records needs: suites, schemas, templates, wherever the tool was installed or built. */
typedef struct rgt_library {
  rgt_folders folders;
  rge_suites suites;
  char schemas[RGH_SUITE_PATH_BYTES], templates[RGH_SUITE_PATH_BYTES];
} rgt_library;

bool rgt_library_open(rgt_library *library, const char *command, int *code);
void rgt_library_close(rgt_library *library);

/* Says why each refused file was, one line each. Returns how many there were. */
int rgt_complain_refusals(const rge_index *index, const char *command);

/* ---- compare.c ---- */

/* What two records have in common, and what not. Numbers of cases. */
typedef struct rgt_changes {
  int verdict[RGE_NUM_VERDICTS]; /* of the compared ones */
  int compared;
  int hidden;         /* of those that differ by less than noise, but by more than 10 % */
  int lacking;        /* timed in the old record, not in the new one at all */
  int untimed;        /* timed in the old record; the new one has them and no time */
  int added;          /* in the new record alone */
  int unlike;         /* in both, and not of the same thing */
  bool another_suite; /* the digests of the suites differ */
} rgt_changes;

/* Prints both records side by side, with a verdict a case and an operator and a line for what cannot be compared. */
rgt_changes rgt_print_changes(const rge_record *before, const rge_record *after);

/* ---- the parts of `records` ---- */

int rgt_records_check(int argc, char **argv);
int rgt_records_reproduce(int argc, char **argv);

#endif /* ROPEGRAD_TOOLS_EVIDENCE_H */
