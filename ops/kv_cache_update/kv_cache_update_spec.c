#include "ops/kv_cache_update/kv_cache_update_spec.h"

#include <inttypes.h>

#include "src/spec/rotation.h"

static const rg_dim_spec dims[NUM_DIMS] = {
    [DIM_B] = {.name = "batch_size", .symbol = "B"},
    [DIM_N] = {.name = "new_seq_len", .symbol = "N"},
    [DIM_M] = {.name = "max_seq_len", .symbol = "M"},
    [DIM_H] = {.name = "num_kv_heads", .symbol = "Hk"},
    [DIM_D] = {.name = "head_dim", .symbol = "D", .multiple_of = 2},
    [DIM_R] = {.name = "rotary_dim", .symbol = "R", .kind = RG_DIM_DERIVED},
};

static const char *const rounding_names[] = {
    [RG_ROUNDING_ONCE] = "once", [RG_ROUNDING_EAGER] = "eager", [RG_ROUNDING_EAGER + 1] = NULL};

enum { GROUP_KEY, GROUP_VALUE, GROUP_TABLE, GROUP_POSITION };
#define KEY .dtype_group = GROUP_KEY, .dtypes = RG_DTYPES_PAYLOAD, .suite_dtype = RG_BF16
#define VALUE .dtype_group = GROUP_VALUE, .dtypes = RG_DTYPES_PAYLOAD, .suite_dtype = RG_BF16
#define CACHE .rank = 4, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_H), RG_AXIS(DIM_M), RG_AXIS(DIM_D)}
#define STATES .rank = 4, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_H), RG_AXIS(DIM_N), RG_AXIS(DIM_D)}
#define TABLE                                                                                   \
  .rank = 3, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_N), RG_AXIS(DIM_R)}, .broadcast_first = true, \
  .dtype_group = GROUP_TABLE, .dtypes = RG_DTYPES_TABLE, .suite_dtype = RG_BF16
#define POSITIONS                                                                                \
  .rank = 1, .axes = {RG_AXIS(DIM_N)}, .dtype_group = GROUP_POSITION, .dtypes = RG_DTYPES_INDEX, \
  .suite_dtype = RG_I64, .fill = RG_FILL_ARANGE

/* ---- backward ---- */

#define ARG(field) .name = #field, .offset = offsetof(rg_kv_cache_update_backward_args, field)

enum { PARAM_IN_PLACE, PARAM_ROUNDING, PARAM_STYLE, PARAM_ROTARY_DIM, NUM_BACKWARD_PARAMS };

static const rg_param_spec backward_params[NUM_BACKWARD_PARAMS] = {
    [PARAM_IN_PLACE] = {ARG(in_place), .kind = RG_PARAM_BOOL},
    [PARAM_ROUNDING] = {ARG(rounding), .kind = RG_PARAM_ENUM, .values = rounding_names},
    [PARAM_STYLE] = {ARG(style), .kind = RG_PARAM_ENUM, .values = rg_style_names},
    [PARAM_ROTARY_DIM] = {ARG(rotary_dim), .kind = RG_PARAM_INT64},
};

enum {
  TABLE_OUTPUTS = RG_BIT(GRAD_COS) | RG_BIT(GRAD_SIN),
  /* What is made of the named rows of each cache. */
  KEY_ROW_OUTPUTS = TABLE_OUTPUTS | RG_BIT(GRAD_KEY_STATES),
  VALUE_ROW_OUTPUTS = RG_BIT(GRAD_VALUE_STATES),
  KEY_OUTPUTS = KEY_ROW_OUTPUTS | RG_BIT(GRAD_KEY_CACHE_INPUT),
  VALUE_OUTPUTS = VALUE_ROW_OUTPUTS | RG_BIT(GRAD_VALUE_CACHE_INPUT)
};

static const rg_tensor_spec backward_tensors[NUM_BACKWARD_TENSORS] = {
    [GRAD_KEY_CACHE] = {ARG(grad_key_cache), CACHE, KEY, .role = RG_INPUT, .needed_for = KEY_OUTPUTS},
    [GRAD_VALUE_CACHE] = {ARG(grad_value_cache), CACHE, VALUE, .role = RG_INPUT, .needed_for = VALUE_OUTPUTS},
    [KEY_STATES] = {ARG(key_states), STATES, KEY, .role = RG_INPUT, .needed_for = TABLE_OUTPUTS},
    [COS] = {ARG(cos), TABLE, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_KEY_STATES)},
    [SIN] = {ARG(sin), TABLE, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_KEY_STATES)},
    [CACHE_POSITION] = {ARG(cache_position), POSITIONS, .role = RG_INPUT, .needed_for = KEY_OUTPUTS | VALUE_OUTPUTS},
    [GRAD_KEY_STATES] = {ARG(grad_key_states), STATES, KEY, .role = RG_OUTPUT},
    [GRAD_VALUE_STATES] = {ARG(grad_value_states), STATES, VALUE, .role = RG_OUTPUT},
    [GRAD_COS] = {ARG(grad_cos), TABLE, .role = RG_OUTPUT},
    [GRAD_SIN] = {ARG(grad_sin), TABLE, .role = RG_OUTPUT},
    [GRAD_KEY_CACHE_INPUT] = {ARG(grad_key_cache_input), CACHE, KEY, .role = RG_OUTPUT, .in_place = true,
                              .in_place_of = GRAD_KEY_CACHE},
    [GRAD_VALUE_CACHE_INPUT] = {ARG(grad_value_cache_input), CACHE, VALUE, .role = RG_OUTPUT, .in_place = true,
                                .in_place_of = GRAD_VALUE_CACHE},
};
#undef ARG

static rg_status backward_resolve(rg_problem *p, rg_error *error) {
  const rg_kv_cache_update_backward_args *args = p->args;
  rg_status status = rg_resolve_rotary_dim(p, DIM_D, DIM_R, args->rotary_dim, error);
  if (status == RG_OK) status = rg_check_table_gradient(p, DIM_B, COS, GRAD_COS, error);
  if (status == RG_OK) status = rg_check_table_gradient(p, DIM_B, SIN, GRAD_SIN, error);
  return status;
}

static rg_status check_positions(const rg_problem *p, int positions, rg_error *error) {
  for (int64_t n = 0; n < p->dim[DIM_N]; ++n) {
    const int64_t position = rg_kv_cache_update_position(&p->tensor[positions], n);
    if (position < p->dim[DIM_M]) continue;
    return rg_fail(error, RG_ERR_RANGE,
                   "%s: cache_position: entry %" PRId64 " is %" PRId64 ", expected less than max_seq_len = %" PRId64,
                   p->op->function, n, position, p->dim[DIM_M]);
  }
  return RG_OK;
}

static rg_status backward_check_values(const rg_problem *p, rg_error *error) {
  return check_positions(p, CACHE_POSITION, error);
}

static uint32_t wanted_outputs(const rg_problem *p) {
  uint32_t wanted = 0;
  for (int t = GRAD_KEY_STATES; t < NUM_BACKWARD_TENSORS; ++t) wanted |= rg_given(p, t) ? RG_BIT(t) : 0;
  return wanted;
}

/* Bytes of `rows` of a cache's M rows. */
static int64_t row_bytes(const rg_tensor *cache, int64_t rows) {
  rg_tensor part = *cache;
  part.shape[2] = rows;
  return rg_tensor_distinct_bytes(&part);
}

/* Adds what one cache and its own gradient take. */
static void add_cache_cost(const rg_problem *p, int cache, int cache_input, bool rows_wanted, int64_t named,
                           rg_cost *cost) {
  const bool in_place = ((const rg_kv_cache_update_backward_args *)p->args)->in_place;
  const bool passes = rg_given(p, cache_input) && !in_place;
  const int64_t M = p->dim[DIM_M];
  if (rg_given(p, cache)) {
    cost->read_bytes += row_bytes(&p->tensor[cache], (rows_wanted ? named : 0) + (passes ? M - named : 0));
  }
  if (rg_given(p, cache_input)) cost->write_bytes += row_bytes(&p->tensor[cache_input], in_place ? named : M);
}

/* Counts as if every entry of cache_position named a row of its own: the entries cannot be read on every device. */
static void backward_cost(const rg_problem *p, rg_cost *cost) {
  const uint32_t wanted = wanted_outputs(p);
  const int64_t N = p->dim[DIM_N], M = p->dim[DIM_M], named = N < M ? N : M;
  *cost = (rg_cost){0};
  add_cache_cost(p, GRAD_KEY_CACHE, GRAD_KEY_CACHE_INPUT, (wanted & KEY_ROW_OUTPUTS) != 0, named, cost);
  add_cache_cost(p, GRAD_VALUE_CACHE, GRAD_VALUE_CACHE_INPUT, (wanted & VALUE_ROW_OUTPUTS) != 0, named, cost);
  for (int t = KEY_STATES; t <= CACHE_POSITION; ++t) {
    if (backward_tensors[t].needed_for & wanted) cost->read_bytes += rg_tensor_distinct_bytes(&p->tensor[t]);
  }
  for (int t = GRAD_KEY_STATES; t <= GRAD_SIN; ++t) cost->write_bytes += rg_tensor_distinct_bytes(&p->tensor[t]);
  /* An element of grad_key_states takes two products and a sum, each term of grad_cos and grad_sin one of each. */
  const int64_t elements = p->dim[DIM_B] * p->dim[DIM_H] * N * p->dim[DIM_R];
  cost->flops = (rg_given(p, GRAD_KEY_STATES) ? 3 : 0) * elements + (rg_given(p, GRAD_COS) ? 2 : 0) * elements +
                (rg_given(p, GRAD_SIN) ? 2 : 0) * elements;
}

static const char *const benchmark_arguments[] = {"grad_key_cache",
                                                  "grad_value_cache",
                                                  "key_states",
                                                  "cos",
                                                  "sin",
                                                  "cache_position",
                                                  "grad_key_states",
                                                  "grad_value_states",
                                                  "grad_cos",
                                                  "grad_sin",
                                                  "grad_key_cache_input",
                                                  "grad_value_cache_input",
                                                  NULL};
static const rg_benchmark_problem benchmark = {.definition = "062_kv_cache_update_with_rope_backward",
                                               .arguments = benchmark_arguments};

const rg_operator rg_kv_cache_update_backward_contract = {
    .name = "kv_cache_update",
    .function = "rg_kv_cache_update_backward",
    .direction = RG_BACKWARD,
    .title = "KV-cache update with RoPE, six gradients",
    .formula =
        "g = grad_key_cache[:,:,cache_position], grad_key_states = (g1*c1 + g2*s2, g2*c2 - g1*s1), "
        "grad_value_states = grad_value_cache[:,:,cache_position], grad_cos = sum_heads g*k, "
        "grad_sin = sum_heads (-g1*k2, g2*k1), grad_*_cache_input = grad_*_cache with those rows zero",
    .args_size = sizeof(rg_kv_cache_update_backward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = backward_tensors,
    .num_tensors = NUM_BACKWARD_TENSORS,
    .params = backward_params,
    .num_params = NUM_BACKWARD_PARAMS,
    .slice_dim = DIM_B,
    .in_place_param = PARAM_IN_PLACE,
    .benchmark = &benchmark,
    .resolve = backward_resolve,
    .check_values = backward_check_values,
    .cost = backward_cost,
    .reference = rg_kv_cache_update_backward_reference,
};

/* ---- forward ---- */

#define ARG(field) .name = #field, .offset = offsetof(rg_kv_cache_update_forward_args, field)

enum { FORWARD_IN_PLACE, FORWARD_STYLE, FORWARD_ROTARY_DIM, NUM_FORWARD_PARAMS };

static const rg_param_spec forward_params[NUM_FORWARD_PARAMS] = {
    [FORWARD_IN_PLACE] = {ARG(in_place), .kind = RG_PARAM_BOOL},
    [FORWARD_STYLE] = {ARG(style), .kind = RG_PARAM_ENUM, .values = rg_style_names},
    [FORWARD_ROTARY_DIM] = {ARG(rotary_dim), .kind = RG_PARAM_INT64},
};

enum { FORWARD_OUTPUTS = RG_BIT(FORWARD_KEY_CACHE) | RG_BIT(FORWARD_VALUE_CACHE) };

static const rg_tensor_spec forward_tensors[NUM_FORWARD_TENSORS] = {
    [FORWARD_KEY_CACHE_INPUT] = {ARG(key_cache_input), CACHE, KEY, .role = RG_INPUT,
                                 .needed_for = RG_BIT(FORWARD_KEY_CACHE)},
    [FORWARD_VALUE_CACHE_INPUT] = {ARG(value_cache_input), CACHE, VALUE, .role = RG_INPUT,
                                   .needed_for = RG_BIT(FORWARD_VALUE_CACHE)},
    [FORWARD_KEY_STATES] = {ARG(key_states), STATES, KEY, .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_KEY_CACHE)},
    [FORWARD_VALUE_STATES] = {ARG(value_states), STATES, VALUE, .role = RG_INPUT,
                              .needed_for = RG_BIT(FORWARD_VALUE_CACHE)},
    [FORWARD_COS] = {ARG(cos), TABLE, .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_KEY_CACHE)},
    [FORWARD_SIN] = {ARG(sin), TABLE, .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_KEY_CACHE)},
    [FORWARD_CACHE_POSITION] = {ARG(cache_position), POSITIONS, .role = RG_INPUT, .needed_for = FORWARD_OUTPUTS},
    [FORWARD_KEY_CACHE] = {ARG(key_cache), CACHE, KEY, .role = RG_OUTPUT, .in_place = true,
                           .in_place_of = FORWARD_KEY_CACHE_INPUT},
    [FORWARD_VALUE_CACHE] = {ARG(value_cache), CACHE, VALUE, .role = RG_OUTPUT, .in_place = true,
                             .in_place_of = FORWARD_VALUE_CACHE_INPUT},
};

static rg_status forward_resolve(rg_problem *p, rg_error *error) {
  const rg_kv_cache_update_forward_args *args = p->args;
  return rg_resolve_rotary_dim(p, DIM_D, DIM_R, args->rotary_dim, error);
}

static rg_status forward_check_values(const rg_problem *p, rg_error *error) {
  return check_positions(p, FORWARD_CACHE_POSITION, error);
}

/* Adds what one cache takes. Rows that are replaced are not read; in place no other row is written either. */
static void add_update_cost(const rg_problem *p, int cache_input, int states, int cache, rg_cost *cost) {
  if (!rg_given(p, cache)) return;
  const bool in_place = ((const rg_kv_cache_update_forward_args *)p->args)->in_place;
  const int64_t N = p->dim[DIM_N], M = p->dim[DIM_M], named = N < M ? N : M;
  cost->read_bytes += rg_tensor_distinct_bytes(&p->tensor[states]);
  if (!in_place) cost->read_bytes += row_bytes(&p->tensor[cache_input], M - named);
  cost->write_bytes += row_bytes(&p->tensor[cache], in_place ? named : M);
}

/* Counts as if every entry of cache_position named a row of its own, as the backward pass does. */
static void forward_cost(const rg_problem *p, rg_cost *cost) {
  *cost = (rg_cost){.read_bytes = rg_tensor_distinct_bytes(&p->tensor[FORWARD_CACHE_POSITION])};
  add_update_cost(p, FORWARD_KEY_CACHE_INPUT, FORWARD_KEY_STATES, FORWARD_KEY_CACHE, cost);
  add_update_cost(p, FORWARD_VALUE_CACHE_INPUT, FORWARD_VALUE_STATES, FORWARD_VALUE_CACHE, cost);
  if (!rg_given(p, FORWARD_KEY_CACHE)) return;
  cost->read_bytes +=
      rg_tensor_distinct_bytes(&p->tensor[FORWARD_COS]) + rg_tensor_distinct_bytes(&p->tensor[FORWARD_SIN]);
  cost->flops = 3 * p->dim[DIM_B] * p->dim[DIM_H] * p->dim[DIM_N] * p->dim[DIM_R];
}

const rg_operator rg_kv_cache_update_forward_contract = {
    .name = "kv_cache_update_forward",
    .function = "rg_kv_cache_update_forward",
    .direction = RG_FORWARD,
    .title = "KV-cache update with RoPE",
    .formula =
        "key_cache = key_cache_input with rows cache_position := k*cos + rotate_half(k)*sin, "
        "value_cache = value_cache_input with rows cache_position := value_states",
    .args_size = sizeof(rg_kv_cache_update_forward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = forward_tensors,
    .num_tensors = NUM_FORWARD_TENSORS,
    .params = forward_params,
    .num_params = NUM_FORWARD_PARAMS,
    .slice_dim = DIM_B,
    .in_place_param = FORWARD_IN_PLACE,
    .resolve = forward_resolve,
    .check_values = forward_check_values,
    .cost = forward_cost,
    .reference = rg_kv_cache_update_forward_reference,
};
