#include <stdio.h>

#include "harness/environment.h"
#include "tools/ropegrad/evidence.h"
#include "tools/site/site.h"

static const char help[] =
    "ropegrad report --records DIR --out DIR: writes the site of the records\n"
    "\n"
    "  --records DIR|FILE   every .json file in it and below it; may be repeated\n"
    "  --out DIR            the site; one that this command wrote before is replaced, anything else is left alone\n"
    "\n"
    "The site is files alone: open DIR/index.html. Each page has its data beside it as .json. Every aggregate is\n"
    "recomputed from the raw samples; docs/site.md says what there is and how records are ranked.\n"
    "Nothing is written when a file cannot be read: an existing site stays as it is.\n"
    "\n"
    "Example:\n"
    "  ropegrad bench --json my/record.json && ropegrad report --records records --records my --out site\n"
    "\n"
    "Exit codes: 0 written; 2 wrong use or a bad file; 3 no memory.\n";

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
  if (!rgt_library_open(&library, "report", &code)) return code;
  const rge_sources sources = {.paths = arguments.records, .schemas = library.schemas, .suites = &library.suites};
  char version[128];
  rgh_version_text(version, sizeof version);
  const rgs_site_request request = {
      .out = arguments.out, .templates = library.templates, .suites = &library.suites, .version = version};
  rge_index index = {0};
  rgh_message why;
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
