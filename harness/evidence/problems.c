#include "harness/evidence/problems.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void rge_problem_add(rge_problems *problems, rge_weight weight, const char *format, ...) {
  if (weight > problems->worst) problems->worst = weight;
  const bool note = weight == RGE_NOTE;
  if (problems->list == NULL) problems->list = malloc((RGE_MAX_PROBLEMS + RGE_MAX_NOTES) * sizeof *problems->list);
  if (problems->list == NULL ||
      (note ? problems->notes == RGE_MAX_NOTES : problems->count - problems->notes == RGE_MAX_PROBLEMS)) {
    ++*(note ? &problems->notes_left_out : &problems->left_out);
    return;
  }
  problems->notes += note;
  rgh_message what;
  va_list values;
  va_start(values, format);
  vsnprintf(what.text, sizeof what.text, format, values);
  va_end(values);
  rge_problem *problem = &problems->list[problems->count++];
  problem->weight = weight;
  rgh_message copy = what; /* rgh_fail shortens it and keeps it on one line */
  rgh_fail(&problem->what, "%s", copy.text);
}

bool rge_problems_reach(const rge_problems *problems, rge_weight weight) {
  return problems->count + problems->left_out + problems->notes_left_out > 0 && problems->worst >= weight;
}

int rge_problems_count(const rge_problems *problems) { return problems->count - problems->notes + problems->left_out; }

void rge_problems_free(rge_problems *problems) {
  free(problems->list);
  *problems = (rge_problems){0};
}
