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
    "  verdict          noise; slower or faster: latency and ratio both moved beyond noise; drift: the latency moved\n"
    "                   and the ratio did not, so the machine and not the kernel changed\n"
    "\n"
    "Cases of one name are compared where sizes, bytes, hardware, threads, timer and protocol are the same. What only "
    "one\n"
    "of the records has, or what differs so, gets a line that says so, and is counted at the end.\n"
    "\n"
    "Exit codes: 0 nothing is slower; 1 a case is slower, or has no time any more; 2 wrong use, a bad file, or "
    "records\n"
    "that have nothing to compare. A case that the new record lacks is said and changes no exit code.\n"
    "\n"
    "Example:\n"
    "  ropegrad compare records/before.json build/record.json\n";

enum { OP, CASE, OLD, NEW, CHANGE, RATIO, NOISE, VERDICT, NUM_COLUMNS, CELL_BYTES = 32 };

/* Noise that hides more leaves a verdict open. */
static const double MOST_HIDDEN = 0.10;

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

/* ---- lines ---- */

static void print_line(const rgt_column *columns, const char *op, const char *name, const char *text) {
  char room[PLAIN_BYTES];
  const char *cells[] = {op, plain(name, room), text};
  const rgt_column line[] = {columns[OP], columns[CASE], {"", 0, false}};
  rgt_table_row(line, 3, cells);
}

static void print_case(const rgt_column *columns, const rge_entry *before, const rge_entry *after, const rge_case *old,
                       rgt_changes *sum) {
  const char *op = before->op->name;
  const rge_case *new = rge_case_named(after, old->name);
  char name[PLAIN_BYTES];
  rgh_message why;
  if (!old->timed) {
    print_line(columns, op, old->name, "the old record did not time it");
    sum->unlike += new != NULL;
  } else if (new == NULL) {
    print_line(columns, op, old->name, "the new record lacks it");
    sum->lacking++;
  } else if (!new->timed) {
    rgh_fail(&why, "the new record has no time of it: %.200s", new->reason);
    print_line(columns, op, old->name, why.text);
    sum->untimed++;
  } else if (!rge_cases_comparable(before->op, old, new, &why)) {
    print_line(columns, op, old->name, why.text);
    sum->unlike++;
  } else {
    const rge_change change = rge_case_change(old, new);
    print_change(columns, op, plain(old->name, name), old->latency_us, new->latency_us, &change);
    sum->compared++;
    sum->verdict[change.verdict]++;
    sum->hidden += change.verdict == RGE_SAME && fabs(change.latency) > MOST_HIDDEN;
  }
}

static void print_entry(const rgt_column *columns, const rge_entry *before, const rge_entry *after, rgt_changes *sum) {
  for (int c = 0; c < before->num_cases; c++) print_case(columns, before, after, &before->cases[c], sum);
  for (int c = 0; c < after->num_cases; c++) {
    if (rge_case_named(before, after->cases[c].name) != NULL) continue;
    print_line(columns, after->op->name, after->cases[c].name, "the new record alone has it");
    sum->added++;
  }
  const rge_whole whole = rge_entry_change(before, after);
  if (whole.cases < 2) return;
  print_change(columns, before->op->name, before->in_place ? "= all, in place" : "= all (geomean)", whole.before_us,
               whole.after_us, &whole.change);
  if (strcmp(before->variant, after->variant) == 0) return;
  rgh_message variants;
  rgh_fail(&variants, "note: another variant: %.40s, then %.40s", before->variant, after->variant);
  print_line(columns, before->op->name, "", variants.text);
}

/* An operator and mode that only one of the records has, or that cannot be compared. */
static void print_left_out(const rgt_column *columns, const rge_entry *entry, const char *what, int cases) {
  rgh_message text;
  rgh_fail(&text, "%d case%s: %.400s", cases, cases == 1 ? "" : "s", what);
  print_line(columns, entry->op->name, entry->in_place ? "(in place)" : "(all)", text.text);
}

/* Of an operator's or a case's name, from `width` on. */
static int widest(const rge_record *record, bool names, size_t width) {
  for (int e = 0; e < record->num_entries; e++) {
    const rge_entry *entry = &record->entries[e];
    if (!names && strlen(entry->op->name) > width) width = strlen(entry->op->name);
    for (int c = 0; names && c < entry->num_cases; c++) {
      if (strlen(entry->cases[c].name) > width) width = strlen(entry->cases[c].name);
    }
  }
  return (int)width;
}

static void print_entries(const rgt_column *columns, const rge_record *before, const rge_record *after,
                          rgt_changes *sum) {
  rgh_message why;
  for (int e = 0; e < before->num_entries; e++) {
    const rge_entry *old = &before->entries[e], *new = rge_counterpart(after, old);
    if (new == NULL) {
      print_left_out(columns, old, "the new record lacks the operator", old->num_timed);
      sum->lacking += old->num_timed;
    } else if (!rge_comparable(old, new, &why)) {
      print_left_out(columns, old, why.text, old->num_timed);
      sum->unlike += old->num_timed;
    } else {
      print_entry(columns, old, new, sum);
    }
  }
  for (int e = 0; e < after->num_entries; e++) {
    const rge_entry *new = &after->entries[e];
    const rge_entry *old = rge_counterpart(before, new);
    if (old != NULL && rge_counterpart(after, old) == new) continue;
    print_left_out(columns, new,
                   old == NULL ? "the new record alone has the operator" : "the new record alone has them",
                   new->num_timed);
    sum->added += new->num_timed;
  }
}

/* A line about so many cases; nothing for none. */
static void count(int cases, const char *what) {
  if (cases > 0) printf("%d case%s %s\n", cases, cases == 1 ? "" : "s", what);
}

rgt_changes rgt_print_changes(const rge_record *before, const rge_record *after) {
  const rgt_column columns[NUM_COLUMNS] = {
      {"op", widest(after, false, (size_t)widest(before, false, 2)), false},
      {"case", widest(after, true, (size_t)widest(before, true, strlen("= all, in place"))), false},
      {"old us", 9, true},
      {"new us", 9, true},
      {"change", 8, true},
      {"ratio", 8, true},
      {"noise", 7, true},
      {"verdict", 0, false}};
  rgt_changes sum = {.another_suite = strcmp(before->suite_digest, after->suite_digest) != 0};
  rgt_table_head(columns, NUM_COLUMNS);
  print_entries(columns, before, after, &sum);
  printf("\n%d case%s compared: %d slower beyond noise, %d faster, %d as the machine drifted, %d within noise\n",
         sum.compared, sum.compared == 1 ? "" : "s", sum.verdict[RGE_SLOWER], sum.verdict[RGE_FASTER],
         sum.verdict[RGE_DRIFT], sum.verdict[RGE_SAME]);
  count(sum.untimed, "timed in the old record and without a time in the new one");
  count(sum.lacking, "of the old record not in the new one");
  count(sum.added, "in the new record alone");
  count(sum.unlike, "not compared, because the records measured different things");
  count(sum.hidden, "changed by more than 10 % and by less than the noise: the machine was busy");
  if (sum.another_suite)
    puts("note: the suites are not the same file: compared are cases of one name, sizes and bytes");
  return sum;
}

static void note_commits(const rge_record *before, const rge_record *after) {
  const rge_record *both[] = {before, after};
  for (int r = 0; r < 2; r++) {
    char commit[PLAIN_BYTES];
    rgh_message path;
    rgh_fail(&path, "%s", both[r]->path);
    printf("%s: %s, commit %.10s, %s\n", r == 0 ? "old" : "new", path.text,
           *both[r]->commit ? plain(both[r]->commit, commit) : "unknown", both[r]->utc);
  }
  putchar('\n');
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
    const rgt_changes sum = rgt_print_changes(&before.records[0], &after.records[0]);
    code = sum.verdict[RGE_SLOWER] + sum.untimed > 0 ? RGT_MISMATCH : RGT_FINE;
    if (sum.compared + sum.untimed == 0) {
      code = rgt_complain(RGT_WRONG_USE, "compare", "not comparable: no case of the two records measured the same");
    }
  }
  rge_index_free(&before);
  rge_index_free(&after);
  rgt_library_close(&library);
  return code;
}
