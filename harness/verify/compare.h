/* compare.h: holds an output, element by element, against the float64 reference and the operator's contract. */
#ifndef ROPEGRAD_HARNESS_VERIFY_COMPARE_H
#define ROPEGRAD_HARNESS_VERIFY_COMPARE_H

#include "harness/base/message.h"
#include "ropegrad/ropegrad_dev.h"

typedef struct rgh_comparison {
  int64_t compared;           /* elements looked at */
  int64_t out_of_contract;    /* elements that used more than their allowance */
  double allowance_used;      /* of the worst element: 1 is the contract; INFINITY: a non-finite or exact one differs */
  int tensor;                 /* of the worst element; -1 when nothing was compared */
  int64_t index[RG_MAX_RANK]; /* of the worst element */
  double got, expected;       /* its values */
  bool unwritten;             /* it still holds the poison */
} rgh_comparison;

/* Nothing compared. */
void rgh_comparison_init(rgh_comparison *comparison);

/* Compares tensor number `tensor`, held in `actual`, with its reference (row-major, the same shape) and adds the result
 * to *comparison. `first` is added to the index that is reported: where a slice starts in the whole tensor. */
void rgh_compare(const rg_tensor *actual, const rg_reference_output *reference, int tensor,
                 const int64_t first[RG_MAX_RANK], rgh_comparison *comparison);

/* Adds what another slice found. Of equally bad elements the lower tensor, then the lower index stays, so that the
 * result does not depend on the order of the slices. */
void rgh_comparison_merge(rgh_comparison *into, const rgh_comparison *from);

/* "[0,3,17]"; "[]" for rank 0. `text` holds at least RGH_INDEX_TEXT bytes. */
enum { RGH_INDEX_TEXT = 96 };
void rgh_index_text(const int64_t *index, int rank, char *text);

#endif /* ROPEGRAD_HARNESS_VERIFY_COMPARE_H */
