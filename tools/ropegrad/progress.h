/* progress.h: how far a run is, on standard error: a bar on a terminal, a line a case otherwise. */
#ifndef ROPEGRAD_TOOLS_PROGRESS_H
#define ROPEGRAD_TOOLS_PROGRESS_H

#include <stdbool.h>

typedef struct rgt_progress {
  bool bar;
  int total;
} rgt_progress;

rgt_progress rgt_progress_begin(int total);

/* Case number `index`, from 0, begins. */
void rgt_progress_case(const rgt_progress *progress, int index, const char *op, const char *name);

/* Takes the bar away, so that a row of the table can be printed in its place. */
void rgt_progress_clear(const rgt_progress *progress);

#endif /* ROPEGRAD_TOOLS_PROGRESS_H */
