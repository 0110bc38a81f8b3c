/* read_file.h: a whole file in memory. */
#ifndef ROPEGRAD_HARNESS_BASE_READ_FILE_H
#define ROPEGRAD_HARNESS_BASE_READ_FILE_H

#include <stddef.h>

#include "harness/base/message.h"

/* Reads a file of at most 64 MiB; the caller frees the bytes. NULL, with a reason that names the file. */
char *rgh_read_file(const char *path, size_t *bytes, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_BASE_READ_FILE_H */
