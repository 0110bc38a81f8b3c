/* rank.h: the tier of every entry, from its own problems and from what other runs say. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_RANK_H
#define ROPEGRAD_HARNESS_EVIDENCE_RANK_H

#include "harness/evidence/index.h"

void rge_rank(rge_index *index);

/* How far the ratios of two entries may lie apart to be the same: what their repetitions show, from 3 % to 10 %. */
double rge_noise_between(const rge_entry *a, const rge_entry *b);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_RANK_H */
