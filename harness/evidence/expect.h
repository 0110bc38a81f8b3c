/* expect.h: what a case states against what its samples give. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_EXPECT_H
#define ROPEGRAD_HARNESS_EVIDENCE_EXPECT_H

#include "harness/evidence/samples.h"

/* Adds a problem to the entry, with the names of the operator and the case in front. */
void rge_case_problem(rge_entry *entry, const rge_case *item, rge_weight weight, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* What the number source[key] should be; `whose` is "" or, as "of the floor ", what else than the case states it. A key
 * that is not there has been reported as missing already. */
void rge_expect(rge_entry *entry, const rge_case *item, const json_t *source, const char *whose, const char *key,
                double recomputed);

/* The same of source["medians_us"]. */
void rge_expect_medians(rge_entry *entry, const rge_case *item, const json_t *source, const char *whose,
                        const rge_series *series);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_EXPECT_H */
