/* index.h: all records of some folders together: their tiers and ranks. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_INDEX_H
#define ROPEGRAD_HARNESS_EVIDENCE_INDEX_H

#include "harness/evidence/record.h"
#include "harness/evidence/schema.h"

/* What others report, read as it is: nothing of it can be checked. */
typedef struct rge_reported {
  char *path;
  json_t *json;
} rge_reported;

/* A file that is no record, and why. */
typedef struct rge_refusal {
  rgh_message why;
} rge_refusal;

typedef struct rge_index {
  rge_record *records; /* the newest first */
  int num_records;
  rge_reported *reported;
  int num_reported;
  rge_refusal *refusals;
  int num_refusals;
} rge_index;

typedef struct rge_sources {
  const char *const *paths; /* folders, searched with what is below them, and files; ended by NULL */
  const char *schemas;      /* folder with record.schema.json and reported.schema.json */
  const rge_suites *suites;
} rge_sources;

/* Reads every .json file. A file that cannot be used becomes a refusal; false is for what stops everything: a folder
 * that cannot be read, no schema, no memory. Then ranks: sets the tier of every entry. */
bool rge_index_load(const rge_sources *sources, rge_index *index, rgh_message *why);

/* Whether its times may be held against others': checked, cold, beside a floor; *why says what it lacks. */
bool rge_entry_counts(const rge_entry *entry, const char **why);

/* Whether it may stand in a ranking: counts, and has every case of a suite that is known here. */
bool rge_entry_ranks(const rge_entry *entry, const char **why);

/* Whether two entries measured the same thing: operator, mode, suite, hardware and setting. */
bool rge_entries_alike(const rge_entry *a, const rge_entry *b);

void rge_index_free(rge_index *index);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_INDEX_H */
