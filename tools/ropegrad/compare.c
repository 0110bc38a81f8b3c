#include <math.h>
#include <stdio.h>
#include <string.h>

#include "harness/evidence/change.h"
#include "harness/evidence/load.h"
#include "tools/ropegrad/evidence.h"
#include "tools/ropegrad/table.h"

static const char help[] =
    "ropegrad compare OLD.json NEW.json: what became slower or faster between two records, beyond noise\n"
    "\n"
    "Columns:\n"
    "  old us, new us   latency, recomputed from the samples of each record\n"
    "  change           of the latency\n"
    "  ratio            change of latency / floor: the floor is a plain copy timed in the same run\n"
    "  noise            what the samples of both records leave open: the larger spread of their medians, three\n"
    "                   standard errors (robust), or 2 %, whichever is most\n"
    "  verdict          noise; slower or faster: latency and ratio both moved beyond noise; drift: the latency moved "
    "and\n"
    "                   the ratio did not, so the machine and not the kernel changed\n"
    "\n"
    "Example:\n"
    "  ropegrad compare records/before.json build/record.json\n"
    "\n"
    "Exit codes: 0 nothing is slower; 1 a case is slower; 2 wrong use, a bad file, or records that cannot be "
    "compared.\n";

enum { OP, CASE, OLD, NEW, CHANGE, RATIO, NOISE, VERDICT, NUM_COLUMNS, CELL_BYTES = 32 };

static void percent(double share, char cell[CELL_BYTES]) {
  if (isnan(share)) {
    snprintf(cell, CELL_BYTES, "-");
  } else {
    snprintf(cell, CELL_BYTES, "%+.1f %%", 100 * share);
  }
}

static void print_change(const rgt_column *columns, const char *op, const char *name, double before, double after,
                         const rge_change *change) {
  char cell[NUM_COLUMNS][CELL_BYTES];
  const char *cells[NUM_COLUMNS] = {op, name};
  snprintf(cell[OLD], CELL_BYTES, "%.2f", before);
  snprintf(cell[NEW], CELL_BYTES, "%.2f", after);
  percent(change->latency, cell[CHANGE]);
  percent(change->ratio, cell[RATIO]);
  snprintf(cell[NOISE], CELL_BYTES, "%.1f %%", 100 * change->noise);
  snprintf(cell[VERDICT], CELL_BYTES, "%s", rge_verdict_name(change->verdict));
  for (int c = OLD; c < NUM_COLUMNS; c++) cells[c] = cell[c];
  rgt_table_row(columns, NUM_COLUMNS, cells);
}

/* A record may hold any text. */
enum { PLAIN_BYTES = 128 };
static const char *plain(const char *text, char room[PLAIN_BYTES]) {
  snprintf(room, PLAIN_BYTES, "%s", text);
  rgh_keep_on_one_line(room);
  return room;
}

/* Returns how many cases are slower. */
static int print_entry(const rgt_column *columns, const rge_entry *before, const rge_entry *after) {
  int slower = 0, matched;
  char name[PLAIN_BYTES];
  const char *op = before->op->name;
  for (int c = 0; c < before->num_cases; c++) {
    const rge_case *old = &before->cases[c], *new = old->timed ? rge_timed_case(after, old->name) : NULL;
    if (new == NULL) {
      printf("%-*s  %-*s  %s\n", columns[OP].width, op, columns[CASE].width, plain(old->name, name),
             old->timed ? "only the old record has it" : "the old record did not time it");
      continue;
    }
    const rge_change change = rge_case_change(old, new);
    print_change(columns, op, plain(old->name, name), old->latency_us, new->latency_us, &change);
    slower += change.verdict == RGE_SLOWER;
  }
  const rge_change whole = rge_entry_change(before, after, &matched);
  if (matched > 1) {
    print_change(columns, op, before->in_place ? "= all, in place" : "= all (geomean)", before->latency_us,
                 after->latency_us, &whole);
  }
  return slower;
}

static int widest(const rge_record *record, bool names) {
  size_t width = strlen("= all, in place");
  for (int e = 0; e < record->num_entries; e++) {
    const rge_entry *entry = &record->entries[e];
    if (!names && strlen(entry->op->name) > width) width = strlen(entry->op->name);
    for (int c = 0; names && c < entry->num_cases; c++) {
      if (strlen(entry->cases[c].name) > width) width = strlen(entry->cases[c].name);
    }
  }
  return (int)width;
}

int rgt_print_changes(const rge_record *before, const rge_record *after, const char *command) {
  const rgt_column columns[NUM_COLUMNS] = {{"op", widest(before, false), false},
                                           {"case", widest(before, true), false},
                                           {"old us", 9, true},
                                           {"new us", 9, true},
                                           {"change", 8, true},
                                           {"ratio", 8, true},
                                           {"noise", 7, true},
                                           {"verdict", 0, false}};
  rgh_message why = {.text = "they have no operator in common"};
  int compared = 0, slower = 0;
  for (int e = 0; e < before->num_entries; e++) {
    const rge_entry *old = &before->entries[e], *new = rge_counterpart(after, old);
    if (new == NULL || !rge_comparable(old, new, &why)) continue;
    if (compared++ == 0) rgt_table_head(columns, NUM_COLUMNS);
    slower += print_entry(columns, old, new);
  }
  if (compared == 0) return rgt_complain(RGT_WRONG_USE, command, "not comparable: %s", why.text);
  printf("\n%d case%s slower beyond noise\n", slower, slower == 1 ? " is" : "s are");
  return slower > 0 ? RGT_MISMATCH : RGT_FINE;
}

static void note_commits(const rge_record *before, const rge_record *after) {
  char old[PLAIN_BYTES], new[PLAIN_BYTES];
  printf("old: %s, commit %.10s, %s\nnew: %s, commit %.10s, %s\n\n", before->path,
         *before->commit ? plain(before->commit, old) : "unknown", before->utc, after->path,
         *after->commit ? plain(after->commit, new) : "unknown", after->utc);
}

int rgt_compare(int argc, char **argv, const char *const *full_argv) {
  (void)full_argv;
  const rgt_form form = {
      .command = "compare", .help = help, .least_operands = 2, .most_operands = 2, .operands = "OLD.json and NEW.json"};
  rgt_arguments arguments;
  rgt_library library;
  int code;
  if (!rgt_arguments_parse(&form, argc, argv, &arguments, &code)) return code;
  if (!rgt_library_open(&library, "compare", &code)) return code;
  rge_index before = {0}, after = {0};
  rgh_message why;
  if (!rge_load_one(arguments.operand[0], library.schemas, &library.suites, &before, &why) ||
      !rge_load_one(arguments.operand[1], library.schemas, &library.suites, &after, &why)) {
    code = rgt_complain(RGT_WRONG_USE, "compare", "%s", why.text);
  } else {
    note_commits(&before.records[0], &after.records[0]);
    code = rgt_print_changes(&before.records[0], &after.records[0], "compare");
  }
  rge_index_free(&before);
  rge_index_free(&after);
  rgt_library_close(&library);
  return code;
}
