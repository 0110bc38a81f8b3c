#include "harness/evidence/files.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A tree that is deeper, or holds more, is not a folder of records. */
enum { MAX_DEPTH = 8, MAX_FILES = 100000 };

static bool ends_in_json(const char *name) {
  const size_t length = strlen(name);
  return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

/* Takes both strings over. */
static bool add(rge_files *files, char *path, char *name, rgh_message *why) {
  char **paths = realloc(files->paths, (size_t)(files->count + 1) * sizeof *paths);
  if (paths != NULL) files->paths = paths;
  char **names = realloc(files->names, (size_t)(files->count + 1) * sizeof *names);
  if (names != NULL) files->names = names;
  if (paths == NULL || names == NULL || path == NULL || name == NULL) {
    free(path);
    free(name);
    return rgh_fail(why, "no memory");
  }
  if (ends_in_json(name)) name[strlen(name) - strlen(".json")] = '\0';
  files->paths[files->count] = path;
  files->names[files->count++] = name;
  return true;
}

static char *joined(const char *folder, const char *name) {
  char *path;
  if (*folder == '\0') return strdup(name);
  return asprintf(&path, "%s%s%s", folder, folder[strlen(folder) - 1] == '/' ? "" : "/", name) < 0 ? NULL : path;
}

static bool walk(const char *folder, const char *below, int depth, rge_files *files, rgh_message *why);

static bool visit(const char *folder, const char *below, const char *name, int depth, rge_files *files,
                  rgh_message *why) {
  char *path = joined(folder, name), *short_name = joined(below, name);
  struct stat info;
  if (path == NULL || short_name == NULL) {
    free(path);
    free(short_name);
    return rgh_fail(why, "no memory");
  }
  bool good = true;
  if (lstat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
    good = walk(path, short_name, depth + 1, files, why);
  } else if (ends_in_json(name)) {
    if (files->count == MAX_FILES) good = rgh_fail(why, "%s: more than %d files", folder, MAX_FILES);
    if (good) return add(files, path, short_name, why);
  }
  free(path);
  free(short_name);
  return good;
}

static bool walk(const char *folder, const char *below, int depth, rge_files *files, rgh_message *why) {
  if (depth > MAX_DEPTH) return rgh_fail(why, "%s: is nested too deep", folder);
  struct dirent **list;
  const int count = scandir(folder, &list, NULL, alphasort);
  if (count < 0) return rgh_fail(why, "%s: %s", folder, strerror(errno));
  bool good = true;
  for (int i = 0; i < count; i++) {
    if (good && list[i]->d_name[0] != '.') good = visit(folder, below, list[i]->d_name, depth, files, why);
    free(list[i]);
  }
  free(list);
  return good;
}

bool rge_files_find(const char *const *paths, rge_files *files, rgh_message *why) {
  *files = (rge_files){0};
  bool good = true;
  for (; good && *paths != NULL; paths++) {
    struct stat info;
    if (stat(*paths, &info) != 0) {
      good = rgh_fail(why, "%s: %s", *paths, strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
      good = walk(*paths, "", 0, files, why);
    } else {
      const char *slash = strrchr(*paths, '/');
      good = add(files, strdup(*paths), strdup(slash != NULL ? slash + 1 : *paths), why);
    }
  }
  if (!good) rge_files_free(files);
  return good;
}

void rge_files_free(rge_files *files) {
  for (int f = 0; f < files->count; f++) {
    free(files->paths[f]);
    free(files->names[f]);
  }
  free(files->paths);
  free(files->names);
  *files = (rge_files){0};
}
