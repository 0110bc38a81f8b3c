#include "tools/ropegrad/progress.h"

#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };

rgt_progress rgt_progress_begin(int total) { return (rgt_progress){.bar = isatty(STDERR_FILENO) != 0, .total = total}; }

void rgt_progress_case(const rgt_progress *progress, int index, const char *op, const char *name) {
  if (!progress->bar) {
    fprintf(stderr, "%d/%d %s %s\n", index + 1, progress->total, op, name);
    return;
  }
  char bar[BAR_WIDTH + 1];
  for (int i = 0; i < BAR_WIDTH; i++) bar[i] = (int64_t)index * BAR_WIDTH / progress->total > i ? '#' : '.';
  bar[BAR_WIDTH] = '\0';
  fprintf(stderr, "\r[%s] %d/%d %s %.30s\033[K", bar, index + 1, progress->total, op, name);
}

void rgt_progress_clear(const rgt_progress *progress) {
  if (progress->bar) fputs("\r\033[K", stderr);
}
