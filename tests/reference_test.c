/* The backward references against finite differences of the forward references.
 *
 * With L = sum over the forward's outputs X of grad_X * X, the backward's output grad_Y must be dL/dY for every forward
 * input Y. All in float64, on small random problems, for every option of every operator; tensors of the two directions
 * are matched by name. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ropegrad/ropegrad_dev.h"

enum { MAX_ELEMENTS = 4096 };

typedef struct side {
  const rg_operator *op;
  char args[512];
  DLTensor view[RG_MAX_TENSORS];
  int64_t shape[RG_MAX_TENSORS][RG_MAX_RANK];
  double *data[RG_MAX_TENSORS]; /* int64_t where the operator wants an index */
} side;

static uint64_t random_state;

static uint64_t random_bits(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state;
}
static double random_value(void) { return (double)(random_bits() >> 11) * 0x1p-52 - 1.0; }

static bool is_index(const rg_tensor_spec *spec) {
  return spec->dtypes == RG_DTYPES_INT64 || spec->dtypes == RG_DTYPES_INDEX;
}

static int find_tensor(const rg_operator *op, const char *prefix, const char *name) {
  char full[64];
  snprintf(full, sizeof full, "%s%s", prefix, name);
  return rg_dev_find_tensor(op, full);
}

static int64_t elements_of(const side *s, int t) {
  int64_t elements = 1;
  for (int a = 0; a < s->op->tensors[t].rank; ++a) elements *= s->shape[t][a];
  return elements;
}

/* Indices that a forward pass accepts: distinct cache rows in no particular order, one of them skipped, or grid places.
 */
static void fill_index(side *s, int t, const int64_t *dim) {
  int64_t *index = (int64_t *)s->data[t];
  const rg_tensor_spec *spec = &s->op->tensors[t];
  const int64_t elements = elements_of(s, t);
  for (int64_t i = 0; i < elements; ++i) index[i] = (int64_t)(random_bits() % 5);
  if (spec->fill != RG_FILL_ARANGE) return;
  for (int64_t i = 0; i < elements; ++i) index[i] = (i * 3 + 1) % dim[2];
  if (elements > 1) index[elements / 2] = -1;
}

static void make_side(side *s, const rg_operator *op, const int64_t *dim, bool shared_tables) {
  memset(s, 0, sizeof *s);
  s->op = op;
  assert_true(op->args_size <= sizeof s->args);
  for (int t = 0; t < op->num_tensors; ++t) {
    const rg_tensor_spec *spec = &op->tensors[t];
    for (int a = 0; a < spec->rank; ++a) {
      const rg_axis axis = spec->axes[a];
      s->shape[t][a] = axis.dim == RG_AXIS_FIXED ? axis.divisor : dim[axis.dim] / axis.divisor;
      if (a == 0 && spec->broadcast_first && shared_tables) s->shape[t][a] = 1;
    }
    const int64_t elements = elements_of(s, t);
    assert_true(elements <= MAX_ELEMENTS);
    s->data[t] = calloc((size_t)elements + 1, sizeof(double));
    assert_non_null(s->data[t]);
    s->view[t] = (DLTensor){.data = s->data[t],
                            .device = {kDLCPU, 0},
                            .ndim = spec->rank,
                            .dtype = rg_dtype_to_dlpack(is_index(spec) ? RG_I64 : RG_F64),
                            .shape = s->shape[t]};
    rg_dev_set_tensor(op, s->args, t, &s->view[t]);
    if (spec->role != RG_INPUT) continue;
    if (is_index(spec)) {
      fill_index(s, t, dim);
    } else {
      for (int64_t i = 0; i < elements; ++i) s->data[t][i] = random_value();
    }
  }
}

static void free_side(side *s) {
  for (int t = 0; t < s->op->num_tensors; ++t) free(s->data[t]);
}

/* Sets the option of that name where the operator has it. */
static void set_param(side *s, const char *name, rg_param_value value) {
  const int p = rg_dev_find_param(s->op, name);
  if (p >= 0) rg_dev_set_param(s->op, s->args, p, value);
}

static void run(rg_context *context, side *s) {
  const rg_status status = rg_dev_run(context, s->op, "ref", s->args);
  if (status != RG_OK) fail_msg("%s", rg_last_error(context));
}

/* L for the forward's present inputs. */
static double loss(rg_context *context, side *forward, const side *backward) {
  run(context, forward);
  double sum = 0.0;
  for (int t = 0; t < forward->op->num_tensors; ++t) {
    if (forward->op->tensors[t].role != RG_OUTPUT) continue;
    const int grad = find_tensor(backward->op, "grad_", forward->op->tensors[t].name);
    if (grad < 0) continue; /* saved for the backward pass, not an output of the forward proper */
    for (int64_t i = 0; i < elements_of(forward, t); ++i) sum += backward->data[grad][i] * forward->data[t][i];
  }
  return sum;
}

/* The largest |finite difference - gradient| over all elements, relative to 1 + |gradient|. */
static double worst_difference(rg_context *context, side *forward, side *backward) {
  run(context, forward);
  for (int t = 0; t < backward->op->num_tensors; ++t) {
    if (backward->op->tensors[t].role != RG_INPUT) continue;
    const int same = find_tensor(forward->op, "", backward->op->tensors[t].name);
    if (same < 0) continue;
    assert_int_equal(elements_of(backward, t), elements_of(forward, same));
    memcpy(backward->data[t], forward->data[same], (size_t)elements_of(backward, t) * sizeof(double));
  }
  run(context, backward);
  const double h = 1e-5;
  double worst = 0.0;
  int checked = 0;
  for (int t = 0; t < forward->op->num_tensors; ++t) {
    if (forward->op->tensors[t].role != RG_INPUT) continue;
    const int grad = find_tensor(backward->op, "grad_", forward->op->tensors[t].name);
    if (grad < 0) continue;
    ++checked;
    assert_int_equal(elements_of(backward, grad), elements_of(forward, t));
    for (int64_t i = 0; i < elements_of(forward, t); ++i) {
      double *value = &forward->data[t][i];
      const double kept = *value;
      *value = kept + h;
      const double above = loss(context, forward, backward);
      *value = kept - h;
      const double below = loss(context, forward, backward);
      *value = kept;
      const double gradient = backward->data[grad][i];
      const double difference = fabs((above - below) / (2 * h) - gradient) / (1.0 + fabs(gradient));
      if (!(difference <= worst)) worst = difference;
    }
  }
  assert_true(checked > 0);
  return worst;
}

typedef struct options {
  int style, sin_pairing, rounding; /* choices, by number */
  int64_t rotary_dim;
  bool shared_tables;
} options;

static double difference_with(rg_op_id id, const int64_t *dim, const options *with, uint64_t seed) {
  random_state = seed;
  rg_context *context;
  assert_int_equal(rg_context_create(&context, (DLDevice){kDLCPU, 0}, NULL), RG_OK);
  side sides[RG_NUM_DIRECTIONS];
  for (int direction = 0; direction < RG_NUM_DIRECTIONS; ++direction) {
    side *s = &sides[direction];
    make_side(s, rg_dev_operator(id, (rg_direction)direction), dim, with->shared_tables);
    set_param(s, "style", (rg_param_value){.choice = with->style});
    set_param(s, "rotary_dim", (rg_param_value){.integer = with->rotary_dim});
    set_param(s, "sin_pairing", (rg_param_value){.choice = with->sin_pairing});
    set_param(s, "rounding", (rg_param_value){.choice = with->rounding});
    set_param(s, "attention_scaling", (rg_param_value){.number = 0.75});
  }
  const double worst = worst_difference(context, &sides[RG_FORWARD], &sides[RG_BACKWARD]);
  for (int direction = 0; direction < RG_NUM_DIRECTIONS; ++direction) free_side(&sides[direction]);
  rg_context_destroy(context);
  return worst;
}

static bool has_param(const rg_operator *op, const char *name) { return rg_dev_find_param(op, name) >= 0; }

static bool has_tables(const rg_operator *op) {
  for (int t = 0; t < op->num_tensors; ++t) {
    if (op->tensors[t].broadcast_first) return true;
  }
  return false;
}

/* Sizes that differ from one another, so that a mixed-up axis shows; every size with a minimum multiple gets two. */
static void choose_dims(const rg_operator *op, int64_t *dim, int64_t rotary_dim) {
  static const int64_t small[] = {2, 3, 5, 4, 2, 3};
  for (int d = 0; d < op->num_dims; ++d) {
    dim[d] =
        op->dims[d].multiple_of > 1 ? 2 * op->dims[d].multiple_of + (op->dims[d].multiple_of == 2 ? 4 : 0) : small[d];
  }
  for (int d = 0; d < op->num_dims; ++d) {
    if (op->dims[d].kind == RG_DIM_DERIVED) dim[d] = rotary_dim > 0 ? rotary_dim : dim[d - 1];
  }
}

static void test_backward_is_derivative_of_forward(void **state) {
  (void)state;
  int problems = 0;
  for (int id = 0; id < RG_NUM_OPS; ++id) {
    const rg_operator *op = rg_dev_operator((rg_op_id)id, RG_BACKWARD);
    const int styles = has_param(op, "style") ? 2 : 1, dims_choices = has_param(op, "rotary_dim") ? 2 : 1;
    const int roundings = has_param(op, "rounding") ? 2 : 1, tables = has_tables(op) ? 2 : 1;
    for (int choice = 0; choice < styles * dims_choices * roundings * tables; ++choice) {
      const options with = {.style = choice % styles,
                            .rotary_dim = choice / styles % dims_choices * 4,
                            .rounding = choice / styles / dims_choices % roundings,
                            .shared_tables = choice / styles / dims_choices / roundings == 1};
      int64_t dim[RG_MAX_DIMS];
      choose_dims(op, dim, with.rotary_dim);
      const double worst = difference_with((rg_op_id)id, dim, &with, 1234567 + (uint64_t)choice);
      if (!(worst < 1e-7)) {
        fail_msg("%s: style %d, rotary_dim %d, rounding %d, shared tables %d: off by %g", op->name, (int)with.style,
                 (int)with.rotary_dim, (int)with.rounding, with.shared_tables, worst);
      }
      ++problems;
    }
  }
  assert_true(problems >= RG_NUM_OPS);
}

/* The pairing of the benchmark's problem statement is the derivative only where the two halves of sin agree; here they
 * are drawn independently, so it must not pass. */
static void test_same_half_is_no_derivative(void **state) {
  (void)state;
  int tried = 0;
  for (int id = 0; id < RG_NUM_OPS; ++id) {
    const rg_operator *op = rg_dev_operator((rg_op_id)id, RG_BACKWARD);
    if (!has_param(op, "sin_pairing")) continue;
    int64_t dim[RG_MAX_DIMS];
    choose_dims(op, dim, 0);
    const options with = {.sin_pairing = 1};
    assert_true(difference_with((rg_op_id)id, dim, &with, 99) > 1e-2);
    ++tried;
  }
  if (tried == 0) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_backward_is_derivative_of_forward),
      cmocka_unit_test(test_same_half_is_no_derivative),
  };
  return cmocka_run_group_tests_name("reference", tests, NULL, NULL);
}
