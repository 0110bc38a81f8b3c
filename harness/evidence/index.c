#include "harness/evidence/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/evidence/copies.h"
#include "harness/evidence/files.h"
#include "harness/evidence/identity.h"
#include "harness/evidence/rank.h"

/* What became of one file. */
typedef struct slot {
  enum { REFUSED, RECORD, REPORTED } kind;
  rge_record record;
  rge_reported reported;
  rgh_message why;
} slot;

typedef struct schemas {
  rge_schema *record, *reported;
} schemas;

static bool load_schemas(const char *folder, schemas *found, rgh_message *why) {
  char path[4096];
  snprintf(path, sizeof path, "%s/record.schema.json", folder);
  found->record = rge_schema_load(path, why);
  if (found->record == NULL) return false;
  snprintf(path, sizeof path, "%s/reported.schema.json", folder);
  found->reported = rge_schema_load(path, why);
  return found->reported != NULL;
}

/* ---- one file ---- */

static bool refuse(slot *at, const char *path, const char *what) {
  at->kind = REFUSED;
  return rgh_fail(&at->why, "%s: %s", path, what);
}

/* The first problem that makes it unusable. */
static const char *first_unusable(const rge_problems *problems) {
  for (int p = 0; p < problems->count; p++) {
    if (problems->list[p].weight == RGE_UNUSABLE) return problems->list[p].what.text;
  }
  return "it has too many problems";
}

static void read_reported(const rge_schema *schema, const char *path, rge_file *file, slot *at) {
  rge_problems problems = {0};
  rge_schema_check(schema, file->json, &problems);
  if (rge_problems_reach(&problems, RGE_LOWERS)) {
    refuse(at, path, problems.list != NULL ? problems.list[0].what.text : "no memory");
  } else {
    at->kind = REPORTED;
    at->reported = (rge_reported){.path = strdup(path), .json = json_incref(file->json)};
  }
  rge_problems_free(&problems);
}

static void read_record(const rge_schema *schema, const rge_suites *suites, const char *path, rge_file *file,
                        slot *at) {
  rge_record *record = &at->record;
  rge_schema_check(schema, file->json, &record->problems);
  rgh_message why;
  if (rge_problems_reach(&record->problems, RGE_UNUSABLE)) {
    refuse(at, path, first_unusable(&record->problems));
  } else if (!rge_record_read(file, suites, record, &why)) {
    refuse(at, path, why.text);
  } else {
    at->kind = RECORD;
    record->path = strdup(path);
    if (record->path == NULL) refuse(at, path, "no memory");
  }
  if (at->kind == REFUSED) rge_record_free(record);
}

static void read_one(const schemas *schema, const rge_suites *suites, const char *path, slot *at) {
  rge_file file;
  *at = (slot){0};
  if (!rge_file_read(path, &file, &at->why)) return;
  const char *says = json_string_value(json_object_get(file.json, "schema"));
  if (says != NULL && strcmp(says, "ropegrad-record-1") == 0) {
    read_record(schema->record, suites, path, &file, at);
  } else if (says != NULL && strcmp(says, "ropegrad-reported-1") == 0) {
    read_reported(schema->reported, path, &file, at);
  } else {
    refuse(at, path, "its \"schema\" is neither ropegrad-record-1 nor ropegrad-reported-1");
  }
  rge_file_free(&file);
}

/* ---- all files ---- */

static int newest_first(const void *a, const void *b) {
  const rge_record *x = a, *y = b;
  const int order = strcmp(y->utc, x->utc);
  return order != 0 ? order : strcmp(x->id, y->id);
}

/* Moves what became of the files into the index. */
static bool gather(const rge_files *files, slot *slots, rge_index *index) {
  const size_t room = (size_t)files->count + 1;
  index->records = calloc(room, sizeof *index->records);
  index->reported = calloc(room, sizeof *index->reported);
  index->refusals = calloc(room, sizeof *index->refusals);
  const bool good = index->records != NULL && index->reported != NULL && index->refusals != NULL;
  bool named = true;
  for (int f = 0; f < files->count; f++) {
    slot *at = &slots[f];
    if (at->kind == RECORD && good) {
      at->record.id = rge_identity(files->names[f]);
      named = named && at->record.id != NULL;
      index->records[index->num_records++] = at->record;
    } else if (at->kind == RECORD) {
      rge_record_free(&at->record);
    } else if (at->kind == REPORTED && good) {
      index->reported[index->num_reported++] = at->reported;
    } else if (good) {
      index->refusals[index->num_refusals++].why = at->why;
    }
  }
  return good && named && rge_identities_settle(index->records, index->num_records);
}

bool rge_index_load(const rge_sources *sources, rge_index *index, rgh_message *why) {
  *index = (rge_index){0};
  schemas schema = {0};
  rge_files files = {0};
  bool good = load_schemas(sources->schemas, &schema, why) && rge_files_find(sources->paths, &files, why);
  slot *slots = good ? calloc((size_t)files.count + 1, sizeof *slots) : NULL;
  if (good && slots == NULL) good = rgh_fail(why, "no memory");
  if (good) {
    json_object_seed(0); /* before several threads use jansson */
#pragma omp parallel for schedule(dynamic)
    for (int f = 0; f < files.count; f++) read_one(&schema, sources->suites, files.paths[f], &slots[f]);
    if (!gather(&files, slots, index)) {
      good = rgh_fail(why, "no memory");
    } else {
      qsort(index->records, (size_t)index->num_records, sizeof *index->records, newest_first);
      for (int r = 0; r < index->num_records; r++) {
        for (int e = 0; e < index->records[r].num_entries; e++)
          index->records[r].entries[e].record = &index->records[r];
      }
      good = rge_find_copies(index) || rgh_fail(why, "no memory");
      rge_rank(index);
    }
  }
  free(slots);
  rge_files_free(&files);
  rge_schema_free(schema.record);
  rge_schema_free(schema.reported);
  if (!good) rge_index_free(index);
  return good;
}

void rge_index_free(rge_index *index) {
  for (int r = 0; r < index->num_records; r++) rge_record_free(&index->records[r]);
  for (int r = 0; r < index->num_reported; r++) {
    free(index->reported[r].path);
    json_decref(index->reported[r].json);
  }
  free(index->records);
  free(index->reported);
  free(index->refusals);
  *index = (rge_index){0};
}
