#include "harness/cases/select.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/suggest.h"
#include "harness/cases/problem.h"
#include "harness/cases/suite_folders.h"

static bool any_equal(const char *const *names, int num_names, const char *name) {
  for (int n = 0; n < num_names; n++) {
    if (strcmp(names[n], name) == 0) return true;
  }
  return num_names == 0;
}

static bool asked_for(const rgh_request *request, const rgh_case *item) {
  return any_equal(request->op, request->num_ops, item->op->name) &&
         any_equal(request->case_name, request->num_case_names, item->name);
}

static bool check_ops(const rgh_request *request, rgh_message *why) {
  for (int o = 0; o < request->num_ops; o++) {
    if (rg_dev_find_operator(request->op[o]) >= 0) continue;
    char list[512] = "";
    size_t used = 0;
    for (int index = 0; index < RG_NUM_OPERATORS && used < sizeof list; index++) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", index > 0 ? ", " : "",
                               rg_dev_operator_at(index)->name);
    }
    return rgh_fail(why, "no operator is named '%s'; there are: %s", request->op[o], list);
  }
  return true;
}

/* Every name asked for must be a case of the suite, of one of the operators asked for. */
static bool check_case_names(const rgh_request *request, const rgh_suite *suite, rgh_message *why) {
  const char **names = malloc((size_t)suite->num_cases * sizeof *names);
  if (names == NULL) return rgh_fail(why, "no memory");
  int num_names = 0;
  for (int c = 0; c < suite->num_cases; c++) {
    if (any_equal(request->op, request->num_ops, suite->cases[c].op->name)) names[num_names++] = suite->cases[c].name;
  }
  bool good = true;
  for (int n = 0; n < request->num_case_names && good; n++) {
    const char *name = request->case_name[n];
    const int nearest = rgh_nearest_name(name, names, num_names);
    if (nearest >= 0 && strcmp(names[nearest], name) == 0) continue;
    good = rgh_fail(why, "suite %s has no case '%s'%s%s", suite->name, name, nearest >= 0 ? "; the nearest is " : "",
                    nearest >= 0 ? names[nearest] : "");
  }
  free(names);
  return good;
}

static bool has_any(const rgh_request *request, const char *name) {
  char path[RGH_SUITE_PATH_BYTES];
  rgh_message ignored;
  rgh_suite suite = {0};
  bool found = false;
  if (rgh_suite_find(request->folders, name, path, &ignored) && rgh_suite_load(path, &suite, &ignored)) {
    for (int c = 0; c < suite.num_cases && !found; c++) found = asked_for(request, &suite.cases[c]);
  }
  rgh_suite_free(&suite);
  return found;
}

/* The suite has no case of the operators: which suites have? */
static bool fail_by_naming_others(const rgh_request *request, const rgh_suite *suite, rgh_message *why) {
  char others[512] = "";
  size_t used = 0;
  int num_names = 0;
  char **names = request->problem == NULL ? rgh_suite_names(request->folders, &num_names) : NULL;
  for (int n = 0; names != NULL && n < num_names; n++) {
    if (used < sizeof others && has_any(request, names[n])) {
      used += (size_t)snprintf(others + used, sizeof others - used, "%s%s", used > 0 ? ", " : "", names[n]);
    }
    free(names[n]);
  }
  free(names);
  return rgh_fail(why, "suite %s has no case of the operators asked for%s%s", suite->name,
                  used > 0 ? "; these suites have: " : "", others);
}

static bool choose(const rgh_request *request, rgh_selection *selection, rgh_message *why) {
  rgh_suite *suite = &selection->suite;
  if (!check_case_names(request, suite, why)) return false;
  selection->cases = calloc((size_t)suite->num_cases, sizeof *selection->cases);
  selection->too_large = calloc((size_t)suite->num_cases, sizeof *selection->too_large);
  if (selection->cases == NULL || selection->too_large == NULL) return rgh_fail(why, "no memory");
  for (int c = 0; c < suite->num_cases; c++) {
    rgh_case *item = &suite->cases[c];
    if (!asked_for(request, item)) continue;
    if (request->in_place && !rgh_case_set_in_place(item, NULL)) {
      selection->left_out++;
      continue;
    }
    selection->too_large[selection->num_cases] = request->max_bytes > 0 && rgh_case_bytes(item) > request->max_bytes;
    selection->cases[selection->num_cases++] = item;
  }
  if (selection->num_cases > 0) return true;
  if (selection->left_out == 0) return fail_by_naming_others(request, suite, why);
  return rgh_fail(why, "suite %s: no case that was asked for has an in-place mode", suite->name);
}

static bool load(const rgh_request *request, rgh_suite *suite, rgh_message *why) {
  if (request->problem != NULL) return rgh_problem_load(request->problem, suite, why);
  char path[RGH_SUITE_PATH_BYTES];
  return rgh_suite_find(request->folders, request->suite, path, why) && rgh_suite_load(path, suite, why);
}

bool rgh_select(const rgh_request *request, rgh_selection *selection, rgh_message *why) {
  memset(selection, 0, sizeof *selection);
  if (!check_ops(request, why) || !load(request, &selection->suite, why)) return false;
  if (choose(request, selection, why)) return true;
  rgh_selection_free(selection);
  return false;
}

void rgh_selection_free(rgh_selection *selection) {
  free(selection->cases);
  free(selection->too_large);
  rgh_suite_free(&selection->suite);
  memset(selection, 0, sizeof *selection);
}
