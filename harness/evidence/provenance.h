/* provenance.h: where a record comes from, and whether someone else could make it again. */
#ifndef ROPEGRAD_HARNESS_EVIDENCE_PROVENANCE_H
#define ROPEGRAD_HARNESS_EVIDENCE_PROVENANCE_H

#include "harness/evidence/record.h"

/* The GPU's name for a CUDA device, else the CPU's. The caller owns it; NULL: no memory. */
char *rge_hardware_name(const rge_record *record, const char *device);

/* What must be alike, besides the hardware, in two times that are compared: "2 threads of 16 CPUs, monotonic clock,
 * faithful", "CUPTI, strict, warm caches". The caller owns it; NULL: no memory. */
char *rge_setting_text(const rge_record *record, const char *device, int64_t threads);

/* What else a GPU's time depends on, the versions of driver and CUDA; NULL on a CPU. The caller owns it. */
char *rge_setup_text(const rge_entry *entry);

/* Whether two records come from one machine, as far as they tell: the same processor, number of processors, memory and
 * GPU. Two machines that were bought together look the same here, so that "replicated" is never given by mistake. */
bool rge_same_machine(const rge_record *a, const rge_record *b);

/* Adds what is missing for someone who wants to run the record again: a clean commit, the command, the device, the
 * digests. Digests that this build or this checkout can recompute are held against what is stated. */
void rge_check_provenance(rge_record *record, const rgh_suite *suite);

#endif /* ROPEGRAD_HARNESS_EVIDENCE_PROVENANCE_H */
