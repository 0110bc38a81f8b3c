#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/record/environment.h"
#include "tools/ropegrad/evidence.h"
#include "tools/site/site.h"

static const char help[] =
    "ropegrad report --records DIR --out DIR: writes the site of the records\n"
    "\n"
    "  --records DIR|FILE   every .json file in it and below it; may be repeated\n"
    "  --out DIR            the site; one that this command wrote before is replaced; a folder that holds\n"
    "                       anything else is left alone, and said so. Neither DIR may lie in the other\n"
    "\n"
    "The site is files alone: open DIR/index.html. Each page has its data beside it as .json. Every aggregate is\n"
    "recomputed from the raw samples; docs/site.md says what there is and how records are ranked.\n"
    "Nothing is written when a file cannot be read: an existing site stays as it is.\n"
    "\n"
    "Example:\n"
    "  ropegrad bench --json my/record.json && ropegrad report --records records --records my --out site\n"
    "\n"
    "Exit codes: 0 written; 2 wrong use or a bad file; 3 no memory.\n";

/* The path without links and dots, of something that need not be there as long as its folder is. */
static bool resolve(const char *path, char real[PATH_MAX]) {
  if (realpath(path, real) != NULL) return true;
  char parent[PATH_MAX];
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  if (length >= PATH_MAX) return false;
  memcpy(parent, path, length);
  parent[length] = '\0';
  char *slash = strrchr(parent, '/');
  const char *name = slash != NULL ? slash + 1 : parent;
  char folder[PATH_MAX];
  if (slash != NULL) *slash = '\0';
  if (realpath(slash == NULL ? "." : slash == parent ? "/" : parent, folder) == NULL) return false;
  return snprintf(real, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

/* Whether `inner` is `outer` or lies below it. */
static bool lies_in(const char *inner, const char *outer) {
  const size_t length = strlen(outer);
  return strncmp(inner, outer, length) == 0 && (inner[length] == '/' || inner[length] == '\0');
}

/* The site replaces a folder, so what it is made of must not lie in it; nor may it be found among the records next time.
 * A path that cannot be resolved is complained of by whoever opens it. */
static bool apart(const rgt_arguments *arguments, rgh_message *why) {
  char out[PATH_MAX], records[PATH_MAX];
  if (!resolve(arguments->out, out)) return true;
  for (int r = 0; r < arguments->num_records; r++) {
    if (!resolve(arguments->records[r], records) || (!lies_in(records, out) && !lies_in(out, records))) continue;
    return rgh_fail(why, "--records %.1500s and --out %.1500s lie one in the other", arguments->records[r],
                    arguments->out);
  }
  return true;
}

int rgt_report(int argc, char **argv, const char *const *full_argv) {
  (void)full_argv;
  const rgt_form form = {.command = "report", .help = help, .takes_records = true};
  rgt_arguments arguments;
  rgt_library library;
  int code;
  if (!rgt_arguments_parse(&form, argc, argv, &arguments, &code)) return code;
  if (arguments.num_records == 0 || arguments.out == NULL) {
    return rgt_complain(RGT_WRONG_USE, "report", "needs --records and --out; see ropegrad report --help");
  }
  rgh_message why;
  if (!apart(&arguments, &why)) return rgt_complain(RGT_WRONG_USE, "report", "%s", why.text);
  if (!rgt_library_open(&library, "report", &code)) return code;
  const rge_sources sources = {.paths = arguments.records, .schemas = library.schemas, .suites = &library.suites};
  char version[128];
  rgh_version_text(version, sizeof version);
  const rgs_site_request request = {
      .out = arguments.out, .templates = library.templates, .suites = &library.suites, .version = version};
  rge_index index = {0};
  if (!rge_index_load(&sources, &index, &why)) {
    code = rgt_complain(RGT_WRONG_USE, "report", "%s", why.text);
  } else if (rgt_complain_refusals(&index, "report") > 0) {
    code = RGT_WRONG_USE;
  } else if (!rgs_site_write(&index, &request, &why)) {
    code = rgt_complain(RGT_WRONG_USE, "report", "%s", why.text);
  } else {
    printf("%d record%s, %d list%s of reported times: %s/index.html\n", index.num_records,
           index.num_records == 1 ? "" : "s", index.num_reported, index.num_reported == 1 ? "" : "s", arguments.out);
    code = RGT_FINE;
  }
  rge_index_free(&index);
  rgt_library_close(&library);
  return code;
}
