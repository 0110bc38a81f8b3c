#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/base/json_file.h"
#include "harness/evidence/load.h"
#include "harness/record/environment.h"
#include "tools/ropegrad/evidence.h"

static const char help[] =
    "ropegrad records reproduce FILE: runs a record's command again here and compares\n"
    "\n"
    "  --json FILE   keep the new record, in another file; beside the old one it lifts its tier, when the commit is\n"
    "                the same and they agree\n"
    "\n"
    "Only `bench` and `problem DIR bench` are run, by this tool itself and without a shell, with the record's options "
    "but for\n"
    "--json. For a verdict on the record's own source, check out its commit and build it first: a note says when this\n"
    "build is of another one. The table is that of `ropegrad compare`.\n"
    "\n"
    "Verdicts:\n"
    "  the same     every case of the record was timed again, and none differs by more than noise; said too: where\n"
    "               the noise would hide more than 10 %\n"
    "  drifted      as the same, but the machine is faster or slower today, and the floors with it\n"
    "  faster       some case is faster beyond noise, and none is slower\n"
    "  slower       some case is slower beyond noise, or has no time any more\n"
    "  incomplete   the command did not time just the cases of the record, or not the same sizes\n"
    "\n"
    "Exit codes: 0 the same, drifted or faster; 1 slower, or a case failed; 2 wrong use, a bad file or a command that\n"
    "writes no record; 3 incomplete or not comparable: this machine is another one, or lacks what the record needs.\n";

static const char name[] = "records reproduce";
enum { MAX_ARGUMENTS = 256, PATH_BYTES = 4096 };

/* The record's command for this tool. Every argument but the first is the record's; --json is replaced. */
typedef struct command {
  const char *argument[MAX_ARGUMENTS + 4];
  int count;
} command;

/* `bench ...` or `problem DIR bench ...`. */
static bool is_bench(const json_t *argv) {
  const char *verb = json_string_value(json_array_get(argv, 1)), *third = json_string_value(json_array_get(argv, 3));
  if (verb == NULL) return false;
  return strcmp(verb, "bench") == 0 || (strcmp(verb, "problem") == 0 && third != NULL && strcmp(third, "bench") == 0);
}

static bool take_arguments(const json_t *argv, command *made, rgh_message *why) {
  if (!is_bench(argv)) {
    return rgh_fail(why, "environment.argv is no `bench` command of this tool: it cannot be run again here");
  }
  if (json_array_size(argv) > MAX_ARGUMENTS) return rgh_fail(why, "environment.argv is too long");
  made->argument[made->count++] = "ropegrad";
  for (size_t i = 1; i < json_array_size(argv); i++) {
    const char *argument = json_string_value(json_array_get(argv, i));
    if (argument == NULL) return rgh_fail(why, "environment.argv holds something that is no text");
    /* Also as the tool accepts it abbreviated. */
    const size_t length = strcspn(argument, "=");
    if (length > 2 && strncmp(argument, "--json", length) == 0) {
      i += argument[length] == '\0';
      continue;
    }
    made->argument[made->count++] = argument;
  }
  return true;
}

/* ---- the run ---- */

/* In the child: becomes the command, which writes its record into the pipe. It ends with its parent, so that a
 * reproduction that is interrupted leaves nothing behind, neither a process nor a file. */
static _Noreturn void become(command *made, int pipe_end) {
  char self[PATH_BYTES], json[64];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  const pid_t parent = getppid();
  if (length <= 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent || parent == 1) _exit(127);
  self[length] = '\0';
  snprintf(json, sizeof json, "/dev/fd/%d", pipe_end);
  made->argument[made->count++] = "--json";
  made->argument[made->count++] = json;
  made->argument[made->count] = NULL;
  execv(self, (char *const *)made->argument);
  _exit(127);
}

/* Until the other end is closed. False: the record is not complete. */
static bool pour(int from, int into) {
  char block[1 << 16];
  for (;;) {
    const ssize_t got = read(from, block, sizeof block);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return got == 0;
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = write(into, block + done, (size_t)(got - done));
      if (wrote < 0 && errno != EINTR) return false;
      if (wrote > 0) done += wrote;
    }
  }
}

/* Runs the command; its record goes to the file `into`. Returns its exit code; -1: it did not run. */
static int run(command *made, int into, rgh_message *why) {
  int ends[2], status = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) return rgh_fail(why, "%s", strerror(errno)) - 1;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    const int inherited = dup(ends[1]); /* without O_CLOEXEC */
    if (inherited >= 0) become(made, inherited);
    _exit(127);
  }
  close(ends[1]);
  const bool complete = child > 0 && pour(ends[0], into);
  close(ends[0]);
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (!complete || !WIFEXITED(status) || WEXITSTATUS(status) == 127) {
    return rgh_fail(why, "the command could not be run") - 1;
  }
  return WEXITSTATUS(status);
}

/* ---- the verdict ---- */

static void note_source(const rge_record *record) {
  char version[128], part[16];
  rgh_version_text(version, sizeof version);
  snprintf(part, sizeof part, "%.12s", record->commit);
  rgh_keep_on_one_line(part);
  if (strlen(part) < 12 || strstr(version, part) == NULL) {
    printf("note: this build is ropegrad %s, the record's commit is %s: the code differs too\n", version,
           part[0] != '\0' ? part : "unknown");
  } else if (strstr(version, "modified") != NULL) {
    printf("note: this build is of the record's commit with uncommitted changes\n");
  }
}

static int judge(const rgt_changes *sum) {
  const int *verdict = sum->verdict;
  if (sum->compared + sum->untimed == 0) {
    return rgt_complain(RGT_LACKING, name, "not comparable: the lines above say what differs");
  }
  if (verdict[RGE_SLOWER] + sum->untimed > 0) {
    puts("verdict: slower");
    return RGT_MISMATCH;
  }
  if (sum->lacking + sum->added + sum->unlike > 0 || sum->another_suite) {
    puts("verdict: incomplete: the command did not time just the cases of the record");
    return RGT_LACKING;
  }
  if (verdict[RGE_FASTER] > 0) {
    printf("verdict: faster, %d of %d cases\n", verdict[RGE_FASTER], sum->compared);
  } else if (verdict[RGE_DRIFT] > 0) {
    puts("verdict: drifted: the same beside the floors, which the machine moved");
  } else {
    puts(sum->hidden > 0 ? "verdict: the same within noise, which hides more than 10 %: the machine was busy"
                         : "verdict: the same");
  }
  return RGT_FINE;
}

static int compare_with(const rgt_library *library, const rge_record *before, const char *path) {
  rge_index again = {0};
  rgh_message why;
  if (!rge_load_one(path, library->schemas, &library->suites, &again, &why)) {
    return rgt_complain(RGT_WRONG_USE, name, "the command wrote no record: %s", why.text);
  }
  putchar('\n');
  const rgt_changes sum = rgt_print_changes(before, &again.records[0]);
  note_source(before);
  rge_index_free(&again);
  return judge(&sum);
}

/* Where the new record goes; it must not take the place of the one that it is compared with. */
static bool may_keep(const char *keep, const char *record, rgh_message *why) {
  struct stat a, b;
  if (stat(keep, &a) == 0 && stat(record, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino) {
    return rgh_fail(why, "--json %.1500s is the record itself: name another file", keep);
  }
  return rgh_json_writable(keep, why);
}

static bool keep_record(const char *path, const char *keep, rgh_message *why) {
  rge_file file;
  if (!rge_file_read(path, &file, why)) return false;
  const bool kept = rgh_json_save(keep, file.json, why);
  rge_file_free(&file);
  return kept;
}

static int reproduce(const rgt_library *library, const rge_record *record, const char *keep) {
  command made = {.count = 0};
  char path[64];
  rgh_message why;
  if (!take_arguments(json_object_get(json_object_get(record->head, "environment"), "argv"), &made, &why) ||
      (keep != NULL && !may_keep(keep, record->path, &why))) {
    return rgt_complain(RGT_WRONG_USE, name, "%s: %s", record->path, why.text);
  }
  const int made_record = memfd_create("record.json", MFD_CLOEXEC); /* a file without a name */
  if (made_record < 0) return rgt_complain(RGT_LACKING, name, "%s", strerror(errno));
  snprintf(path, sizeof path, "/proc/self/fd/%d", made_record);
  int code = run(&made, made_record, &why);
  if (code < 0) {
    code = rgt_complain(RGT_LACKING, name, "%s", why.text);
  } else if (code == RGT_FINE) {
    code = compare_with(library, record, path);
    if (code != RGT_WRONG_USE && keep != NULL && !keep_record(path, keep, &why)) {
      code = rgt_complain(RGT_WRONG_USE, name, "%s", why.text);
    }
  }
  close(made_record);
  return code;
}

int rgt_records_reproduce(int argc, char **argv) {
  const rgt_form form = {.command = name,
                         .help = help,
                         .takes_json = true,
                         .least_operands = 1,
                         .most_operands = 1,
                         .operands = "the file of a record"};
  rgt_arguments arguments;
  rgt_library library;
  int code;
  if (!rgt_arguments_parse(&form, argc, argv, &arguments, &code)) return code;
  if (!rgt_library_open(&library, form.command, &code)) return code;
  rge_index index = {0};
  rgh_message why;
  if (rge_load_one(arguments.operand[0], library.schemas, &library.suites, &index, &why)) {
    code = reproduce(&library, &index.records[0], arguments.json);
  } else {
    code = rgt_complain(RGT_WRONG_USE, form.command, "%s", why.text);
  }
  rge_index_free(&index);
  rgt_library_close(&library);
  return code;
}
