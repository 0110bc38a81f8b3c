#include "tools/site/passes.h"

#include <string.h>

const rg_operator *rgs_operator_at(int place) {
  return rg_dev_operator((rg_op_id)(place / RG_NUM_DIRECTIONS), (rg_direction)(place % RG_NUM_DIRECTIONS));
}

const rg_operator *rgs_pass_of(const rg_operator *op, rg_direction direction) {
  return rg_dev_operator((rg_op_id)(rg_dev_find_operator(op->name) % RG_NUM_OPS), direction);
}

const rg_operator *rgs_other_pass(const rg_operator *op) {
  return rgs_pass_of(op, op->direction == RG_BACKWARD ? RG_FORWARD : RG_BACKWARD);
}

const char *rgs_direction_name(rg_direction direction) { return direction == RG_BACKWARD ? "backward" : "forward"; }

const char *rgs_main_suite(rg_direction direction) {
  return direction == RG_BACKWARD ? "sol-execbench-rope" : "sol-execbench-rope-forward";
}

bool rgs_is_main_suite(const char *suite, const rg_operator *op) {
  return strcmp(suite, rgs_main_suite(op->direction)) == 0;
}
