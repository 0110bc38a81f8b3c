#include "tools/site/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool fail_errno(const char *path, rgh_message *why) { return rgh_fail(why, "%s: %s", path, strerror(errno)); }

/* Whether there is nothing at the path, or what may be replaced. */
static bool may_replace(const char *path, const char *marker, rgh_message *why) {
  struct stat info;
  if (lstat(path, &info) != 0) return errno == ENOENT || fail_errno(path, why);
  if (!S_ISDIR(info.st_mode)) return rgh_fail(why, "%s: is there already and is no folder", path);
  DIR *open_folder = opendir(path);
  if (open_folder == NULL) return fail_errno(path, why);
  int entries = 0;
  bool marked = false;
  for (const struct dirent *entry; (entry = readdir(open_folder)) != NULL;) {
    entries += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    marked = marked || strcmp(entry->d_name, marker) == 0;
  }
  closedir(open_folder);
  return entries == 0 || marked ||
         rgh_fail(why, "%s: is there already and was not written by this command (it has no %s)", path, marker);
}

bool rgs_folder_begin(const char *path, const char *marker, rgs_folder *folder, rgh_message *why) {
  *folder = (rgs_folder){0};
  size_t length = strlen(path);
  while (length > 1 && path[length - 1] == '/') length--;
  if (length == 0 || length + 64 > RGS_PATH_BYTES) return rgh_fail(why, "the path of the folder is empty or too long");
  memcpy(folder->final, path, length);
  if (!may_replace(folder->final, marker, why)) return false;
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
