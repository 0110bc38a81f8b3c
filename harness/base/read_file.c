#include "harness/base/read_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const size_t MAX_FILE_BYTES = (size_t)64 << 20;

/* Up to the limit and not by the file's size, which a pipe or a special file does not have. */
static char *read_all(FILE *stream, size_t *bytes) {
  size_t used = 0, room = 1 << 16;
  char *text = malloc(room);
  while (text != NULL) {
    used += fread(text + used, 1, room - used, stream);
    if (used < room || room > MAX_FILE_BYTES) break;
    char *larger = realloc(text, room *= 2);
    if (larger == NULL) free(text);
    text = larger;
  }
  *bytes = used;
  return text;
}

char *rgh_read_file(const char *path, size_t *bytes, rgh_message *why) {
  FILE *stream = fopen(path, "rb");
  char *text = stream != NULL ? read_all(stream, bytes) : NULL;
  bool good = false;
  if (stream == NULL || ferror(stream)) {
    rgh_fail(why, "%s: %s", path, strerror(errno));
  } else if (text == NULL) {
    rgh_fail(why, "%s: no memory", path);
  } else if (*bytes > MAX_FILE_BYTES) {
    rgh_fail(why, "%s: larger than 64 MiB", path);
  } else {
    good = true;
  }
  if (stream != NULL) fclose(stream);
  if (good) return text;
  free(text);
  return NULL;
}
