#include "tools/ropegrad/table.h"

#include <stdio.h>
#include <string.h>

static void print_cell(const rgt_column *column, const char *text, bool last) {
  if (column->right) {
    printf("%*s", column->width, text);
  } else if (last) {
    fputs(text, stdout);
  } else {
    printf("%-*s", column->width, text);
  }
  fputs(last ? "\n" : "  ", stdout);
}

/* Empty cells at the end of a line are left out: no line ends in blanks. */
void rgt_table_head(const rgt_column *columns, int num_columns) {
  while (num_columns > 1 && columns[num_columns - 1].title[0] == '\0') num_columns--;
  for (int c = 0; c < num_columns; c++) print_cell(&columns[c], columns[c].title, c == num_columns - 1);
}

void rgt_table_row(const rgt_column *columns, int num_columns, const char *const *cells) {
  while (num_columns > 1 && cells[num_columns - 1][0] == '\0') num_columns--;
  for (int c = 0; c < num_columns; c++) print_cell(&columns[c], cells[c], c == num_columns - 1);
  fflush(stdout);
}

int rgt_op_width(const rgh_run *run) {
  size_t width = strlen("op");
  for (int r = 0; r < run->num_rows; r++) {
    const size_t length = strlen(run->rows[r].item->op->name);
    if (length > width) width = length;
  }
  return (int)width;
}

int rgt_case_width(const rgh_run *run) {
  size_t width = strlen("case");
  for (int r = 0; r < run->num_rows; r++) {
    const size_t length = strlen(run->rows[r].item->name);
    if (length > width) width = length;
  }
  return (int)width;
}
