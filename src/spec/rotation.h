/* What the operators that rotate pairs by tables of cos and sin have in common: checks of their options and tables. */
#ifndef ROPEGRAD_SRC_SPEC_ROTATION_H
#define ROPEGRAD_SRC_SPEC_ROTATION_H

#include "src/spec/operator.h"

extern const char *const rg_style_names[]; /* of rg_style's values, then NULL */

/* Sets dim `rotated` from the option rotary_dim: 0 stands for all of dim `head_dim`. RG_ERR_RANGE: it is odd, negative
 * or larger. */
rg_status rg_resolve_rotary_dim(rg_problem *problem, int head_dim, int rotated, int64_t rotary_dim, rg_error *error);

/* A gradient has its table's batches: one, all, or, for one table stretched over all batches by stride 0, whichever the
 * caller asks for. RG_ERR_SHAPE: it has not. Sizes that are neither 1 nor dim `batch` are left to the check of shapes. */
rg_status rg_check_table_gradient(const rg_problem *problem, int batch, int table, int gradient, rg_error *error);

#endif
