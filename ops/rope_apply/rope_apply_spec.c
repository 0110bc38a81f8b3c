#include "ops/rope_apply/rope_apply_spec.h"

#include "src/spec/rotation.h"

static const rg_dim_spec dims[NUM_DIMS] = {
    [DIM_B] = {.name = "batch_size", .symbol = "B"},
    [DIM_HQ] = {.name = "num_heads", .symbol = "Hq"},
    [DIM_HK] = {.name = "num_kv_heads", .symbol = "Hk"},
    [DIM_S] = {.name = "seq_len", .symbol = "S"},
    [DIM_D] = {.name = "head_dim", .symbol = "D", .multiple_of = 2},
    [DIM_R] = {.name = "rotary_dim", .symbol = "R", .multiple_of = 2, .kind = RG_DIM_DERIVED},
};

#define SHAPE_Q .rank = 4, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_HQ), RG_AXIS(DIM_S), RG_AXIS(DIM_D)}
#define SHAPE_K .rank = 4, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_HK), RG_AXIS(DIM_S), RG_AXIS(DIM_D)}
#define SHAPE_TABLE .rank = 3, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_S), RG_AXIS(DIM_R)}, .broadcast_first = true
enum { GROUP_Q, GROUP_K, GROUP_TABLE };
#define OF_Q SHAPE_Q, .dtype_group = GROUP_Q, .dtypes = RG_DTYPES_PAYLOAD, .suite_dtype = RG_F32
#define OF_K SHAPE_K, .dtype_group = GROUP_K, .dtypes = RG_DTYPES_PAYLOAD, .suite_dtype = RG_F32
#define OF_TABLE SHAPE_TABLE, .dtype_group = GROUP_TABLE, .dtypes = RG_DTYPES_TABLE, .suite_dtype = RG_F32

static const char *const sin_pairing_names[] = {"adjoint", "same_half", NULL};

/* Bytes of the first `columns` elements of each head. */
static int64_t column_bytes(const rg_tensor *tensor, int64_t columns) {
  rg_tensor part = *tensor;
  part.shape[part.rank - 1] = columns;
  return rg_tensor_distinct_bytes(&part);
}

/* ---- backward ---- */

#define ARG(field) .name = #field, .offset = offsetof(rg_rope_apply_backward_args, field)
#define GRAD_TABLES (RG_BIT(GRAD_COS) | RG_BIT(GRAD_SIN))

static const rg_tensor_spec backward_tensors[NUM_BACKWARD_TENSORS] = {
    [GRAD_Q_EMBED] = {ARG(grad_q_embed), OF_Q, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_Q) | GRAD_TABLES},
    [GRAD_K_EMBED] = {ARG(grad_k_embed), OF_K, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_K) | GRAD_TABLES},
    [Q] = {ARG(q), OF_Q, .role = RG_INPUT, .needed_for = GRAD_TABLES},
    [K] = {ARG(k), OF_K, .role = RG_INPUT, .needed_for = GRAD_TABLES},
    [COS] = {ARG(cos), OF_TABLE, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_Q) | RG_BIT(GRAD_K)},
    [SIN] = {ARG(sin), OF_TABLE, .role = RG_INPUT, .needed_for = RG_BIT(GRAD_Q) | RG_BIT(GRAD_K)},
    [GRAD_Q] = {ARG(grad_q), OF_Q, .role = RG_OUTPUT},
    [GRAD_K] = {ARG(grad_k), OF_K, .role = RG_OUTPUT},
    [GRAD_COS] = {ARG(grad_cos), OF_TABLE, .role = RG_OUTPUT},
    [GRAD_SIN] = {ARG(grad_sin), OF_TABLE, .role = RG_OUTPUT},
};
#undef ARG

#define PARAM(field, of_kind) .name = #field, .kind = of_kind, .offset = offsetof(rg_rope_apply_backward_args, field)
static const rg_param_spec backward_params[] = {
    {PARAM(rotary_dim, RG_PARAM_INT64)},
    {PARAM(style, RG_PARAM_ENUM), .values = rg_style_names},
    {PARAM(sin_pairing, RG_PARAM_ENUM), .values = sin_pairing_names},
};
#undef PARAM

static rg_status backward_resolve(rg_problem *p, rg_error *error) {
  const rg_rope_apply_backward_args *args = p->args;
  rg_status status = rg_resolve_rotary_dim(p, DIM_D, DIM_R, args->rotary_dim, error);
  if (status == RG_OK) status = rg_check_table_gradient(p, DIM_B, COS, GRAD_COS, error);
  if (status == RG_OK) status = rg_check_table_gradient(p, DIM_B, SIN, GRAD_SIN, error);
  return status;
}

/* What one of q and k costs: its gradient past rotary_dim is read for grad_x alone, itself not at all. */
static void add_side_cost(const rg_problem *p, int grad_y, int x, int grad_x, bool grad_tables, rg_cost *cost) {
  const int64_t R = p->dim[DIM_R], D = p->dim[DIM_D];
  if (!grad_tables && !rg_given(p, grad_x)) return;
  const int64_t rotated = rg_tensor_elements(&p->tensor[grad_y]) / D * R;
  cost->read_bytes += column_bytes(&p->tensor[grad_y], rg_given(p, grad_x) ? D : R);
  if (grad_tables) {
    cost->read_bytes += column_bytes(&p->tensor[x], R);
    cost->flops += rotated * 2 * (rg_given(p, GRAD_COS) + rg_given(p, GRAD_SIN));
  }
  if (rg_given(p, grad_x)) {
    cost->write_bytes += rg_tensor_distinct_bytes(&p->tensor[grad_x]);
    cost->flops += rotated * 3;
  }
}

static void backward_cost(const rg_problem *p, rg_cost *cost) {
  const bool grad_tables = rg_given(p, GRAD_COS) || rg_given(p, GRAD_SIN);
  *cost = (rg_cost){0};
  add_side_cost(p, GRAD_Q_EMBED, Q, GRAD_Q, grad_tables, cost);
  add_side_cost(p, GRAD_K_EMBED, K, GRAD_K, grad_tables, cost);
  if (rg_given(p, GRAD_Q) || rg_given(p, GRAD_K)) {
    cost->read_bytes += rg_tensor_distinct_bytes(&p->tensor[COS]) + rg_tensor_distinct_bytes(&p->tensor[SIN]);
  }
  cost->write_bytes += rg_tensor_distinct_bytes(&p->tensor[GRAD_COS]) + rg_tensor_distinct_bytes(&p->tensor[GRAD_SIN]);
}

static const char *const benchmark_arguments[] = {"grad_q_embed", "grad_k_embed", "q",        "k",        "cos", "sin",
                                                  "grad_q",       "grad_k",       "grad_cos", "grad_sin", NULL};
static const char *const benchmark_options[] = {"sin_pairing", "same_half", NULL};
static const rg_benchmark_problem benchmark = {.definition = "068_fused_rope_application_backward",
                                               .arguments = benchmark_arguments,
                                               .options = benchmark_options};

const rg_operator rg_rope_apply_backward_contract = {
    .name = "rope_apply",
    .function = "rg_rope_apply_backward",
    .direction = RG_BACKWARD,
    .title = "Fused RoPE application, gradients of q, k, cos and sin",
    .formula =
        "grad_x = (g1*c1 + g2*s2, g2*c2 - g1*s1), grad_cos = sum over heads of g*x, "
        "grad_sin = sum over heads of (-g1*x2, g2*x1)",
    .args_size = sizeof(rg_rope_apply_backward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = backward_tensors,
    .num_tensors = NUM_BACKWARD_TENSORS,
    .params = backward_params,
    .num_params = sizeof backward_params / sizeof *backward_params,
    .slice_dim = DIM_S,
    .in_place_param = -1,
    .benchmark = &benchmark,
    .resolve = backward_resolve,
    .cost = backward_cost,
    .reference = rg_rope_apply_backward_reference,
};

/* ---- forward ---- */

#define ARG(field) .name = #field, .offset = offsetof(rg_rope_apply_forward_args, field)

static const rg_tensor_spec forward_tensors[NUM_FORWARD_TENSORS] = {
    [FORWARD_Q] = {ARG(q), OF_Q, .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_Q_EMBED)},
    [FORWARD_K] = {ARG(k), OF_K, .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_K_EMBED)},
    [FORWARD_COS] = {ARG(cos), OF_TABLE, .role = RG_INPUT,
                     .needed_for = RG_BIT(FORWARD_Q_EMBED) | RG_BIT(FORWARD_K_EMBED)},
    [FORWARD_SIN] = {ARG(sin), OF_TABLE, .role = RG_INPUT,
                     .needed_for = RG_BIT(FORWARD_Q_EMBED) | RG_BIT(FORWARD_K_EMBED)},
    [FORWARD_Q_EMBED] = {ARG(q_embed), OF_Q, .role = RG_OUTPUT, .in_place = true, .in_place_of = FORWARD_Q},
    [FORWARD_K_EMBED] = {ARG(k_embed), OF_K, .role = RG_OUTPUT, .in_place = true, .in_place_of = FORWARD_K},
};

#define PARAM(field, of_kind) .name = #field, .kind = of_kind, .offset = offsetof(rg_rope_apply_forward_args, field)
enum { FORWARD_ROTARY_DIM, FORWARD_STYLE, FORWARD_IN_PLACE, NUM_FORWARD_PARAMS };
static const rg_param_spec forward_params[NUM_FORWARD_PARAMS] = {
    [FORWARD_ROTARY_DIM] = {PARAM(rotary_dim, RG_PARAM_INT64)},
    [FORWARD_STYLE] = {PARAM(style, RG_PARAM_ENUM), .values = rg_style_names},
    [FORWARD_IN_PLACE] = {PARAM(in_place, RG_PARAM_BOOL)},
};

static rg_status forward_resolve(rg_problem *p, rg_error *error) {
  const rg_rope_apply_forward_args *args = p->args;
  return rg_resolve_rotary_dim(p, DIM_D, DIM_R, args->rotary_dim, error);
}

/* In place, what lies past rotary_dim need not be touched. */
static void forward_cost(const rg_problem *p, rg_cost *cost) {
  const int64_t columns = p->dim[((const rg_rope_apply_forward_args *)p->args)->in_place ? DIM_R : DIM_D];
  *cost = (rg_cost){0};
  const int outputs[2] = {FORWARD_Q_EMBED, FORWARD_K_EMBED}, inputs[2] = {FORWARD_Q, FORWARD_K};
  for (int side = 0; side < 2; ++side) {
    if (!rg_given(p, outputs[side])) continue;
    cost->read_bytes += column_bytes(&p->tensor[inputs[side]], columns);
    cost->write_bytes += column_bytes(&p->tensor[outputs[side]], columns);
    cost->flops += 3 * (rg_tensor_elements(&p->tensor[outputs[side]]) / p->dim[DIM_D] * p->dim[DIM_R]);
  }
  cost->read_bytes +=
      rg_tensor_distinct_bytes(&p->tensor[FORWARD_COS]) + rg_tensor_distinct_bytes(&p->tensor[FORWARD_SIN]);
}

const rg_operator rg_rope_apply_forward_contract = {
    .name = "rope_apply_forward",
    .function = "rg_rope_apply_forward",
    .direction = RG_FORWARD,
    .title = "Fused RoPE application",
    .formula = "y = (x1*c1 - x2*s1, x2*c2 + x1*s2) for x = q and x = k",
    .args_size = sizeof(rg_rope_apply_forward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = forward_tensors,
    .num_tensors = NUM_FORWARD_TENSORS,
    .params = forward_params,
    .num_params = NUM_FORWARD_PARAMS,
    .slice_dim = DIM_S,
    .in_place_param = FORWARD_IN_PLACE,
    .resolve = forward_resolve,
    .cost = forward_cost,
    .reference = rg_rope_apply_forward_reference,
};
