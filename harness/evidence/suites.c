#include "harness/evidence/suites.h"

#include <stdlib.h>
#include <string.h>

#include "harness/cases/suite_folders.h"

static void load_one(const char *const *folders, const char *name, rge_suites *suites) {
  char path[RGH_SUITE_PATH_BYTES];
  if (rgh_suite_find(folders, name, path, NULL) && rgh_suite_load(path, &suites->list[suites->count], NULL)) {
    suites->count++;
  }
}

bool rge_suites_load(const char *const *folders, rge_suites *suites) {
  *suites = (rge_suites){0};
  int num_names;
  char **names = rgh_suite_names(folders, &num_names);
  if (names == NULL) return false;
  suites->list = calloc((size_t)num_names + 1, sizeof *suites->list);
  for (int n = 0; n < num_names; n++) {
    if (suites->list != NULL) load_one(folders, names[n], suites);
    free(names[n]);
  }
  free(names);
  return suites->list != NULL;
}

const rgh_suite *rge_suites_find(const rge_suites *suites, const char *name) {
  for (int s = 0; name != NULL && s < suites->count; s++) {
    if (strcmp(suites->list[s].name, name) == 0) return &suites->list[s];
  }
  return NULL;
}

int rge_suite_cases(const rgh_suite *suite, const rg_operator *op) {
  int count = 0;
  for (int c = 0; suite != NULL && c < suite->num_cases; c++) count += suite->cases[c].op == op;
  return count;
}

const rgh_case *rge_suite_case(const rgh_suite *suite, const rg_operator *op, const char *name) {
  for (int c = 0; suite != NULL && c < suite->num_cases; c++) {
    const rgh_case *item = &suite->cases[c];
    if (item->op == op && strcmp(item->name, name) == 0) return item;
  }
  return NULL;
}

void rge_suites_free(rge_suites *suites) {
  for (int s = 0; s < suites->count; s++) rgh_suite_free(&suites->list[s]);
  free(suites->list);
  *suites = (rge_suites){0};
}
