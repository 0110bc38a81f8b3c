/* solution.h: an operator as a solution of its SOL-ExecBench problem (docs/sol-execbench.md). */
#ifndef ROPEGRAD_TOOLS_SOLUTION_H
#define ROPEGRAD_TOOLS_SOLUTION_H

#include <jansson.h>

#include "harness/base/message.h"
#include "ropegrad/ropegrad_dev.h"

/* solution.json of the operator, which has a benchmark. `definition` and `author` as in the format. NULL: no memory, or
 * a source file that this build does not embed, which the reason names. */
json_t *rgt_solution(const rg_operator *op, const char *definition, const char *author, rgh_message *why);

#endif /* ROPEGRAD_TOOLS_SOLUTION_H */
