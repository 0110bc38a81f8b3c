#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json_file.h"
#include "harness/cases/suite_folders.h"
#include "tools/ropegrad/tool.h"

enum { LINE_WIDTH = 100, FORMULA_INDENT = 27 };

static const char help[] =
    "ropegrad list [--json FILE]: what there is, and what this machine can run\n"
    "\n"
    "  operators   with what each computes; names for --op\n"
    "  variants    implementations of every operator; names for --variant, and whether this machine runs them\n"
    "  devices     names for --device\n"
    "  suites      names for --suite, with the number of their cases\n"
    "\n"
    "--json writes the same, schema ropegrad-list-1.\n"
    "Exit codes: 0 fine; 2 wrong use, or the JSON file cannot be written.\n";

/* Why no context for the device can be made; "" when one can. */
static void find_reason(DLDevice device, char reason[RG_REASON_BYTES], char default_variant[64]) {
  default_variant[0] = '\0';
  rg_context *context;
  if (rg_device_status(device, reason, RG_REASON_BYTES) != RG_OK ||
      rg_context_create(&context, device, NULL) != RG_OK) {
    return;
  }
  snprintf(default_variant, 64, "%s", rg_dev_default_variant(context));
  rg_context_destroy(context);
}

/* Prints the words of `text` from column `indent` on, in lines of at most LINE_WIDTH columns. */
static void print_wrapped(const char *text, int indent) {
  int column = printf("%*s", indent, "");
  while (*text != '\0') {
    const int length = (int)strcspn(text, " ");
    if (column > indent && column + 1 + length > LINE_WIDTH) column = printf("\n%*s", indent, "") - 1;
    column += printf("%s%.*s", column > indent ? " " : "", length, text);
    text += length + (text[length] == ' ');
  }
  putchar('\n');
}

static void list_operators(json_t *list) {
  puts("Operators (--op)");
  for (int index = 0; index < RG_NUM_OPERATORS; index++) {
    const rg_operator *op = rg_dev_operator_at(index);
    printf("  %-24s %s%s\n", op->name, op->title, op->in_place_param >= 0 ? "; can work in place" : "");
    print_wrapped(op->formula, FORMULA_INDENT);
    json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:b}", "op", op->name, "title", op->title, "formula",
                                          op->formula, "in_place", op->in_place_param >= 0));
  }
}

static void list_devices(json_t *list, char defaults[2][64]) {
  static const struct {
    const char *name;
    DLDevice device;
  } devices[] = {{"cpu", {kDLCPU, 0}}, {"cuda", {kDLCUDA, 0}}};
  puts("\nDevices (--device)");
  for (int d = 0; d < 2; d++) {
    char reason[RG_REASON_BYTES];
    find_reason(devices[d].device, reason, defaults[d]);
    const bool runs = reason[0] == '\0';
    printf("  %-12s %s%s\n", devices[d].name, runs ? "runs here" : "cannot run here: ", reason);
    json_array_append_new(list,
                          json_pack("{s:s, s:b, s:s}", "device", devices[d].name, "runs", runs, "reason", reason));
  }
}

static void list_variants(json_t *list, char defaults[2][64]) {
  puts("\nVariants (--variant)");
  for (int v = 0; v < rg_dev_num_variants(); v++) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    const bool cuda = info.device == kDLCUDA;
    const bool chosen = strcmp(info.name, defaults[cuda]) == 0;
    printf("  %-16s %s%s%s\n", info.name, info.status == RG_OK ? "runs here" : "cannot run here: ", info.reason,
           chosen ? "; the default" : "");
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:b, s:b, s:s}", "variant", info.name, "device", cuda ? "cuda" : "cpu", "runs",
                        info.status == RG_OK, "default", chosen, "reason", info.reason));
  }
}

/* A suite that cannot be read is listed with the reason. */
static void list_suite(json_t *list, const rgt_folders *folders, const char *name) {
  char path[RGH_SUITE_PATH_BYTES];
  rgh_suite suite = {0};
  rgh_message why = {.text = ""};
  if (rgh_suite_find(folders->list, name, path, &why) && rgh_suite_load(path, &suite, &why)) {
    const char *end = strstr(suite.description, ". ");
    const int first_sentence = end != NULL ? (int)(end - suite.description + 1) : (int)strlen(suite.description);
    printf("  %-20s %4d cases  %.*s\n", name, suite.num_cases, first_sentence, suite.description);
  } else {
    printf("  %-20s cannot be read: %s\n", name, why.text);
  }
  json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s}", "suite", name, "cases", suite.num_cases, "description",
                                        suite.description != NULL ? suite.description : "", "reason", why.text));
  rgh_suite_free(&suite);
}

static bool list_suites(json_t *list, rgh_message *why) {
  rgt_folders folders;
  rgt_folders_find(&folders);
  int num_names;
  char **names = rgh_suite_names(folders.list, &num_names);
  if (names == NULL) return rgh_fail(why, "no memory");
  puts("\nSuites (--suite)");
  for (int n = 0; n < num_names; n++) {
    list_suite(list, &folders, names[n]);
    free(names[n]);
  }
  free(names);
  return true;
}

int rgt_list(int argc, char **argv, const char *const *full_argv) {
  (void)full_argv;
  rgt_options options;
  int code;
  if (!rgt_options_parse(RGT_LIST, "list", help, argc, argv, &options, &code)) return code;
  json_t *operators = json_array(), *devices = json_array(), *variants = json_array(), *suites = json_array();
  char defaults[2][64];
  rgh_message why;
  list_operators(operators);
  list_devices(devices, defaults);
  list_variants(variants, defaults);
  bool good = list_suites(suites, &why);
  json_t *root = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "schema", "ropegrad-list-1", "version", rg_version(),
                           "operators", operators, "devices", devices, "variants", variants, "suites", suites);
  if (good && options.json != NULL) good = rgh_json_save(options.json, root, &why);
  json_decref(root);
  return good ? RGT_FINE : rgt_complain(RGT_WRONG_USE, "list", "%s", why.text);
}
