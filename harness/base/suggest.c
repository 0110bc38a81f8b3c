#include "harness/base/suggest.h"

#include <stdbool.h>
#include <string.h>

/* Names are compared up to this many characters. */
enum { MAX_LENGTH = 63 };

static int smallest(int a, int b, int c) {
  const int low = a < b ? a : b;
  return low < c ? low : c;
}

/* Levenshtein's distance, a row of its table at a time. */
static int distance(const char *a, const char *b) {
  const int length_a = (int)strnlen(a, MAX_LENGTH), length_b = (int)strnlen(b, MAX_LENGTH);
  int row[MAX_LENGTH + 1];
  for (int j = 0; j <= length_b; j++) row[j] = j;
  for (int i = 1; i <= length_a; i++) {
    int diagonal = row[0];
    row[0] = i;
    for (int j = 1; j <= length_b; j++) {
      const int above = row[j];
      row[j] = smallest(above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1]));
      diagonal = above;
    }
  }
  return row[length_b];
}

/* Of three letters or more: part of a longer name, such as its beginning. */
static bool is_part(const char *typed, const char *name) {
  return strnlen(typed, MAX_LENGTH) >= 3 && strcmp(typed, name) != 0 && strstr(name, typed) != NULL;
}

int rgh_nearest_name(const char *typed, const char *const *names, int num_names) {
  int best = -1, best_distance = 0;
  for (int n = 0; n < num_names; n++) {
    const int d = is_part(typed, names[n]) ? 1 : distance(typed, names[n]);
    const bool near = d == 1 || 3 * d <= (int)strnlen(typed, MAX_LENGTH);
    if (!near || (best >= 0 && d >= best_distance)) continue;
    best = n;
    best_distance = d;
  }
  return best;
}
