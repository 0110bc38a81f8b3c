/* fuzz_record: any bytes as a record. Parsed, held against the schema, and where that lets them through, read and
 * recomputed, which must find no way out of its memory. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/parse.h"
#include "harness/evidence/record.h"
#include "harness/evidence/schema.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static rge_schema *schema;

static void judge(rge_file *file) {
  const rge_suites suites = {0};
  rge_record record = {0};
  rgh_message why;
  rge_schema_check(schema, file->json, &record.problems);
  if (!rge_problems_reach(&record.problems, RGE_UNUSABLE)) rge_record_read(file, &suites, &record, &why);
  rge_record_free(&record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rgh_message why;
  if (schema == NULL) schema = rge_schema_load(ROPEGRAD_SCHEMA, &why);
  if (schema == NULL) abort();
  rge_file file = {.bytes = malloc(size + 1), .length = size};
  if (file.bytes == NULL) return 0;
  memcpy(file.bytes, data, size);
  file.bytes[size] = '\0';
  rge_json_error error;
  file.json = rge_json_parse(file.bytes, size, &error);
  if (file.json != NULL) judge(&file);
  rge_file_free(&file);
  return 0;
}
