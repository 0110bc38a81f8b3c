/* problems.h: what is wrong with a record, one line each. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_PROBLEMS_H
#define ROPEGRAD_HARNESS_EVIDENCE_PROBLEMS_H

#include "harness/base/message.h"

/* How much a problem matters, the worst last. */
typedef enum rge_weight {
  RGE_NOTE,    /* worth knowing; changes nothing */
  RGE_LOWERS,  /* the record is not evidence that others can follow: it counts as reported only */
  RGE_UNUSABLE /* the record cannot be read as one */
} rge_weight;

typedef struct rge_problem {
  rge_weight weight;
  rgh_message what;
} rge_problem;

/* A hostile file can have a problem in every number: the list takes so many problems and so many notes, and the rest is
 * counted. */
enum { RGE_MAX_PROBLEMS = 40, RGE_MAX_NOTES = 40 };
typedef struct rge_problems {
  rge_problem *list;
  int count, notes; /* in the list; the notes among them */
  int left_out, notes_left_out;
  rge_weight worst;
} rge_problems;

void rge_problem_add(rge_problems *problems, rge_weight weight, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* How many there are besides notes, in the list or not. */
int rge_problems_count(const rge_problems *problems);

/* Whether one of them weighs so much or more. */
bool rge_problems_reach(const rge_problems *problems, rge_weight weight);

void rge_problems_free(rge_problems *problems);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_PROBLEMS_H */
