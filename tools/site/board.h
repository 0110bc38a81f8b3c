/* board.h: which entries are compared with which, and who is first. */
#ifndef ROPEGRAD_TOOLS_SITE_BOARD_H
#define ROPEGRAD_TOOLS_SITE_BOARD_H

#include "harness/evidence/index.h"

/* The entries of one hardware in one setting (threads, timer, protocol), the fastest first. */
typedef struct rgs_group {
  const char *hardware, *setting;
  const rge_entry **entries;
  int count;
} rgs_group;

/* One operator in one mode on one suite: what may be ranked together. */
typedef struct rgs_board {
  const rg_operator *op;
  bool in_place;
  const char *suite;
  rgs_group *groups; /* the hardware with the fastest entry first */
  int num_groups;
  const rge_entry **ranked; /* all of them, group after group */
  int num_ranked;
} rgs_board;

typedef struct rgs_boards {
  rgs_board *list; /* by operator, then the main suite before others, then out of place before in place */
  int count;
} rgs_boards;

/* False: no memory. */
bool rgs_boards_make(const rge_index *index, rgs_boards *boards);
void rgs_boards_free(rgs_boards *boards);

/* The place of an entry in its group, from 1; 0: it is not ranked. */
int rgs_boards_rank(const rgs_boards *boards, const rge_entry *entry);

/* Where the case has its row on the operator's page: "b0h1c5". */
void rgs_anchor(const rgs_boards *boards, const rgs_board *board, int group, int row, char text[48]);

/* How many groups of a board have their cases on the operator's page; the others have them on their records' pages. */
enum { RGS_SHOWN_GROUPS = 6 };

#endif /* ROPEGRAD_TOOLS_SITE_BOARD_H */
