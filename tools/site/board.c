#include "tools/site/board.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/site/passes.h"

static int by_board(const rge_entry *a, const rge_entry *b) {
  const int x = rg_dev_find_operator(a->op->name), y = rg_dev_find_operator(b->op->name);
  if (x != y) return x - y;
  const char *s = a->record->suite, *t = b->record->suite;
  const int order = strcmp(s, t);
  if (order != 0) {
    const int main_first = (int)rgs_is_main_suite(t, b->op) - (int)rgs_is_main_suite(s, a->op);
    return main_first != 0 ? main_first : order;
  }
  return (int)a->in_place - (int)b->in_place;
}

static int by_speed(const rge_entry *a, const rge_entry *b) {
  if (a->latency_us != b->latency_us) return a->latency_us < b->latency_us ? -1 : 1;
  return strcmp(a->record->id, b->record->id);
}

static int by_group(const rge_entry *a, const rge_entry *b) {
  const int hardware = strcmp(a->hardware, b->hardware);
  return hardware != 0 ? hardware : strcmp(a->setting, b->setting);
}

static int in_groups(const void *a, const void *b) {
  const rge_entry *x = *(const rge_entry *const *)a, *y = *(const rge_entry *const *)b;
  const int board = by_board(x, y);
  if (board != 0) return board;
  const int group = by_group(x, y);
  return group != 0 ? group : by_speed(x, y);
}

static int fastest_first(const void *a, const void *b) {
  return by_speed(((const rgs_group *)a)->entries[0], ((const rgs_group *)b)->entries[0]);
}

/* The entries that rank, each board's together. NULL: no memory. */
static const rge_entry **collect(const rge_index *index, int *count) {
  int most = 0;
  for (int r = 0; r < index->num_records; r++) most += index->records[r].num_entries;
  const rge_entry **list = malloc((size_t)(most + 1) * sizeof(const rge_entry *));
  *count = 0;
  for (int r = 0; list != NULL && r < index->num_records; r++) {
    const rge_record *record = &index->records[r];
    for (int e = 0; e < record->num_entries; e++) {
      const char *why;
      if (rge_entry_ranks(&record->entries[e], &why)) list[(*count)++] = &record->entries[e];
    }
  }
  if (list != NULL && *count > 0) qsort(list, (size_t)*count, sizeof *list, in_groups);
  return list;
}

/* Cuts a board's entries, which stand together, into groups. */
static bool make_groups(rgs_board *board, const rge_entry **entries, int count) {
  board->groups = calloc((size_t)count, sizeof *board->groups);
  board->ranked = malloc((size_t)count * sizeof(const rge_entry *));
  if (board->groups == NULL || board->ranked == NULL) return false;
  for (int e = 0; e < count; e++) {
    rgs_group *group = board->num_groups > 0 ? &board->groups[board->num_groups - 1] : NULL;
    if (group == NULL || by_group(group->entries[0], entries[e]) != 0) {
      group = &board->groups[board->num_groups++];
      *group = (rgs_group){.hardware = entries[e]->hardware, .setting = entries[e]->setting, .entries = &entries[e]};
    }
    group->count++;
  }
  qsort(board->groups, (size_t)board->num_groups, sizeof *board->groups, fastest_first);
  for (int g = 0; g < board->num_groups; g++) {
    rgs_group *group = &board->groups[g];
    memcpy(&board->ranked[board->num_ranked], group->entries, (size_t)group->count * sizeof *group->entries);
    group->entries = &board->ranked[board->num_ranked];
    board->num_ranked += group->count;
  }
  return true;
}

bool rgs_boards_make(const rge_index *index, rgs_boards *boards) {
  *boards = (rgs_boards){0};
  int count;
  const rge_entry **entries = collect(index, &count);
  boards->list = calloc((size_t)count + 1, sizeof *boards->list);
  bool good = entries != NULL && boards->list != NULL;
  for (int begin = 0, end; good && begin < count; begin = end) {
    for (end = begin + 1; end < count && by_board(entries[begin], entries[end]) == 0;) end++;
    rgs_board *board = &boards->list[boards->count++];
    *board = (rgs_board){
        .op = entries[begin]->op, .in_place = entries[begin]->in_place, .suite = entries[begin]->record->suite};
    good = make_groups(board, &entries[begin], end - begin);
  }
  free(entries);
  if (!good) rgs_boards_free(boards);
  return good;
}

void rgs_boards_free(rgs_boards *boards) {
  for (int b = 0; b < boards->count; b++) {
    free(boards->list[b].groups);
    free(boards->list[b].ranked);
  }
  free(boards->list);
  *boards = (rgs_boards){0};
}

int rgs_boards_rank(const rgs_boards *boards, const rge_entry *entry) {
  for (int b = 0; b < boards->count; b++) {
    const rgs_board *board = &boards->list[b];
    if (board->op != entry->op || board->in_place != entry->in_place) continue;
    for (int g = 0; g < board->num_groups; g++) {
      const rgs_group *group = &board->groups[g];
      if (by_group(group->entries[0], entry) != 0) continue;
      for (int e = 0; e < group->count; e++) {
        if (group->entries[e] == entry) return e + 1;
      }
    }
  }
  return 0;
}

void rgs_anchor(const rgs_boards *boards, const rgs_board *board, int group, int row, char text[48]) {
  snprintf(text, 48, "b%dh%dc%d", (int)(board - boards->list), group, row);
}
