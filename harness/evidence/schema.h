/* schema.h: checks JSON against a JSON Schema, the part of draft 2020-12 that the files of schema/ use. Compiled once,
 * because a record holds tens of thousands of numbers to check.
 *
 * A keyword that is not known here makes the compilation fail: nothing in a schema is passed over in silence. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_H
#define ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_H

#include <jansson.h>

#include "harness/evidence/problems.h"

typedef struct rge_schema rge_schema;

/* Reads and compiles the schema file. NULL: *why says what is wrong with it. */
rge_schema *rge_schema_load(const char *path, rgh_message *why);

/* Adds a problem for each violation: a key that is missing lowers the record; all else makes it unusable. Reads the
 * schema alone, so that several threads may use it at once. */
void rge_schema_check(const rge_schema *schema, const json_t *value, rge_problems *problems);

void rge_schema_free(rge_schema *schema);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_SCHEMA_H */
