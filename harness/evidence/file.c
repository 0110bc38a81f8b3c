#include "harness/evidence/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "harness/cases/json_value.h"
#include "harness/evidence/parse.h"

void rge_digest(const void *bytes, size_t length, char digest[RGE_DIGEST_BYTES]) {
  const XXH128_hash_t hash = XXH3_128bits(bytes, length);
  snprintf(digest, RGE_DIGEST_BYTES, "xxh128:%016llx%016llx", (unsigned long long)hash.high64,
           (unsigned long long)hash.low64);
}

static bool read_bytes(int descriptor, const char *path, rge_file *file, rgh_message *why) {
  struct stat info;
  if (fstat(descriptor, &info) != 0) return rgh_fail(why, "%s: %s", path, strerror(errno));
  if (!S_ISREG(info.st_mode)) return rgh_fail(why, "%s: is no regular file", path);
  if (info.st_size > RGE_MAX_FILE_BYTES) {
    return rgh_fail(why, "%s: %lld bytes are more than a record may have, %d MiB", path, (long long)info.st_size,
                    RGE_MAX_FILE_BYTES >> 20);
  }
  file->bytes = malloc((size_t)info.st_size + 1);
  if (file->bytes == NULL) return rgh_fail(why, "%s: no memory", path);
  while (file->length < (size_t)info.st_size) {
    const ssize_t got = read(descriptor, file->bytes + file->length, (size_t)info.st_size - file->length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return rgh_fail(why, "%s: %s", path, strerror(errno));
    if (got == 0) break; /* became shorter meanwhile: the parser will say what is missing */
    file->length += (size_t)got;
  }
  file->bytes[file->length] = '\0';
  return true;
}

static bool parse(const char *path, rge_file *file, rgh_message *why) {
  rge_json_error error;
  file->json = rge_json_parse(file->bytes, file->length, &error);
  if (file->json == NULL) return rgh_fail(why, "%s:%d:%d: %s", path, error.line, error.column, error.what);
  if (json_is_object(file->json)) return true;
  return rgh_fail(why, "%s: expected an object, got %s", path, rgh_json_kind(file->json));
}

/* The bytes and their digest. */
static bool load(const char *path, rge_file *file, rgh_message *why) {
  *file = (rge_file){0};
  /* A pipe in the folder must not make the tool wait for ever. */
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return rgh_fail(why, "%s: %s", path, strerror(errno));
  const bool good = read_bytes(descriptor, path, file, why);
  close(descriptor);
  if (good) rge_digest(file->bytes, file->length, file->digest);
  return good;
}

bool rge_file_read(const char *path, rge_file *file, rgh_message *why) {
  const bool good = load(path, file, why) && parse(path, file, why);
  if (!good) rge_file_free(file);
  return good;
}

bool rge_file_digest(const char *path, char digest[RGE_DIGEST_BYTES], rgh_message *why) {
  rge_file file;
  const bool good = load(path, &file, why);
  if (good) memcpy(digest, file.digest, RGE_DIGEST_BYTES);
  rge_file_free(&file);
  return good;
}

void rge_file_free(rge_file *file) {
  json_decref(file->json);
  free(file->bytes);
  *file = (rge_file){0};
}
