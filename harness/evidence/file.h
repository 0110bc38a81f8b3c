/* file.h: a JSON file as evidence: read whole, within limits, with the digest of its bytes. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_FILE_H
#define ROPEGRAD_HARNESS_EVIDENCE_FILE_H

#include <jansson.h>

#include "harness/base/message.h"

/* A record of the 80 cases with every sample takes less than one MiB. */
enum { RGE_MAX_FILE_BYTES = 64 << 20, RGE_DIGEST_BYTES = 48 };

typedef struct rge_file {
  char *bytes; /* as they are on the disk */
  size_t length;
  json_t *json;
  char digest[RGE_DIGEST_BYTES]; /* "xxh128:0123...", what `xxh128sum FILE` prints */
} rge_file;

/* Reads a regular file that holds one JSON object. False: *file is empty, and the reason names the file and, where the
 * JSON is broken, line and column. */
bool rge_file_read(const char *path, rge_file *file, rgh_message *why);

void rge_file_free(rge_file *file);

/* The digest of any regular file, within the same limit. */
bool rge_file_digest(const char *path, char digest[RGE_DIGEST_BYTES], rgh_message *why);

/* The digest of any bytes, in the same form. */
void rge_digest(const void *bytes, size_t length, char digest[RGE_DIGEST_BYTES]);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_FILE_H */
