/* data.h: what the pages show, as JSON. The same values stand in the page and in the .json file beside it. */
#ifndef ROPEGRAD_TOOLS_SITE_DATA_H
#define ROPEGRAD_TOOLS_SITE_DATA_H

#include "tools/site/board.h"

/* A number; null where it is 0 or less, which stands for "not known" throughout. */
json_t *rgs_number(double value);
/* A string; null for NULL and "". */
json_t *rgs_text(const char *text);

/* Takes `value` over. */
void rgs_put(json_t *object, const char *key, json_t *value);

/* What an operator computes: title, formula, inputs, outputs, axes, options, promises. */
json_t *rgs_operator_json(const rg_operator *op);

/* [{"pass", "suite"}, ...]: the main suite of each direction. */
json_t *rgs_suites_json(void);

/* One entry: who, where, how fast, how far to be trusted. `rank` is 0 for an entry that is not ranked. */
json_t *rgs_entry_json(const rge_entry *entry, int rank);

/* One case of it. `peers` are those of other records of the same hardware: see rgs_peer_for. */
json_t *rgs_case_json(const rge_entry *entry, const rge_case *item, const rge_peer *peer);

/* "B=1 Hq=32 S=2048": the sizes that are known. The caller owns it; NULL: no memory. */
char *rgs_axes_text(const rg_operator *op, const int64_t *dim);

/* The fastest other implementation of the case that was timed on the same hardware and setting in any record; NULL: none. */
const rge_peer *rgs_peer_for(const rge_index *index, const rge_entry *entry, const rge_case *item);

/* [{"weight", "text"}, ...] */
json_t *rgs_problems_json(const rge_problems *problems);

#endif /* ROPEGRAD_TOOLS_SITE_DATA_H */
