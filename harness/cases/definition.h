/* definition.h: definition.json of a SOL-ExecBench problem, as docs/sol-execbench.md describes it, read as far as a call of
 * an operator needs it. */
#ifndef ROPEGRAD_HARNESS_CASES_DEFINITION_H
#define ROPEGRAD_HARNESS_CASES_DEFINITION_H

#include <jansson.h>

#include "harness/cases/expression.h"
#include "ropegrad/ropegrad_dev.h"

enum { RGH_MAX_AXES = 64 };

typedef struct rgh_definition {
  json_t *root; /* owns every text */
  const char *name;
  const rg_operator *op; /* whose benchmark this is: the outputs tell */
  int num_axes;
  rgh_named_size const_axes[RGH_MAX_AXES]; /* all axes in their order; the value is -1 but for the const ones */
} rgh_definition;

/* Takes the text of a definition. Every tensor is one of the operator's, none is missing, and each has as many axes as the
 * operator's and a known dtype. On failure *definition is empty, and the reason begins with `file` and names the key. */
bool rgh_definition_parse(const char *text, size_t bytes, const char *file, rgh_definition *definition,
                          rgh_message *why);
void rgh_definition_free(rgh_definition *definition);

/* What the definition says of a tensor or an option; NULL: nothing. */
json_t *rgh_definition_argument(const rgh_definition *definition, const char *name);

/* What a shape may hold: the name of an axis, which has a place in the list, or else -1; or a size itself, in digits. */
int rgh_definition_axis(const rgh_definition *definition, const char *name);
bool rgh_definition_is_literal(const char *text);

/* ---- definition_sizes.c ---- */

/* Sets the sizes of all axes; `given` is an object with those of the var axes, and no other. */
bool rgh_definition_sizes(const rgh_definition *definition, json_t *given, rgh_named_size sizes[RGH_MAX_AXES],
                          rgh_message *why);

/* The operator's dims by the shapes of its tensors, as an object of a case (suite.h); dims that only inputs are made by
 * come from the axes of their names. NULL: two tensors disagree, or no memory. */
json_t *rgh_definition_dims(const rgh_definition *definition, const rgh_named_size sizes[RGH_MAX_AXES],
                            rgh_message *why);

/* The size of the operator's dim by the first tensor that has it; -1: none has. */
int64_t rgh_definition_dim(const rgh_definition *definition, const rgh_named_size sizes[RGH_MAX_AXES], int dim);

#endif /* ROPEGRAD_HARNESS_CASES_DEFINITION_H */
