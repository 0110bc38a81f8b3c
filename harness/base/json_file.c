#include "harness/base/json_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Enough digits for nanoseconds in a latency of minutes, and for any reader to get the same double. */
enum { PATH_BYTES = 4096, VALUE_FLAGS = JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(12) };

/* Where the bytes go until they are complete, and what is renamed over at the end. */
typedef struct destination {
  char final[PATH_BYTES];
  char temporary[PATH_BYTES]; /* "": written straight to final, which is no regular file */
  FILE *file;
} destination;

static bool fail_errno(const char *path, rgh_message *why) { return rgh_fail(why, "%s: %s", path, strerror(errno)); }

static bool open_destination(const char *path, destination *to, rgh_message *why) {
  memset(to, 0, sizeof *to);
  if (strlen(path) + 32 > PATH_BYTES) return rgh_fail(why, "the path of the JSON file is too long");
  struct stat info;
  const bool exists = stat(path, &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return rgh_fail(why, "%s: is a folder", path);
  /* A link stays a link: what it points at is replaced. */
  if (!exists || realpath(path, to->final) == NULL) strcpy(to->final, path);
  if (exists && !S_ISREG(info.st_mode)) {
    to->file = fopen(path, "w");
  } else {
    if (exists && access(to->final, W_OK) != 0) return fail_errno(path, why);
    if (snprintf(to->temporary, PATH_BYTES, "%s.%ld.part", to->final, (long)getpid()) >= PATH_BYTES) {
      return rgh_fail(why, "the path of the JSON file is too long");
    }
    to->file = fopen(to->temporary, "wx");
  }
  return to->file != NULL || fail_errno(path, why);
}

bool rgh_json_writable(const char *path, rgh_message *why) {
  destination to;
  if (!open_destination(path, &to, why)) return false;
  fclose(to.file);
  if (to.temporary[0] != '\0') unlink(to.temporary);
  return true;
}

static bool is_list_of_objects(const json_t *value) { return json_is_object(json_array_get(value, 0)); }

static void write_value(FILE *file, const json_t *value) {
  if (!is_list_of_objects(value)) {
    json_dumpf(value, file, VALUE_FLAGS);
    return;
  }
  for (size_t i = 0; i < json_array_size(value); i++) {
    fputs(i == 0 ? "[\n  " : ",\n  ", file);
    json_dumpf(json_array_get(value, i), file, VALUE_FLAGS);
  }
  fputs("\n ]", file);
}

bool rgh_json_save(const char *path, const json_t *object, rgh_message *why) {
  destination to;
  if (!open_destination(path, &to, why)) return false;
  const char *key;
  json_t *value;
  const char *before = "{\n ";
  json_object_foreach((json_t *)object, key, value) {
    fprintf(to.file, "%s\"%s\": ", before, key);
    write_value(to.file, value);
    before = ",\n ";
  }
  fputs("\n}\n", to.file);
  const bool broken = ferror(to.file);
  const bool written = fclose(to.file) == 0 && !broken;
  if (written && (to.temporary[0] == '\0' || rename(to.temporary, to.final) == 0)) return true;
  fail_errno(path, why);
  if (to.temporary[0] != '\0') unlink(to.temporary);
  return false;
}
