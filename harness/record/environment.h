/* environment.h: everything about the machine, the build and the process that someone needs who wants to run a record
 * again, as JSON. */
#ifndef ROPEGRAD_HARNESS_RECORD_ENVIRONMENT_H
#define ROPEGRAD_HARNESS_RECORD_ENVIRONMENT_H

#include <jansson.h>

#include "harness/record/gpu.h"
#include "harness/record/machine.h"

/* The `environment` of a record. The caller owns the result; NULL: no memory. `gpu` may be NULL; argv ends with
 * NULL. */
json_t *rgh_environment_json(const rgh_machine *machine, const rgh_gpu *gpu, const char *const *argv, int threads);

/* Its `gpu`: null for NULL. */
json_t *rgh_gpu_json(const rgh_gpu *gpu);

/* A JSON string, null for NULL and "". Bytes that are not UTF-8, which a path or an argument may hold, become '?'. */
json_t *rgh_text_json(const char *text);

/* "0.1.0 (commit 1a2b3c4d, modified)": of the library and the build. `room` of 128 is enough. */
void rgh_version_text(char *text, int room);

#endif /* ROPEGRAD_HARNESS_RECORD_ENVIRONMENT_H */
