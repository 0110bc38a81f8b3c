#include "harness/cases/suite_folders.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool ends_in_json(const char *name) {
  const size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static bool holds(char *const *names, int num_names, const char *name, size_t length) {
  for (int n = 0; n < num_names; n++) {
    if (strlen(names[n]) == length && strncmp(names[n], name, length) == 0) return true;
  }
  return false;
}

/* Adds the suites of one folder. False: no memory. */
static bool add_names(const char *folder, char ***names, int *num_names) {
  DIR *open_folder = opendir(folder);
  if (open_folder == NULL) return true;
  bool good = true;
  for (const struct dirent *entry; good && (entry = readdir(open_folder)) != NULL;) {
    if (!ends_in_json(entry->d_name)) continue;
    const size_t length = strlen(entry->d_name) - strlen(".json");
    if (holds(*names, *num_names, entry->d_name, length)) continue;
    char **longer = realloc(*names, (size_t)(*num_names + 1) * sizeof *longer);
    if (longer != NULL) *names = longer;
    good = longer != NULL && (longer[*num_names] = strndup(entry->d_name, length)) != NULL;
    if (good) ++*num_names;
  }
  closedir(open_folder);
  return good;
}

char **rgh_suite_names(const char *const *folders, int *num_names) {
  *num_names = 0;
  char **names = malloc(sizeof *names);
  bool good = names != NULL;
  for (; good && *folders != NULL; folders++) good = add_names(*folders, &names, num_names);
  if (good) {
    qsort(names, (size_t)*num_names, sizeof *names, by_name);
    return names;
  }
  for (int n = 0; n < *num_names; n++) free(names[n]);
  free(names);
  return NULL;
}

static bool fail_unknown(const char *const *folders, const char *name, rgh_message *why) {
  int num_names;
  char **names = rgh_suite_names(folders, &num_names);
  if (names == NULL) return rgh_fail(why, "no memory");
  char list[256] = "";
  size_t used = 0;
  for (int n = 0; n < num_names; n++) {
    if (used < sizeof list) {
      used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", n > 0 ? ", " : "", names[n]);
    }
    free(names[n]);
  }
  free(names);
  return rgh_fail(why, "no suite is named '%s'; there are: %s", name, num_names > 0 ? list : "none");
}

bool rgh_suite_find(const char *const *folders, const char *name, char path[RGH_SUITE_PATH_BYTES], rgh_message *why) {
  if (strchr(name, '/') != NULL || ends_in_json(name)) {
    if (snprintf(path, RGH_SUITE_PATH_BYTES, "%s", name) < RGH_SUITE_PATH_BYTES) return true;
    return rgh_fail(why, "the path of the suite is too long");
  }
  for (const char *const *folder = folders; *folder != NULL; folder++) {
    if (snprintf(path, RGH_SUITE_PATH_BYTES, "%s/%s.json", *folder, name) >= RGH_SUITE_PATH_BYTES) continue;
    if (access(path, F_OK) == 0) return true;
  }
  return fail_unknown(folders, name, why);
}
