/* verify.h: runs a case and says whether the operator kept its whole contract: accuracy of every element, no byte
 * written outside the outputs, inputs left alone, the same bits in every run. */
#ifndef ROPEGRAD_HARNESS_VERIFY_VERIFY_H
#define ROPEGRAD_HARNESS_VERIFY_VERIFY_H

#include "harness/buffers/buffers.h"
#include "harness/verify/compare.h"

typedef enum rgh_status { RGH_PASS, RGH_FAIL, RGH_SKIP } rgh_status;
const char *rgh_status_name(rgh_status status); /* "pass", "fail", "skip" */

typedef struct rgh_verify_options {
  const char *variant; /* NULL: the context's choice */
  int repeats;         /* runs whose outputs must be equal bit for bit; less than 1 counts as 1 */
  uint64_t seed;
  int threads;        /* that the harness uses for filling and for the reference; 0: as many as OpenMP would */
  rgh_memory *memory; /* of the context's device; NULL: the host's */
} rgh_verify_options;

typedef struct rgh_verdict {
  rgh_status status;
  rg_status call;       /* what the call returned */
  rgh_comparison worst; /* over all outputs */
  rgh_message reason;   /* fail and skip: why, on one line; "" on pass */
} rgh_verdict;

/* Bytes of the device's memory that verifying the case takes. */
size_t rgh_verify_device_bytes(const rgh_case *item);

/* Allocates the case's tensors, runs it and judges it. Skipped, with the reason, when this build or machine cannot run
 * the variant or there is no memory for the tensors. */
void rgh_verify_case(rg_context *context, const rgh_case *item, const rgh_verify_options *options,
                     rgh_verdict *verdict);

/* Runs the case's call once and waits for it: RG_OK, or why not, be it told by the call or, of what only the device can
 * see, by rg_context_check. */
rg_status rgh_verify_run(rg_context *context, const rgh_buffers *buffers, const char *variant);

/* Judges outputs that a call has already left in `buffers`, and that have been fetched: guards, gaps and every element
 * (not purity, which takes a digest from before the call). The call must have been prepared by rgh_buffers_prepare.
 * False: *why says what broke. / */
bool rgh_verify_outputs(rg_context *context, const rgh_buffers *buffers, rgh_comparison *worst, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_VERIFY_VERIFY_H */
