#include "ops/rotary_embedding/rotary_embedding_spec.h"

static const rg_dim_spec dims[NUM_DIMS] = {
    [DIM_B] = {.name = "batch_size", .symbol = "B"},
    [DIM_S] = {.name = "seq_len", .symbol = "S"},
    [DIM_D] = {.name = "head_dim", .symbol = "D", .multiple_of = 2},
};

#define SHAPE_BSD .rank = 3, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_S), RG_AXIS(DIM_D)}
#define SHAPE_BS .rank = 2, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_S)}
#define SHAPE_FREQUENCIES .rank = 3, .axes = {RG_AXIS(DIM_B), RG_AXIS_OVER(DIM_D, 2), RG_AXIS_SIZE(1)}
enum { GROUP_GRAD, GROUP_ANGLE, GROUP_POSITION };
#define PAYLOAD .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD, .suite_dtype = RG_BF16
#define ANGLE .dtype_group = GROUP_ANGLE, .dtypes = RG_DTYPES_ANGLE, .suite_dtype = RG_F32

#define ARG(field) .name = #field, .offset = offsetof(rg_rotary_embedding_backward_args, field)
#define BACKWARD_INPUT .role = RG_INPUT, .needed_for = RG_BIT(GRAD_POSITION_IDS)

static const rg_tensor_spec backward_tensors[NUM_BACKWARD_TENSORS] = {
    [GRAD_COS] = {ARG(grad_cos), SHAPE_BSD, PAYLOAD, BACKWARD_INPUT},
    [GRAD_SIN] = {ARG(grad_sin), SHAPE_BSD, PAYLOAD, BACKWARD_INPUT},
    [EMB] = {ARG(emb), SHAPE_BSD, ANGLE, BACKWARD_INPUT},
    [INV_FREQ] = {ARG(inv_freq_expanded), SHAPE_FREQUENCIES, ANGLE, BACKWARD_INPUT},
    [GRAD_POSITION_IDS] = {ARG(grad_position_ids), SHAPE_BS, ANGLE, .role = RG_OUTPUT},
};

static const rg_param_spec backward_params[] = {
    {.name = "attention_scaling",
     .kind = RG_PARAM_DOUBLE,
     .offset = offsetof(rg_rotary_embedding_backward_args, attention_scaling),
     .suggested = 1.0},
};
#undef ARG

static void backward_cost(const rg_problem *p, rg_cost *cost) {
  rg_tensor emb_read = p->tensor[EMB];
  emb_read.shape[2] /= 2;
  cost->read_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_COS]) + rg_tensor_distinct_bytes(&p->tensor[GRAD_SIN]) +
                     rg_tensor_distinct_bytes(&emb_read) + rg_tensor_distinct_bytes(&p->tensor[INV_FREQ]);
  cost->write_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_POSITION_IDS]);
  /* A frequency: two sums of gradients, two products and their difference, the weighted sum; a row: the scaling. sin
   * and cos are not counted as floating-point operations. */
  cost->flops = 7 * rg_tensor_elements(&emb_read) + rg_tensor_elements(&p->tensor[GRAD_POSITION_IDS]);
}

static const char *const benchmark_arguments[] = {"grad_cos",          "grad_sin",          "emb", "inv_freq_expanded",
                                                  "attention_scaling", "grad_position_ids", NULL};
static const rg_benchmark_problem benchmark = {.definition = "014_rotary_embedding_with_attention_scaling_backward",
                                               .arguments = benchmark_arguments};

const rg_operator rg_rotary_embedding_backward_contract = {
    .name = "rotary_embedding",
    .function = "rg_rotary_embedding_backward",
    .direction = RG_BACKWARD,
    .title = "Rotary embedding with attention scaling, gradient of the positions",
    .formula =
        "grad_position_ids = attention_scaling * sum_j inv_freq_expanded[j] * ((grad_sin[j] + grad_sin[j+D/2]) * "
        "cos(emb[j]) - (grad_cos[j] + grad_cos[j+D/2]) * sin(emb[j]))",
    .args_size = sizeof(rg_rotary_embedding_backward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = backward_tensors,
    .num_tensors = NUM_BACKWARD_TENSORS,
    .params = backward_params,
    .num_params = 1,
    .slice_dim = DIM_S,
    .in_place_param = -1,
    .benchmark = &benchmark,
    .cost = backward_cost,
    .reference = rg_rotary_embedding_backward_reference,
};

#define ARG(field) .name = #field, .offset = offsetof(rg_rotary_embedding_forward_args, field)
#define FORWARD_INPUT .role = RG_INPUT, .needed_for = RG_BIT(FORWARD_EMB) | RG_BIT(FORWARD_COS) | RG_BIT(FORWARD_SIN)

static const rg_tensor_spec forward_tensors[NUM_FORWARD_TENSORS] = {
    [FORWARD_POSITION_IDS] = {ARG(position_ids), SHAPE_BS, FORWARD_INPUT, .dtype_group = GROUP_POSITION,
                              .dtypes = RG_DTYPES_POSITION, .suite_dtype = RG_I64, .fill = RG_FILL_ARANGE},
    [FORWARD_INV_FREQ] = {ARG(inv_freq_expanded), SHAPE_FREQUENCIES, ANGLE, FORWARD_INPUT},
    [FORWARD_EMB] = {ARG(emb), SHAPE_BSD, ANGLE, .role = RG_OUTPUT},
    [FORWARD_COS] = {ARG(cos), SHAPE_BSD, PAYLOAD, .role = RG_OUTPUT},
    [FORWARD_SIN] = {ARG(sin), SHAPE_BSD, PAYLOAD, .role = RG_OUTPUT},
};

static const rg_param_spec forward_params[] = {
    {.name = "attention_scaling",
     .kind = RG_PARAM_DOUBLE,
     .offset = offsetof(rg_rotary_embedding_forward_args, attention_scaling),
     .suggested = 1.0},
};

static void forward_cost(const rg_problem *p, rg_cost *cost) {
  cost->read_bytes = rg_tensor_distinct_bytes(&p->tensor[FORWARD_POSITION_IDS]) +
                     rg_tensor_distinct_bytes(&p->tensor[FORWARD_INV_FREQ]);
  cost->write_bytes = rg_tensor_distinct_bytes(&p->tensor[FORWARD_EMB]) +
                      rg_tensor_distinct_bytes(&p->tensor[FORWARD_COS]) +
                      rg_tensor_distinct_bytes(&p->tensor[FORWARD_SIN]);
  /* A product for each angle, and two scalings, each half of the tables counted once: the other repeats it. */
  cost->flops = 3 * p->dim[DIM_B] * p->dim[DIM_S] * (p->dim[DIM_D] / 2);
}

const rg_operator rg_rotary_embedding_forward_contract = {
    .name = "rotary_embedding_forward",
    .function = "rg_rotary_embedding_forward",
    .direction = RG_FORWARD,
    .title = "Rotary embedding with attention scaling",
    .formula =
        "emb = concat(theta, theta) with theta = position_ids * inv_freq_expanded; cos = cos(emb) * "
        "attention_scaling, sin = sin(emb) * attention_scaling",
    .args_size = sizeof(rg_rotary_embedding_forward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = forward_tensors,
    .num_tensors = NUM_FORWARD_TENSORS,
    .params = forward_params,
    .num_params = 1,
    .slice_dim = DIM_S,
    .in_place_param = -1,
    .cost = forward_cost,
    .reference = rg_rotary_embedding_forward_reference,
};
