/* tool.h: what the subcommands share. */
#ifndef ROPEGRAD_TOOLS_TOOL_H
#define ROPEGRAD_TOOLS_TOOL_H

#include <getopt.h>

#include "harness/base/message.h"
#include "harness/cases/select.h"
#include "harness/cases/suite_folders.h"
#include "harness/cuda/cuda.h"
#include "harness/record/record.h"

/* Exit codes. Scripts rely on them. */
enum {
  RGT_FINE = 0,
  RGT_MISMATCH = 1,  /* a case failed */
  RGT_WRONG_USE = 2, /* of the command line, or a bad file */
  RGT_LACKING = 3    /* this machine or build lacks what was asked for */
};

/* One line on standard error, "ropegrad COMMAND: REASON". Returns `code`, so that a caller can return it in turn. */
int rgt_complain(int code, const char *command, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* The same of an option that is none of `known` (ended by a name of NULL), with the one that is most like it. */
int rgt_complain_unknown(const char *command, const char *typed, const struct option *known);

/* ---- options.c ---- */

/* The folders that suites are looked for in by name: installed, of the source tree, and ./suites. */
typedef struct rgt_folders {
  char installed[RGH_SUITE_PATH_BYTES];
  const char *list[4]; /* ended by NULL */
} rgt_folders;
void rgt_folders_find(rgt_folders *folders);

typedef struct rgt_options {
  const char *command;
  rgh_request request; /* folders are the command's to set */
  bool device_given;
  DLDevice device;
  const char *variant; /* NULL: the fastest */
  int threads;         /* 0: as many as the process may use */
  int repeat;
  uint64_t seed;
  bool strict, warm;
  bool timer_given, events; /* on a GPU: by CUDA events, and not by CUPTI */
  double budget_s;
  const char *json;        /* NULL: no file */
  const char *const *argv; /* of the whole program, for the record */
} rgt_options;

/* Which options a command takes besides --json and --help. */
typedef enum rgt_command {
  RGT_LIST = 1,
  RGT_VERIFY = 2,
  RGT_BENCH = 4,
  RGT_PROBLEM_VERIFY = 8, /* of a problem's folder: no suite and no operator to choose */
  RGT_PROBLEM_BENCH = 16
} rgt_command;

/* Reads the options after the command's name. True: go on. False: the command is over, with *code; --help has printed
 * `help`, or a line has said what was wrong. */
bool rgt_options_parse(rgt_command command, const char *name, const char *help, int argc, char **argv,
                       rgt_options *options, int *code);

/* ---- session.c: what verify and bench do before and after their cases ---- */

typedef struct rgt_session {
  const rgt_options *options;
  rgt_folders folders;
  rgh_selection selection;
  rgh_machine machine;
  rg_context *context;
  char device[32]; /* "cpu", "cuda:0" */
  bool on_gpu;
  int device_index;
  rgh_cuda *cuda; /* NULL: the device is the CPU */
  rgh_gpu gpu;
  rgh_timer timer; /* bench */
  rgh_row *rows;   /* one per case of the selection */
  rgh_run run;
} rgt_session;

/* Reads the suite and opens the device. On a GPU, device_bytes says how much of its memory a case takes at the most.
 * *code as in rgt_options_parse. */
bool rgt_session_begin(rgt_session *session, const rgt_options *options, size_t (*device_bytes)(const rgh_case *item),
                       int *code);

/* Prints the head of the table, once nothing that was asked for is found to be missing any more. */
void rgt_session_print_head(const rgt_session *session);

/* Whether the case is larger than --max-bytes; its verdict then says that it was skipped. */
bool rgt_session_skips(rgt_session *session, int index);

/* Releases everything. */
void rgt_session_abandon(rgt_session *session);

/* Prints the counts, writes the JSON file if one was asked for, releases everything, and returns the exit code. */
int rgt_session_end(rgt_session *session, json_t *(*to_json)(const rgh_run *));

/* ---- verify.c, bench.c: the work of the commands, on options that are parsed. Each returns the exit code ---- */

int rgt_run_verify(const rgt_options *options);
int rgt_run_bench(const rgt_options *options);

/* ---- the subcommands: argv[0] is the command's name; full_argv is the whole program's ---- */

int rgt_list(int argc, char **argv, const char *const *full_argv);
int rgt_verify(int argc, char **argv, const char *const *full_argv);
int rgt_bench(int argc, char **argv, const char *const *full_argv);
int rgt_problem(int argc, char **argv, const char *const *full_argv);
int rgt_report(int argc, char **argv, const char *const *full_argv);
int rgt_records(int argc, char **argv, const char *const *full_argv);
int rgt_compare(int argc, char **argv, const char *const *full_argv);
int rgt_export_solution(int argc, char **argv, const char *const *full_argv);

#endif /* ROPEGRAD_TOOLS_TOOL_H */
