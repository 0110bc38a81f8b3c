#include "harness/evidence/load.h"

bool rge_load_one(const char *path, const char *schemas, const rge_suites *suites, rge_index *index, rgh_message *why) {
  const char *const paths[] = {path, NULL};
  const rge_sources sources = {.paths = paths, .schemas = schemas, .suites = suites};
  if (!rge_index_load(&sources, index, why)) return false;
  if (index->num_records == 1) return true;
  if (index->num_refusals > 0) {
    *why = index->refusals[0].why;
  } else {
    rgh_fail(why, "%s: is %s, not one record", path, index->num_reported > 0 ? "a list of reported times" : "a folder");
  }
  rge_index_free(index);
  return false;
}
