/* passes.h: the forward and the backward pass of each row of ops.def, side by side. Each is an operator of its own, with
 * a suite and records of its own. */
#ifndef ROPEGRAD_TOOLS_SITE_PASSES_H
#define ROPEGRAD_TOOLS_SITE_PASSES_H

#include "ropegrad/ropegrad_dev.h"

/* The order of every page: row after row, the backward pass first. 0 <= place < RG_NUM_OPERATORS. */
const rg_operator *rgs_operator_at(int place);

/* The pass of op's row that has the direction. */
const rg_operator *rgs_pass_of(const rg_operator *op, rg_direction direction);
const rg_operator *rgs_other_pass(const rg_operator *op);

const char *rgs_direction_name(rg_direction direction); /* "backward", "forward" */

/* The suite that ranks on the first page: the sizes of the public leaderboards. */
const char *rgs_main_suite(rg_direction direction);
bool rgs_is_main_suite(const char *suite, const rg_operator *op);

#endif /* ROPEGRAD_TOOLS_SITE_PASSES_H */
