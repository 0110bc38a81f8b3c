#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/ropegrad/tool.h"

static const char DEFAULT_SUITE[] = "sol-execbench-rope";
enum { DEFAULT_REPEAT = 2, DEFAULT_SEED = 1, MAX_THREADS = 1024, MAX_REPEAT = 1000000, MAX_DEVICE = 1023 };
/* The 80 cases of the default suite then take less than 5 minutes on 2 cores, verification included. */
static const double DEFAULT_BUDGET_S = 2, MAX_BUDGET_S = 86400;

/* Each reads one option's value; false: *why says what it should have been. */
typedef bool (*reader)(rgt_options *options, const char *value, rgh_message *why);

/* ---- values ---- */

static bool read_integer(const char *value, int64_t low, int64_t high, int64_t *number, rgh_message *why) {
  char *end;
  errno = 0;
  *number = strtoll(value, &end, 10);
  if (end != value && *end == '\0' && errno == 0 && !isspace((unsigned char)value[0]) && *number >= low &&
      *number <= high) {
    return true;
  }
  return rgh_fail(why, "takes a whole number from %lld to %lld, not '%s'", (long long)low, (long long)high, value);
}

static bool add_name(const char **names, int *num_names, const char *value, rgh_message *why) {
  if (*num_names == RGH_MAX_NAMES) return rgh_fail(why, "is given more than %d times", RGH_MAX_NAMES);
  names[(*num_names)++] = value;
  return true;
}

static bool read_op(rgt_options *o, const char *value, rgh_message *why) {
  return add_name(o->request.op, &o->request.num_ops, value, why);
}

static bool read_case(rgt_options *o, const char *value, rgh_message *why) {
  return add_name(o->request.case_name, &o->request.num_case_names, value, why);
}

static bool read_suite(rgt_options *o, const char *value, rgh_message *why) {
  (void)why;
  o->request.suite = value;
  return true;
}

static bool read_in_place(rgt_options *o, const char *value, rgh_message *why) {
  (void)value, (void)why;
  o->request.in_place = true;
  return true;
}

static bool read_max_bytes(rgt_options *o, const char *value, rgh_message *why) {
  char digits[32];
  const size_t length = strlen(value);
  int64_t unit = 1;
  if (length > 0 && length < sizeof digits) {
    memcpy(digits, value, length + 1);
    const char *suffix = strchr("KMG", digits[length - 1]);
    if (suffix != NULL) {
      unit = *suffix == 'K' ? INT64_C(1) << 10 : *suffix == 'M' ? INT64_C(1) << 20 : INT64_C(1) << 30;
      digits[length - 1] = '\0';
    }
    if (read_integer(digits, 1, INT64_MAX / unit, &o->request.max_bytes, why)) {
      o->request.max_bytes *= unit;
      return true;
    }
  }
  return rgh_fail(why, "takes a number of bytes such as 100000, 64K, 512M or 2G, not '%s'", value);
}

static bool read_device(rgt_options *o, const char *value, rgh_message *why) {
  int64_t index = 0;
  o->device_given = true;
  if (strcmp(value, "cpu") == 0) {
    o->device = (DLDevice){kDLCPU, 0};
    return true;
  }
  if (strcmp(value, "cuda") == 0 ||
      (strncmp(value, "cuda:", 5) == 0 && read_integer(value + 5, 0, MAX_DEVICE, &index, why))) {
    o->device = (DLDevice){kDLCUDA, (int32_t)index};
    return true;
  }
  return rgh_fail(why, "takes cpu, cuda or cuda:N, not '%s'", value);
}

static bool read_variant(rgt_options *o, const char *value, rgh_message *why) {
  (void)why;
  o->variant = value;
  return true;
}

static bool read_int(const char *value, int high, int *number, rgh_message *why) {
  int64_t wide;
  if (!read_integer(value, 1, high, &wide, why)) return false;
  *number = (int)wide;
  return true;
}

static bool read_threads(rgt_options *o, const char *value, rgh_message *why) {
  return read_int(value, MAX_THREADS, &o->threads, why);
}

static bool read_repeat(rgt_options *o, const char *value, rgh_message *why) {
  return read_int(value, MAX_REPEAT, &o->repeat, why);
}

static bool read_seed(rgt_options *o, const char *value, rgh_message *why) {
  int64_t seed;
  if (!read_integer(value, 0, INT64_MAX, &seed, why)) return false;
  o->seed = (uint64_t)seed;
  return true;
}

static bool read_protocol(rgt_options *o, const char *value, rgh_message *why) {
  o->strict = strcmp(value, "strict") == 0;
  if (o->strict || strcmp(value, "faithful") == 0) return true;
  return rgh_fail(why, "takes faithful or strict, not '%s'", value);
}

static bool read_timer(rgt_options *o, const char *value, rgh_message *why) {
  o->timer_given = true;
  o->events = strcmp(value, "events") == 0;
  if (o->events || strcmp(value, "cupti") == 0) return true;
  return rgh_fail(why, "takes cupti or events, not '%s'", value);
}

static bool read_warm(rgt_options *o, const char *value, rgh_message *why) {
  (void)value, (void)why;
  o->warm = true;
  return true;
}

static bool read_budget(rgt_options *o, const char *value, rgh_message *why) {
  char *end;
  o->budget_s = strtod(value, &end);
  if (end != value && *end == '\0' && o->budget_s >= 0 && o->budget_s <= MAX_BUDGET_S) return true;
  return rgh_fail(why, "takes seconds from 0 (no limit) to %.0f, not '%s'", MAX_BUDGET_S, value);
}

static bool read_json(rgt_options *o, const char *value, rgh_message *why) {
  (void)why;
  o->json = value;
  return true;
}

/* ---- the table of options ---- */

enum {
  SUITES = RGT_VERIFY | RGT_BENCH,
  ANY_VERIFY = RGT_VERIFY | RGT_PROBLEM_VERIFY,
  ANY_BENCH = RGT_BENCH | RGT_PROBLEM_BENCH,
  BOTH = ANY_VERIFY | ANY_BENCH,
  ALL = RGT_LIST | BOTH
};

static const struct {
  const char *name;
  reader read; /* NULL: --help */
  int has_value;
  int commands; /* that take it */
} table[] = {
    {"op", read_op, required_argument, SUITES},
    {"suite", read_suite, required_argument, SUITES},
    {"case", read_case, required_argument, BOTH},
    {"in-place", read_in_place, no_argument, BOTH},
    {"max-bytes", read_max_bytes, required_argument, BOTH},
    {"device", read_device, required_argument, BOTH},
    {"variant", read_variant, required_argument, BOTH},
    {"threads", read_threads, required_argument, BOTH},
    {"seed", read_seed, required_argument, BOTH},
    {"repeat", read_repeat, required_argument, ANY_VERIFY},
    {"protocol", read_protocol, required_argument, ANY_BENCH},
    {"timer", read_timer, required_argument, ANY_BENCH},
    {"warm", read_warm, no_argument, ANY_BENCH},
    {"budget", read_budget, required_argument, ANY_BENCH},
    {"json", read_json, required_argument, ALL},
    {"help", NULL, no_argument, ALL},
};
enum { NUM_OPTIONS = sizeof table / sizeof table[0] };

bool rgt_options_parse(rgt_command command, const char *name, const char *help, int argc, char **argv,
                       rgt_options *options, int *code) {
  *options = (rgt_options){.command = name,
                           .request = {.suite = DEFAULT_SUITE},
                           .repeat = DEFAULT_REPEAT,
                           .seed = DEFAULT_SEED,
                           .budget_s = DEFAULT_BUDGET_S};
  struct option known[NUM_OPTIONS + 1] = {{0}};
  int num_known = 0;
  for (int n = 0; n < NUM_OPTIONS; n++) {
    if ((table[n].commands & command) == 0) continue;
    known[num_known++] = (struct option){table[n].name, table[n].has_value, NULL, 256 + n};
  }
  opterr = 0; /* the lines below say it in one way for every mistake */
  for (int found; (found = getopt_long(argc, argv, ":h", known, NULL)) != -1;) {
    const char *typed = argv[optind - 1];
    if (found == ':') {
      *code = rgt_complain(RGT_WRONG_USE, name, "%s needs a value; see ropegrad %s --help", typed, name);
      return false;
    }
    if (found == '?') {
      *code = rgt_complain_unknown(name, typed, known);
      return false;
    }
    if (found == 'h' || table[found - 256].read == NULL) {
      fputs(help, stdout);
      *code = RGT_FINE;
      return false;
    }
    rgh_message why;
    if (!table[found - 256].read(options, optarg, &why)) {
      *code = rgt_complain(RGT_WRONG_USE, name, "--%s %s", table[found - 256].name, why.text);
      return false;
    }
  }
  if (optind == argc) return true;
  *code = rgt_complain(RGT_WRONG_USE, name, "unexpected argument '%s'; see ropegrad %s --help", argv[optind], name);
  return false;
}

/* ---- suites ---- */

void rgt_folders_find(rgt_folders *folders) {
  int used = 0;
  /* Where the tool lies, PREFIX/bin, says where it was installed to, whatever prefix it was built for. */
  char self[RGH_SUITE_PATH_BYTES - 64];
  const ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
  if (length > 0) {
    self[length] = '\0';
    char *slash = strrchr(self, '/');
    if (slash != NULL) *slash = '\0';
    snprintf(folders->installed, sizeof folders->installed, "%s/../share/ropegrad/suites", self);
    folders->list[used++] = folders->installed;
  }
  folders->list[used++] = ROPEGRAD_SOURCE_SUITES;
  folders->list[used++] = "suites";
  folders->list[used] = NULL;
}
