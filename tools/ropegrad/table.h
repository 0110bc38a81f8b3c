/* table.h: aligned columns on standard output. */
#ifndef ROPEGRAD_TOOLS_TABLE_H
#define ROPEGRAD_TOOLS_TABLE_H

#include <stdbool.h>

#include "harness/record/record.h"

typedef struct rgt_column {
  const char *title;
  int width;
  bool right; /* numbers; text stands to the left */
} rgt_column;

void rgt_table_head(const rgt_column *columns, int num_columns);
void rgt_table_row(const rgt_column *columns, int num_columns, const char *const *cells);

/* As wide as the longest name of an operator, or of a case, in the run. */
int rgt_op_width(const rgh_run *run);
int rgt_case_width(const rgh_run *run);

#endif /* ROPEGRAD_TOOLS_TABLE_H */
