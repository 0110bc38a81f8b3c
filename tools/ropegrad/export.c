#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "harness/base/json_file.h"
#include "tools/ropegrad/solution.h"
#include "tools/ropegrad/tool.h"

static const char help[] =
    "ropegrad export-solution --op OP --out DIR: writes DIR/solution.json, the operator's CUDA kernels as a solution\n"
    "of its SOL-ExecBench problem\n"
    "\n"
    "  --op OP             the operator, one that has such a problem; needs neither a GPU nor nvcc here\n"
    "  --out DIR           made if it does not exist; a solution.json in it is replaced\n"
    "  --definition NAME   the name in the problem's definition.json, where it is another than the one that is known\n"
    "  --author NAME       default ropegrad\n"
    "\n"
    "The solution holds the kernels, the code that checks a call and chooses their launch, both as this tool was\n"
    "built from them, and a binding that PyTorch loads; outputs are written where the harness wants them\n"
    "(destination passing style). docs/sol-execbench.md says how it is put together.\n"
    "\n"
    "Examples:\n"
    "  ropegrad export-solution --op OP --out out\n"
    "  sol-execbench PROBLEM_DIR --solution out/solution.json      the benchmark's own harness, with a GPU\n"
    "  python3 tests/solution/check_solution.py out/solution.json  against PyTorch in float64, with a GPU\n"
    "\n"
    "Exit codes: 0 written; 2 wrong use, or it could not be written.\n";

static const char command[] = "export-solution";

typedef struct options {
  const char *op, *out, *definition, *author;
} options;

static const struct option known[] = {{"op", required_argument, NULL, 'o'},
                                      {"out", required_argument, NULL, 'd'},
                                      {"definition", required_argument, NULL, 'n'},
                                      {"author", required_argument, NULL, 'a'},
                                      {"help", no_argument, NULL, 'h'},
                                      {NULL, 0, NULL, 0}};

/* False: the command is over, with *code. */
static bool parse(int argc, char **argv, options *o, int *code) {
  *o = (options){.author = "ropegrad"};
  opterr = 0;
  for (int found; (found = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
    const char *typed = argv[optind - 1];
    if (found == 'o') o->op = optarg;
    if (found == 'd') o->out = optarg;
    if (found == 'n') o->definition = optarg;
    if (found == 'a') o->author = optarg;
    if (found == 'h') {
      fputs(help, stdout);
      *code = RGT_FINE;
      return false;
    }
    if (found == '?' || found == ':') {
      *code = found == '?'
                  ? rgt_complain_unknown(command, typed, known)
                  : rgt_complain(RGT_WRONG_USE, command, "%s needs a value; see ropegrad %s --help", typed, command);
      return false;
    }
    if (optarg != NULL && *optarg == '\0') {
      *code = rgt_complain(RGT_WRONG_USE, command, "an option's value is empty; see ropegrad %s --help", command);
      return false;
    }
  }
  if (optind == argc && o->op != NULL && o->out != NULL) return true;
  *code = optind < argc ? rgt_complain(RGT_WRONG_USE, command, "unexpected argument '%s'; see ropegrad %s --help",
                                       argv[optind], command)
                        : rgt_complain(RGT_WRONG_USE, command, "--%s is missing; see ropegrad %s --help",
                                       o->op == NULL ? "op" : "out", command);
  return false;
}

/* The operator of that name that has a benchmark; NULL: *why lists those that there are. */
static const rg_operator *find_operator(const char *name, rgh_message *why) {
  char list[256] = "";
  size_t used = 0;
  for (int id = 0; id < RG_NUM_OPS; id++) {
    const rg_operator *op = rg_dev_operator((rg_op_id)id, RG_BACKWARD);
    if (op->benchmark == NULL) continue;
    if (strcmp(op->name, name) == 0) return op;
    if (used < sizeof list) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used > 0 ? ", " : "", op->name);
    }
  }
  rgh_fail(why, "no operator named '%s' has a SOL-ExecBench problem; there are: %s", name, list);
  return NULL;
}

static bool write_solution(const options *o, const rg_operator *op, rgh_message *why) {
  char path[4096];
  if (mkdir(o->out, 0777) != 0 && errno != EEXIST) return rgh_fail(why, "%s: %s", o->out, strerror(errno));
  if (snprintf(path, sizeof path, "%s/solution.json", o->out) >= (int)sizeof path) {
    return rgh_fail(why, "--out: the path is too long");
  }
  const char *definition = o->definition != NULL ? o->definition : op->benchmark->definition;
  json_t *solution = rgt_solution(op, definition, o->author, why);
  const bool good = solution != NULL && rgh_json_save(path, solution, why);
  if (good) {
    printf("%s: %s, %zu files, for the problem %s\n", path, op->name,
           json_array_size(json_object_get(solution, "sources")), definition);
  }
  json_decref(solution);
  return good;
}

int rgt_export_solution(int argc, char **argv, const char *const *full_argv) {
  (void)full_argv;
  options o;
  int code;
  if (!parse(argc, argv, &o, &code)) return code;
  rgh_message why;
  const rg_operator *op = find_operator(o.op, &why);
  if (op == NULL || !write_solution(&o, op, &why)) return rgt_complain(RGT_WRONG_USE, command, "%s", why.text);
  return RGT_FINE;
}
