#include "tools/ropegrad/evidence.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_REFUSALS_SHOWN = 20 };

/* ---- arguments ---- */

static bool complain(const rgt_form *form, int *code, const char *what, const char *about) {
  *code = rgt_complain(RGT_WRONG_USE, form->command, "%s%s; see ropegrad %s --help", what, about, form->command);
  return false;
}

static bool take_option(const rgt_form *form, int found, rgt_arguments *arguments, int *code) {
  switch (found) {
    case 'r':
      if (arguments->num_records == RGT_MAX_PATHS) return complain(form, code, "too many folders: ", "--records");
      arguments->records[arguments->num_records++] = optarg;
      return true;
    case 'o':
      arguments->out = optarg;
      return true;
    default:
      arguments->json = optarg;
      return true;
  }
}

bool rgt_arguments_parse(const rgt_form *form, int argc, char **argv, rgt_arguments *arguments, int *code) {
  struct option known[8] = {{"help", no_argument, NULL, 'h'}};
  int num_known = 1;
  if (form->takes_records) {
    known[num_known++] = (struct option){"records", required_argument, NULL, 'r'};
    known[num_known++] = (struct option){"out", required_argument, NULL, 'o'};
  }
  if (form->takes_json) known[num_known++] = (struct option){"json", required_argument, NULL, 'j'};
  *arguments = (rgt_arguments){0};
  opterr = 0;
  optind = 1;
  for (int found; (found = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
    const char *typed = argv[optind - 1];
    if (found == ':') return complain(form, code, "a value is missing after ", typed);
    if (found == '?') {
      *code = rgt_complain_unknown(form->command, typed, known);
      return false;
    }
    if (found == 'h') {
      fputs(form->help, stdout);
      *code = RGT_FINE;
      return false;
    }
    if (!take_option(form, found, arguments, code)) return false;
  }
  arguments->num_operands = argc - optind;
  if (arguments->num_operands < form->least_operands) return complain(form, code, "missing: ", form->operands);
  if (arguments->num_operands > form->most_operands) {
    return complain(form, code, "unexpected argument ", argv[optind + form->most_operands]);
  }
  for (int i = 0; i < arguments->num_operands; i++) arguments->operand[i] = argv[optind + i];
  return true;
}

/* ---- library ---- */

/* PREFIX/share/ropegrad/NAME where the tool lies in PREFIX/bin, else the folder of the source tree. */
static void find_folder(const char *installed_suites, const char *name, const char *source,
                        char path[RGH_SUITE_PATH_BYTES]) {
  const int above = (int)(strlen(installed_suites) - strlen("suites"));
  if (above < 0 ||
      snprintf(path, RGH_SUITE_PATH_BYTES, "%.*s%s", above, installed_suites, name) >= RGH_SUITE_PATH_BYTES ||
      access(path, F_OK) != 0) {
    snprintf(path, RGH_SUITE_PATH_BYTES, "%s", source);
  }
}

bool rgt_library_open(rgt_library *library, const char *command, int *code) {
  rgt_folders_find(&library->folders);
  find_folder(library->folders.installed, "schema", ROPEGRAD_SOURCE_DIR "/schema", library->schemas);
  find_folder(library->folders.installed, "site", ROPEGRAD_SOURCE_DIR "/tools/site/templates", library->templates);
  if (rge_suites_load(library->folders.list, &library->suites)) return true;
  *code = rgt_complain(RGT_LACKING, command, "no memory");
  return false;
}

void rgt_library_close(rgt_library *library) { rge_suites_free(&library->suites); }

int rgt_complain_refusals(const rge_index *index, const char *command) {
  for (int r = 0; r < index->num_refusals && r < MAX_REFUSALS_SHOWN; r++) {
    rgt_complain(RGT_WRONG_USE, command, "%s", index->refusals[r].why.text);
  }
  if (index->num_refusals > MAX_REFUSALS_SHOWN) {
    rgt_complain(RGT_WRONG_USE, command, "and %d more files", index->num_refusals - MAX_REFUSALS_SHOWN);
  }
  return index->num_refusals;
}
