#include "tools/site/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_errno(const char *path, rgh_message *why) { return rgh_fail(why, "%s: %s", path, strerror(errno)); }

/* ---- the list of a folder's files, by which one that was written here is known ---- */

typedef struct names {
  char *text;  /* the list as it was read */
  char **name; /* into it, sorted */
  size_t count;
} names;

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void free_names(names *n) {
  free(n->text);
  free(n->name);
}

/* No list, or none that can be read, is an empty one. False: no memory. */
static bool read_names(const char *path, names *n) {
  *n = (names){0};
  FILE *file = fopen(path, "r");
  if (file == NULL) return true;
  size_t room = 0;
  const ssize_t length = getdelim(&n->text, &room, '\0', file); /* all of it: a name holds no '\0' */
  fclose(file);
  if (length <= 0) return true;
  size_t lines = 0;
  for (const char *c = n->text; *c != '\0'; c++) lines += *c == '\n';
  n->name = malloc((lines + 1) * sizeof *n->name);
  if (n->name == NULL) return false;
  char *rest = n->text;
  for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
    if (line[0] != '\0') n->name[n->count++] = line;
  }
  qsort(n->name, n->count, sizeof *n->name, by_name);
  return true;
}

static bool is_listed(const names *n, const char *name) {
  return n->count > 0 && bsearch(&name, n->name, n->count, sizeof *n->name, by_name) != NULL;
}

typedef struct walk {
  FTS *tree;
  size_t root; /* length of the root's path and its '/' */
} walk;

static bool begin_walk(const char *path, walk *w, rgh_message *why) {
  char *roots[] = {(char *)(uintptr_t)path, NULL};
  w->root = strlen(path) + 1;
  w->tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
  return w->tree != NULL || fail_errno(path, why);
}

/* The next thing that is no folder; NULL at the end. *kind is FTS_ERR and the like where it could not be read. */
static const char *next_entry(const walk *w, int *kind) {
  for (const FTSENT *entry; (entry = fts_read(w->tree)) != NULL;) {
    if (entry->fts_info == FTS_D || entry->fts_info == FTS_DP) continue;
    *kind = entry->fts_info;
    return entry->fts_path + w->root;
  }
  return NULL;
}

/* Whether every file of the folder is one that its list names: what is not must not be lost. */
static bool holds_only_listed(const char *path, const char *list, rgh_message *why) {
  char at[RGS_PATH_BYTES];
  names n;
  walk w;
  snprintf(at, sizeof at, "%.3900s/%.100s", path, list);
  if (!read_names(at, &n)) return rgh_fail(why, "no memory");
  bool good = begin_walk(path, &w, why);
  int kind;
  for (const char *name; good && (name = next_entry(&w, &kind)) != NULL;) {
    if (kind == FTS_F && (strcmp(name, list) == 0 || is_listed(&n, name))) continue;
    good =
        rgh_fail(why, "%.2000s: is there already and holds %.1000s, which this command did not write (it is not in %s)",
                 path, name, list);
  }
  if (w.tree != NULL) fts_close(w.tree);
  free_names(&n);
  return good;
}

static bool write_list(const char *path, const char *list, rgh_message *why) {
  char at[RGS_PATH_BYTES];
  walk w;
  if (!begin_walk(path, &w, why)) return false;
  snprintf(at, sizeof at, "%.3900s/%.100s", path, list);
  FILE *file = fopen(at, "wx");
  int kind;
  for (const char *name; file != NULL && (name = next_entry(&w, &kind)) != NULL;) {
    if (strcmp(name, list) != 0) fprintf(file, "%s\n", name);
  }
  fts_close(w.tree);
  if (file == NULL) return fail_errno(at, why);
  const bool complete = ferror(file) == 0;
  return (fclose(file) == 0 && complete) || fail_errno(at, why);
}

/* ---- begin ---- */

/* Whether there is nothing at the path, or what may be replaced. */
static bool may_replace(const char *path, const char *list, rgh_message *why) {
  struct stat info;
  if (lstat(path, &info) != 0) return errno == ENOENT || fail_errno(path, why);
  if (!S_ISDIR(info.st_mode)) return rgh_fail(why, "%s: is there already and is no folder", path);
  return holds_only_listed(path, list, why);
}

bool rgs_folder_begin(const char *path, const char *list, rgs_folder *folder, rgh_message *why) {
  *folder = (rgs_folder){.list = list};
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  if (length == 0 || length + 64 > RGS_PATH_BYTES) return rgh_fail(why, "the path of the folder is empty or too long");
  memcpy(folder->final, path, length);
  if (!may_replace(folder->final, list, why)) return false;
  snprintf(folder->temporary, RGS_PATH_BYTES, "%.4000s.%ld.part", folder->final, (long)getpid());
  if (mkdir(folder->temporary, 0777) == 0) return true;
  fail_errno(folder->temporary, why);
  folder->temporary[0] = '\0';
  return false;
}

static bool path_of(const rgs_folder *folder, const char *name, char path[RGS_PATH_BYTES], rgh_message *why) {
  return snprintf(path, RGS_PATH_BYTES, "%s/%s", folder->temporary, name) < RGS_PATH_BYTES ||
         rgh_fail(why, "%s: the path is too long", name);
}

bool rgs_folder_below(const rgs_folder *folder, const char *name, rgh_message *why) {
  char path[RGS_PATH_BYTES];
  return path_of(folder, name, path, why) && (mkdir(path, 0777) == 0 || fail_errno(path, why));
}

bool rgs_folder_write(const rgs_folder *folder, const char *name, const char *bytes, size_t length, rgh_message *why) {
  char path[RGS_PATH_BYTES];
  if (!path_of(folder, name, path, why)) return false;
  FILE *file = fopen(path, "wx");
  if (file == NULL) return fail_errno(path, why);
  const bool complete = fwrite(bytes, 1, length, file) == length;
  return (fclose(file) == 0 && complete) || fail_errno(path, why);
}

bool rgs_folder_copy(const rgs_folder *folder, const char *name, const char *from, rgh_message *why) {
  char path[RGS_PATH_BYTES], block[1 << 16];
  if (!path_of(folder, name, path, why)) return false;
  const int in = open(from, O_RDONLY | O_CLOEXEC);
  if (in < 0) return fail_errno(from, why);
  const int out = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  bool good = out >= 0;
  ssize_t got = 0;
  while (good && (got = read(in, block, sizeof block)) > 0) {
    for (ssize_t done = 0, wrote; good && done < got; done += wrote) {
      wrote = write(out, block + done, (size_t)(got - done));
      good = wrote > 0;
    }
  }
  good = good && got == 0;
  if (!good) fail_errno(path, why);
  close(in);
  if (out >= 0 && close(out) != 0 && good) good = fail_errno(path, why);
  return good;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info, (void)kind, (void)place;
  return remove(path);
}

static void remove_tree(const char *path) { nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS); }

bool rgs_folder_finish(const rgs_folder *folder, rgh_message *why) {
  struct stat info;
  if (!write_list(folder->temporary, folder->list, why)) return false;
  if (lstat(folder->final, &info) != 0) {
    return rename(folder->temporary, folder->final) == 0 || fail_errno(folder->final, why);
  }
  /* In one step where the file system can; else the old one steps aside first. */
  if (renameat2(AT_FDCWD, folder->temporary, AT_FDCWD, folder->final, RENAME_EXCHANGE) == 0) {
    remove_tree(folder->temporary); /* it is the old one now */
    return true;
  }
  char aside[RGS_PATH_BYTES + 8];
  snprintf(aside, sizeof aside, "%s.old", folder->temporary);
  if (rename(folder->final, aside) != 0) return fail_errno(folder->final, why);
  if (rename(folder->temporary, folder->final) != 0) {
    fail_errno(folder->final, why);
    if (rename(aside, folder->final) != 0) return rgh_fail(why, "%s: the site before is in %s", folder->final, aside);
    return false;
  }
  remove_tree(aside);
  return true;
}

void rgs_folder_abandon(const rgs_folder *folder) {
  if (folder->temporary[0] != '\0') remove_tree(folder->temporary);
}
