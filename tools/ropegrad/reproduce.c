#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/environment.h"
#include "harness/evidence/load.h"
#include "tools/ropegrad/evidence.h"

static const char help[] =
    "ropegrad records reproduce FILE: runs a record's command again here and compares\n"
    "\n"
    "  --json FILE   keep the new record; beside the old one it lifts its tier, when the commit is the same and they "
    "agree\n"
    "\n"
    "Only `bench` commands are run, by this tool itself and without a shell, with the record's options but for "
    "--json.\n"
    "For a verdict on the record's own source, check out its commit and build it first: a note says when this build "
    "is\n"
    "of another one. The table and the verdicts are those of `ropegrad compare`.\n"
    "\n"
    "Exit codes: 0 the same within noise, or faster; 1 slower, or a case failed; 2 wrong use or a bad file; 3 not\n"
    "comparable: this machine is another one, or lacks what the record needs (the line says what).\n";

enum { MAX_ARGUMENTS = 256, PATH_BYTES = 4096 };

/* The record's command for this tool. Every argument but the first is the record's; --json is replaced. */
typedef struct command {
  const char *argument[MAX_ARGUMENTS + 4];
  int count;
} command;

static bool take_arguments(const json_t *argv, command *made, rgh_message *why) {
  const char *verb = json_string_value(json_array_get(argv, 1));
  if (verb == NULL || strcmp(verb, "bench") != 0) {
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

/* Runs it and waits. Returns its exit code; -1: it did not run. */
static int run(command *made, const char *json, rgh_message *why) {
  char self[PATH_BYTES];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length <= 0) return rgh_fail(why, "this program does not find itself: %s", strerror(errno)) - 1;
  self[length] = '\0';
  made->argument[made->count++] = "--json";
  made->argument[made->count++] = json;
  made->argument[made->count] = NULL;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    execv(self, (char *const *)made->argument);
    _exit(127);
  }
  int status;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) == 127) {
    return rgh_fail(why, "the command could not be run") - 1;
  }
  return WEXITSTATUS(status);
}

/* Where the new record goes while it is made: a folder of its own, so that its name is free. */
static bool make_place(char folder[PATH_BYTES], char path[PATH_BYTES], rgh_message *why) {
  const char *temporary = getenv("TMPDIR");
  snprintf(folder, PATH_BYTES, "%.3900s/ropegrad-XXXXXX", temporary != NULL && *temporary ? temporary : "/tmp");
  if (mkdtemp(folder) == NULL) return rgh_fail(why, "%s: %s", folder, strerror(errno));
  snprintf(path, PATH_BYTES, "%.4000s/record.json", folder);
  return true;
}

static void note_source(const rge_record *record) {
  char version[128], part[16];
  rgh_version_text(version, sizeof version);
  snprintf(part, sizeof part, "%.12s", record->commit);
  if (record->commit[0] == '\0' || strstr(version, part) == NULL) {
    printf("note: this build is ropegrad %s, the record's commit is %.12s: the code differs too\n", version,
           record->commit[0] != '\0' ? record->commit : "unknown");
  } else if (strstr(version, "modified") != NULL) {
    printf("note: this build is of the record's commit with uncommitted changes\n");
  }
}

static int compare_with(const rgt_library *library, const rge_record *before, const char *path) {
  rge_index again = {0};
  rgh_message why;
  if (!rge_load_one(path, library->schemas, &library->suites, &again, &why)) {
    return rgt_complain(RGT_WRONG_USE, "records reproduce", "%s", why.text);
  }
  putchar('\n');
  note_source(before);
  int code = rgt_print_changes(before, &again.records[0], "records reproduce");
  if (code == RGT_WRONG_USE) code = RGT_LACKING; /* the machine is another one */
  if (code == RGT_FINE) puts("verdict: the same within noise, or faster");
  if (code == RGT_MISMATCH) puts("verdict: slower");
  rge_index_free(&again);
  return code;
}

static int reproduce(const rgt_library *library, const rge_record *record, const char *keep) {
  const json_t *argv = json_object_get(json_object_get(record->head, "environment"), "argv");
  command made = {.count = 0};
  char folder[PATH_BYTES], path[PATH_BYTES];
  rgh_message why;
  if (!take_arguments(argv, &made, &why) || (keep == NULL && !make_place(folder, path, &why))) {
    return rgt_complain(RGT_WRONG_USE, "records reproduce", "%s: %s", record->path, why.text);
  }
  if (keep != NULL) snprintf(path, sizeof path, "%s", keep);
  int code = run(&made, path, &why);
  if (code < 0) {
    code = rgt_complain(RGT_LACKING, "records reproduce", "%s", why.text);
  } else if (code == RGT_FINE) {
    code = compare_with(library, record, path);
  }
  if (keep == NULL) {
    unlink(path);
    rmdir(folder);
  }
  return code;
}

int rgt_records_reproduce(int argc, char **argv) {
  const rgt_form form = {.command = "records reproduce",
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
