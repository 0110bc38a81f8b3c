#include "tools/ropegrad/solution.h"

#include <stdlib.h>
#include <string.h>

#include "harness/record/environment.h"
#include "tools/ropegrad/sources.h"

/* ---- the files ---- */

/* A solution in the making. */
typedef struct solution {
  json_t *sources;
  bool *added; /* one per embedded source */
  rgh_message *why;
} solution;

/* The harness compiles the C and CUDA files of the solution's top folder, and it is an include path. These lie there,
 * their path in their name; every other file keeps its path. "%s" is the operator. */
static const char *const compiled[] = {
    "src/base/error.c",   "src/spec/descriptor.c", "src/spec/dtype.c",        "src/spec/overlap.c",
    "src/spec/resolve.c", "src/spec/rotation.c",   "src/spec/tensor.c",       "src/cuda/kernel.c",
    "src/cuda/launch.c",  "src/solution/call.c",   "src/solution/device.c",   "ops/%s/%s_spec.c",
    "ops/%s/%s_ref.c",    "ops/%s/%s_cuda.c",      "src/solution/kernels.cu", "src/solution/binding.cu",
};
enum { NUM_COMPILED = sizeof compiled / sizeof compiled[0], NAME_BYTES = 256 };
static const char entry_point[] = "src-solution-binding.cu::run";
static const char kernels[] = "ops/%s/%s_cuda.cu"; /* included by kernels.cu */

/* What in these files depends on the operator. */
static const char operator_name[] = "solution_operator.h";
static const char operator_format[] =
    "/* Which operator this solution runs. Written by `ropegrad export-solution`. */\n"
    "#define SOLUTION_CONTRACT rg_%s_%s_contract\n"
    "#define SOLUTION_CUDA rg_%s_%s_cuda\n"
    "#define SOLUTION_IMAGE rg_%s_image\n"
    "#define SOLUTION_IMAGE_END rg_%s_image_end\n"
    "#define SOLUTION_KERNELS \"ops/%s/%s_cuda.cu\"\n";

static int find_source(const char *name, size_t length) {
  for (int s = 0; s < rgt_num_sources; s++) {
    if (strlen(rgt_sources[s].name) == length && memcmp(rgt_sources[s].name, name, length) == 0) return s;
  }
  return -1;
}

static bool append(solution *made, const char *path, const char *text, size_t bytes) {
  json_t *file = json_pack("{s:s, s:s%}", "path", path, "content", text, bytes);
  return (file != NULL && json_array_append_new(made->sources, file) == 0) || rgh_fail(made->why, "no memory");
}

static bool add(solution *made, int index, const char *path);

/* Adds what a file includes, as far as it is embedded: system headers are not. */
static bool add_includes(solution *made, const rgt_source *source) {
  static const char directive[] = "#include ";
  const size_t prefix = sizeof directive - 1;
  for (const char *line = source->text; line < source->end;) {
    const char *end = memchr(line, '\n', (size_t)(source->end - line));
    if (end == NULL) end = source->end;
    if ((size_t)(end - line) > prefix + 2 && memcmp(line, directive, prefix) == 0) {
      const char *name = line + prefix + 1;
      const char *close = memchr(name, line[prefix] == '<' ? '>' : '"', (size_t)(end - name));
      const int found = close != NULL ? find_source(name, (size_t)(close - name)) : -1;
      if (found >= 0 && !made->added[found] && !add(made, found, rgt_sources[found].name)) return false;
    }
    line = end + 1;
  }
  return true;
}

static bool add(solution *made, int index, const char *path) {
  const rgt_source *source = &rgt_sources[index];
  made->added[index] = true;
  return append(made, path, source->text, (size_t)(source->end - source->text)) && add_includes(made, source);
}

/* Adds the file that `format` names, with '-' for '/' in its path if it is to be compiled. */
static bool add_named(solution *made, const char *format, const char *op, bool is_compiled) {
  char name[NAME_BYTES], path[NAME_BYTES];
  snprintf(name, sizeof name, format, op, op);
  const int found = find_source(name, strlen(name));
  if (found < 0) return rgh_fail(made->why, "this build embeds no %s", name);
  strcpy(path, name);
  for (char *c = path; is_compiled && *c != '\0'; c++) {
    if (*c == '/') *c = '-';
  }
  return add(made, found, path);
}

static bool add_files(solution *made, const rg_operator *op) {
  const char *direction = op->direction == RG_BACKWARD ? "backward" : "forward";
  char text[2048];
  const int bytes = snprintf(text, sizeof text, operator_format, op->name, direction, op->name, direction, op->name,
                             op->name, op->name, op->name);
  if (!append(made, operator_name, text, (size_t)bytes)) return false;
  for (int c = 0; c < NUM_COMPILED; c++) {
    if (!add_named(made, compiled[c], op->name, true)) return false;
  }
  return add_named(made, kernels, op->name, false) && add_named(made, "LICENSE", op->name, false);
}

static json_t *make_sources(const rg_operator *op, rgh_message *why) {
  solution made = {.sources = json_array(), .added = calloc((size_t)rgt_num_sources, sizeof(bool)), .why = why};
  bool good = made.sources != NULL && made.added != NULL;
  if (!good) rgh_fail(why, "no memory");
  good = good && add_files(&made, op);
  free(made.added);
  if (good) return made.sources;
  json_decref(made.sources);
  return NULL;
}

/* ---- the whole ---- */

/* The harness hands its host files to a C++ compiler, and ours are C. No fast-math: large angles must come out right, so
 * that what a harness that adds it takes away is asked for again. */
static json_t *make_options(void) {
  return json_pack("{s:[s,s,s,s], s:[s,s,s,s], s:[s]}", "cflags", "-x", "c", "-std=c11", "-O2", "cuda_cflags", "-O3",
                   "--ftz=false", "--prec-div=true", "--prec-sqrt=true", "ld_flags", "-ldl");
}

static bool is_utf8(const char *what, const char *text, rgh_message *why) {
  json_t *string = json_string(text);
  const bool good = string != NULL;
  json_decref(string);
  return good || rgh_fail(why, "%s: expected UTF-8, got '%s'", what, text);
}

json_t *rgt_solution(const rg_operator *op, const char *definition, const char *author, rgh_message *why) {
  char version[128], name[NAME_BYTES], description[2 * NAME_BYTES];
  rgh_version_text(version, sizeof version);
  snprintf(name, sizeof name, "ropegrad_%s", op->name);
  snprintf(description, sizeof description, "%s. ropegrad %s, Apache-2.0.", op->title, version);
  if (!is_utf8("definition", definition, why) || !is_utf8("author", author, why)) return NULL;
  json_t *sources = make_sources(op, why);
  if (sources == NULL) return NULL;
  json_t *made =
      json_pack("{s:s, s:s, s:s, s:s, s:{s:[s], s:[s,s], s:s, s:b, s:s, s:[], s:o}, s:o}", "name", name, "definition",
                definition, "author", author, "description", description, "spec", "languages", "cuda_cpp",
                "target_hardware", "B200", "LOCAL", "entry_point", entry_point, "destination_passing_style", 1,
                "binding", "torch", "dependencies", "compile_options", make_options(), "sources", sources);
  if (made == NULL) rgh_fail(why, "no memory");
  return made;
}
