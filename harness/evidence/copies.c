#include "harness/evidence/copies.h"

#include <stdlib.h>
#include <string.h>

/* A timed case and the hash of its samples. */
typedef struct mark {
  uint64_t hash;
  int record;
} mark;

static int by_hash(const void *a, const void *b) {
  const mark *x = a, *y = b;
  if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
  return x->record - y->record;
}

/* The marks of all timed cases that have samples. NULL: no memory. */
static mark *collect(const rge_index *index, size_t *count) {
  size_t room = 1;
  for (int r = 0; r < index->num_records; r++) {
    for (int e = 0; e < index->records[r].num_entries; e++) room += (size_t)index->records[r].entries[e].num_cases;
  }
  mark *marks = malloc(room * sizeof *marks);
  *count = 0;
  for (int r = 0; marks != NULL && r < index->num_records; r++) {
    for (int e = 0; e < index->records[r].num_entries; e++) {
      const rge_entry *entry = &index->records[r].entries[e];
      for (int c = 0; c < entry->num_cases; c++) {
        if (entry->cases[c].sample.count > 0) marks[(*count)++] = (mark){entry->cases[c].samples_hash, r};
      }
    }
  }
  if (marks != NULL) qsort(marks, *count, sizeof *marks, by_hash);
  return marks;
}

/* Notes of each of the marks with one hash which other record has it. */
static void find_twins(const mark *marks, size_t count, int *twin) {
  const int first = marks[0].record, last = marks[count - 1].record;
  if (first == last) return;
  for (size_t m = 0; m < count; m++) {
    if (twin[marks[m].record] < 0) twin[marks[m].record] = marks[m].record == first ? last : first;
  }
}

static void tell(rge_record *record, const rge_record *other) {
  if (strcmp(record->digest, other->digest) == 0) {
    rge_problem_add(&record->problems, RGE_NOTE, "is the same file as the record %s", other->id);
  } else {
    rge_problem_add(&record->problems, RGE_LOWERS,
                    "has the raw samples of the record %s: both are of one run, so that one is a copy, and a copy "
                    "verifies nothing. Keep the one that the tool wrote",
                    other->id);
  }
}

bool rge_find_copies(rge_index *index) {
  size_t count;
  mark *marks = collect(index, &count);
  int *twin = malloc(((size_t)index->num_records + 1) * sizeof *twin);
  const bool good = marks != NULL && twin != NULL;
  if (good) {
    for (int r = 0; r < index->num_records; r++) twin[r] = -1;
    for (size_t begin = 0, end; begin < count; begin = end) {
      for (end = begin + 1; end < count && marks[end].hash == marks[begin].hash;) end++;
      find_twins(&marks[begin], end - begin, twin);
    }
    for (int r = 0; r < index->num_records; r++) {
      if (twin[r] >= 0) tell(&index->records[r], &index->records[twin[r]]);
    }
  }
  free(marks);
  free(twin);
  return good;
}
