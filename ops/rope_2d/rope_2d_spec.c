#include "ops/rope_2d/rope_2d_spec.h"

static const rg_dim_spec dims[NUM_DIMS] = {
    [DIM_B] = {.name = "batch_size", .symbol = "B"},
    [DIM_S] = {.name = "seq_len", .symbol = "S"},
    [DIM_D] = {.name = "head_dim", .symbol = "D", .multiple_of = 2},
};

#define SHAPE_BSD .rank = 3, .axes = {RG_AXIS(DIM_B), RG_AXIS(DIM_S), RG_AXIS(DIM_D)}
#define ARG(field) .name = #field, .offset = offsetof(rg_rope_2d_backward_args, field)
enum { GROUP_GRAD, GROUP_ANGLE };

static const rg_tensor_spec backward_tensors[NUM_BACKWARD_TENSORS] = {
    [GRAD_COS] = {ARG(grad_cos), SHAPE_BSD, .role = RG_INPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                  .suite_dtype = RG_BF16, .needed_for = RG_BIT(GRAD_IDX_THETA)},
    [GRAD_SIN] = {ARG(grad_sin), SHAPE_BSD, .role = RG_INPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                  .suite_dtype = RG_BF16, .needed_for = RG_BIT(GRAD_IDX_THETA)},
    [IDX_THETA] = {ARG(idx_theta), SHAPE_BSD, .role = RG_INPUT, .dtype_group = GROUP_ANGLE, .dtypes = RG_DTYPES_ANGLE,
                   .suite_dtype = RG_F32, .needed_for = RG_BIT(GRAD_IDX_THETA)},
    [GRAD_IDX_THETA] = {ARG(grad_idx_theta), SHAPE_BSD, .role = RG_OUTPUT, .dtype_group = GROUP_ANGLE,
                        .dtypes = RG_DTYPES_ANGLE, .suite_dtype = RG_F32},
};
#undef ARG

static void backward_cost(const rg_problem *p, rg_cost *cost) {
  cost->read_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_COS]) + rg_tensor_distinct_bytes(&p->tensor[GRAD_SIN]) +
                     rg_tensor_distinct_bytes(&p->tensor[IDX_THETA]);
  cost->write_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_IDX_THETA]);
  /* Two products and a sum; sin and cos are not counted as floating-point operations. */
  cost->flops = 3 * rg_tensor_elements(&p->tensor[GRAD_IDX_THETA]);
}

static const char *const benchmark_arguments[] = {"grad_cos", "grad_sin", "idx_theta", "grad_idx_theta", NULL};
static const rg_benchmark_problem benchmark = {.definition = "090_batched_2d_rope_position_encoding_backward",
                                               .arguments = benchmark_arguments};

const rg_operator rg_rope_2d_backward_contract = {
    .name = "rope_2d",
    .function = "rg_rope_2d_backward",
    .direction = RG_BACKWARD,
    .title = "Batched 2D RoPE position encoding, gradient of the angles",
    .formula = "grad_idx_theta = -grad_cos * sin(idx_theta) + grad_sin * cos(idx_theta)",
    .args_size = sizeof(rg_rope_2d_backward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = backward_tensors,
    .num_tensors = NUM_BACKWARD_TENSORS,
    .slice_dim = DIM_S,
    .in_place_param = -1,
    .benchmark = &benchmark,
    .cost = backward_cost,
    .reference = rg_rope_2d_backward_reference,
};

#define ARG(field) .name = #field, .offset = offsetof(rg_rope_2d_forward_args, field)

static const rg_tensor_spec forward_tensors[NUM_FORWARD_TENSORS] = {
    [FORWARD_IDX_THETA] = {ARG(idx_theta), SHAPE_BSD, .role = RG_INPUT, .dtype_group = GROUP_ANGLE,
                           .dtypes = RG_DTYPES_ANGLE, .suite_dtype = RG_F32,
                           .needed_for = RG_BIT(FORWARD_COS) | RG_BIT(FORWARD_SIN)},
    [FORWARD_COS] = {ARG(cos), SHAPE_BSD, .role = RG_OUTPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                     .suite_dtype = RG_BF16},
    [FORWARD_SIN] = {ARG(sin), SHAPE_BSD, .role = RG_OUTPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                     .suite_dtype = RG_BF16},
};

static void forward_cost(const rg_problem *p, rg_cost *cost) {
  cost->read_bytes = rg_tensor_distinct_bytes(&p->tensor[FORWARD_IDX_THETA]);
  cost->write_bytes =
      rg_tensor_distinct_bytes(&p->tensor[FORWARD_COS]) + rg_tensor_distinct_bytes(&p->tensor[FORWARD_SIN]);
  cost->flops = 0;
}

const rg_operator rg_rope_2d_forward_contract = {
    .name = "rope_2d_forward",
    .function = "rg_rope_2d_forward",
    .direction = RG_FORWARD,
    .title = "Batched 2D RoPE position encoding",
    .formula = "cos = cos(idx_theta), sin = sin(idx_theta)",
    .args_size = sizeof(rg_rope_2d_forward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = forward_tensors,
    .num_tensors = NUM_FORWARD_TENSORS,
    .slice_dim = DIM_S,
    .in_place_param = -1,
    .cost = forward_cost,
    .reference = rg_rope_2d_forward_reference,
};
