/* json_file.h: writes a JSON file whole or not at all. */
#ifndef ROPEGRAD_HARNESS_BASE_JSON_FILE_H
#define ROPEGRAD_HARNESS_BASE_JSON_FILE_H

#include <jansson.h>

#include "harness/base/message.h"

/* Whether a file can be written there: asked before a long run, so that its result is not lost. */
bool rgh_json_writable(const char *path, rgh_message *why);

/* Writes `object` to a temporary file beside `path` and renames it, so that `path` is never half a file; a device or a
 * pipe is written to as it is. One key of the object a line, and of a list of objects one entry a line, for people and
 * for diffs. */
bool rgh_json_save(const char *path, const json_t *object, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_BASE_JSON_FILE_H */
