#include "harness/evidence/identity.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MAX_PLAIN = 80, ROOM = MAX_PLAIN + 64 };

static bool is_plain(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-'; }

/* Whether replacing each '/' by "--" can be undone, so that no other name gives the same. */
static bool can_be_undone(const char *name) {
  char before = '/';
  size_t length = 0;
  for (const char *c = name; *c != '\0'; before = *c++) {
    length += *c == '/' ? 2 : 1;
    if (*c == '/' ? before == '/' || before == '-' : !is_plain(*c)) return false;
    if (*c == '-' && (before == '-' || before == '/')) return false;
  }
  return before != '/' && before != '-' && length <= MAX_PLAIN;
}

char *rge_identity(const char *name) {
  char *id = calloc(1, ROOM);
  if (id == NULL) return NULL;
  const bool whole = can_be_undone(name);
  size_t used = 0;
  for (const char *c = name; *c != '\0' && used + 2 <= MAX_PLAIN; c++) {
    const char lower = (char)tolower((unsigned char)*c);
    if (is_plain(lower) && lower != '-') {
      id[used++] = lower;
    } else if (whole && *c == '/') {
      id[used++] = '-';
      id[used++] = '-';
    } else if (used > 0 && id[used - 1] != '-') {
      id[used++] = '-';
    }
  }
  if (whole) return id;
  while (used > 0 && id[used - 1] == '-') used--;
  snprintf(id + used, ROOM - used, "%s%012llx", used > 0 ? "-" : "record-",
           (unsigned long long)(XXH3_64bits(name, strlen(name)) >> 16));
  return id;
}

static int by_id(const void *a, const void *b) {
  const rge_record *x = *(rge_record *const *)a, *y = *(rge_record *const *)b;
  const int order = strcmp(x->id, y->id);
  return order != 0 ? order : (x > y) - (x < y); /* the first found first */
}

bool rge_identities_settle(rge_record *records, int count) {
  rge_record **sorted = malloc(((size_t)count + 1) * sizeof(rge_record *));
  if (sorted == NULL) return false;
  for (int pass = 0; pass < 2; pass++) {
    for (int r = 0; r < count; r++) sorted[r] = &records[r];
    qsort(sorted, (size_t)count, sizeof *sorted, by_id);
    const char *first = "";
    for (int r = 0, same = 0; r < count; r++) {
      char *id = sorted[r]->id;
      same = strcmp(first, id) == 0 ? same + 1 : 0;
      if (same == 0) {
        first = id;
      } else if (pass == 0) {
        snprintf(id + strlen(id), ROOM - strlen(id), "-%.8s", sorted[r]->digest + strlen("xxh128:"));
      } else {
        snprintf(id + strlen(id), ROOM - strlen(id), ".%d", same + 1); /* no identity had a '.' before */
      }
    }
  }
  free(sorted);
  return true;
}
