#include "harness/timing/sweep.h"

#include <stdlib.h>

#include "harness/base/clock.h"
#include "harness/base/statistics.h"
#include "harness/timing/floor.h"

enum { MAX_ROUNDS = 25 }; /* odd, so that a median is a sample */

/* After so many rounds of the sweep only so many copies, those of the lowest medians, go on. */
static const struct { int rounds, copies; } narrowing[] = {{3, 64}, {5, 24}, {9, 8}};
enum { NUM_NARROWINGS = sizeof narrowing / sizeof narrowing[0] };

/* A copy whose best time is this much worse than the best copy's leaves the sweep. */
static const double KEEPS = 1.25;

typedef struct sweep {
  double sample[RGH_MAX_FLOOR_COPIES][MAX_ROUNDS];
  double best[RGH_MAX_FLOOR_COPIES], median[RGH_MAX_FLOOR_COPIES];
  bool out[RGH_MAX_FLOOR_COPIES];
  int rounds;
} sweep;

/* The copies that are still in, from the lowest median on; at most `most` of them. Returns how many. */
static int rank_copies(sweep *s, int num_copies, int most, int *ranked) {
  bool taken[RGH_MAX_FLOOR_COPIES] = {false};
  int count = 0;
  for (int c = 0; c < num_copies; c++) {
    if (!s->out[c]) s->median[c] = rgh_median(s->sample[c], s->rounds);
  }
  for (; count < most; count++) {
    int lowest = -1;
    for (int c = 0; c < num_copies; c++) {
      if (!s->out[c] && !taken[c] && (lowest < 0 || s->median[c] < s->median[lowest])) lowest = c;
    }
    if (lowest < 0) break;
    taken[lowest] = true;
    ranked[count] = lowest;
  }
  return count;
}

/* Takes those out that are clearly slower, and, from time to time, all but the fastest few. */
static void narrow(sweep *s, int num_copies) {
  double lowest = -1;
  for (int c = 0; c < num_copies; c++) {
    if (!s->out[c] && (lowest < 0 || s->best[c] < lowest)) lowest = s->best[c];
  }
  for (int c = 0; c < num_copies; c++) s->out[c] = s->out[c] || s->best[c] > KEEPS * lowest;
  for (int n = 0; n < NUM_NARROWINGS; n++) {
    if (s->rounds != narrowing[n].rounds) continue;
    int stay[RGH_MAX_FLOOR_COPIES];
    const int staying = rank_copies(s, num_copies, narrowing[n].copies, stay);
    for (int c = 0; c < num_copies; c++) s->out[c] = true;
    for (int i = 0; i < staying; i++) s->out[stay[i]] = false;
  }
}

static bool time_round(sweep *s, int num_copies, rgh_sweep_time time, void *argument, rgh_message *why) {
  for (int c = 0; c < num_copies; c++) {
    if (s->out[c]) continue;
    double us;
    if (!time(argument, c, &us, why)) return false;
    s->sample[c][s->rounds] = us;
    s->best[c] = s->rounds == 0 || us < s->best[c] ? us : s->best[c];
  }
  s->rounds++;
  narrow(s, num_copies);
  return true;
}

bool rgh_sweep(int num_copies, double budget_s, rgh_sweep_time time, void *argument, int *finalist, int *num_finalists,
               rgh_message *why) {
  const int64_t begin = rgh_now_ns();
  sweep *s = calloc(1, sizeof *s);
  if (s == NULL) return rgh_fail(why, "no memory");
  bool good = true;
  while (good && s->rounds < MAX_ROUNDS) {
    good = time_round(s, num_copies, time, argument, why);
    const double spent_s = (double)(rgh_now_ns() - begin) * 1e-9;
    if (budget_s > 0 && (spent_s > 2 * budget_s || (s->rounds >= 3 && spent_s > budget_s))) break;
  }
  if (good) *num_finalists = rank_copies(s, num_copies, *num_finalists, finalist);
  free(s);
  return good;
}
