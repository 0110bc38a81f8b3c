/* fill.h: the input generator. Counter-based (Philox), so that element i of a tensor depends on the seed, the operator,
 * the case's name, the tensor's name and i alone: not on threads, nor on the dtype or the other tensors. */
#ifndef ROPEGRAD_HARNESS_CASES_FILL_H
#define ROPEGRAD_HARNESS_CASES_FILL_H

#include "harness/cases/case.h"

/* The names that suites use; RGH_NUM_FILLS for any other. */
const char *rgh_fill_name(rgh_fill_kind kind);
rgh_fill_kind rgh_fill_from_name(const char *name);

/* A fill of `kind` with every number at its default. */
rgh_fill rgh_fill_default(rgh_fill_kind kind);

/* Sets a number of a fill by the name that suites use ("low", "base", ...; `interleaved` is 0 or 1). False when fills
 * of this kind take no such number. */
bool rgh_fill_set(rgh_fill *fill, const char *key, double number);

/* Gives an input that has no fill of its own the operator's, and checks that the fill and its numbers suit the tensor's
 * dtype and shape. For rgh_case_finish. */
bool rgh_fill_settle(rgh_case *item, int tensor, rgh_message *why);

/* Whether the elements depend on their number alone and not on their place in the shape, so that a run of them may be
 * read from any start and still be input of the same kind. */
bool rgh_fill_is_flat(const rgh_fill *fill);

/* Writes the elements of `target` (any strides) in row-major order: elements 0, 1, ... of the sequence. The fill is
 * that of the case's `tensor`; for a flat fill `target` may have any shape. Along an axis of stride 0 the one element
 * that is there gets the value of index 0. Uses at most `threads` threads; 0: as many as OpenMP would. */
void rgh_fill_tensor(const rgh_case *item, int tensor, uint64_t seed, const rg_tensor *target, int threads);

#endif /* ROPEGRAD_HARNESS_CASES_FILL_H */
