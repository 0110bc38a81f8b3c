#include "ops/vision_rotary/vision_rotary_spec.h"

static const rg_dim_spec dims[NUM_DIMS] = {
    [DIM_IMAGES] = {.name = "num_images", .symbol = "I", .kind = RG_DIM_DESCRIPTIVE},
    [DIM_P] = {.name = "total_patches", .symbol = "P"},
    [DIM_GRID] = {.name = "max_grid_size", .symbol = "G", .kind = RG_DIM_DESCRIPTIVE},
    [DIM_D] = {.name = "head_dim", .symbol = "D", .multiple_of = QUARTERS},
};

#define SHAPE_PD .rank = 2, .axes = {RG_AXIS(DIM_P), RG_AXIS(DIM_D)}
#define SHAPE_P2 .rank = 2, .axes = {RG_AXIS(DIM_P), RG_AXIS_SIZE(POSITION_AXES)}
#define SHAPE_Q .rank = 1, .axes = {RG_AXIS_OVER(DIM_D, QUARTERS)}
#define ARG(field) .name = #field, .offset = offsetof(rg_vision_rotary_backward_args, field)
enum { GROUP_GRAD, GROUP_ANGLE, GROUP_POSITION };

static const rg_tensor_spec backward_tensors[NUM_BACKWARD_TENSORS] = {
    [GRAD_COS] = {ARG(grad_cos), SHAPE_PD, .role = RG_INPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                  .suite_dtype = RG_F32, .needed_for = RG_BIT(GRAD_INV_FREQ)},
    [GRAD_SIN] = {ARG(grad_sin), SHAPE_PD, .role = RG_INPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                  .suite_dtype = RG_F32, .needed_for = RG_BIT(GRAD_INV_FREQ)},
    [EMB] = {ARG(emb), SHAPE_PD, .role = RG_INPUT, .dtype_group = GROUP_ANGLE, .dtypes = RG_DTYPES_ANGLE,
             .suite_dtype = RG_F32, .needed_for = RG_BIT(GRAD_INV_FREQ)},
    [POS_IDS] = {ARG(pos_ids), SHAPE_P2, .role = RG_INPUT, .dtype_group = GROUP_POSITION, .dtypes = RG_DTYPES_INT64,
                 .suite_dtype = RG_I64, .needed_for = RG_BIT(GRAD_INV_FREQ), .fill = RG_FILL_GRID_INDEX,
                 .fill_dim = DIM_GRID},
    /* Needed for nothing: the gradient of a linear map does not depend on where it is taken. */
    [INV_FREQ] = {ARG(inv_freq), SHAPE_Q, .role = RG_INPUT, .dtype_group = GROUP_ANGLE, .dtypes = RG_DTYPES_ANGLE,
                  .suite_dtype = RG_F32},
    [GRAD_INV_FREQ] = {ARG(grad_inv_freq), SHAPE_Q, .role = RG_OUTPUT, .dtype_group = GROUP_ANGLE,
                       .dtypes = RG_DTYPES_ANGLE, .suite_dtype = RG_F32},
};
#undef ARG

static void backward_cost(const rg_problem *p, rg_cost *cost) {
  cost->read_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_COS]) + rg_tensor_distinct_bytes(&p->tensor[GRAD_SIN]) +
                     rg_tensor_distinct_bytes(&p->tensor[EMB]) + rg_tensor_distinct_bytes(&p->tensor[POS_IDS]);
  cost->write_bytes = rg_tensor_distinct_bytes(&p->tensor[GRAD_INV_FREQ]);
  /* For each element of emb two products and a sum give the gradient of the angle, which is weighted and added up; sin
   * and cos are not counted as floating-point operations. */
  cost->flops = 5 * rg_tensor_elements(&p->tensor[EMB]);
}

static const char *const benchmark_arguments[] = {"grad_cos", "grad_sin",      "pos_ids", "inv_freq",
                                                  "emb",      "grad_inv_freq", NULL};
static const rg_benchmark_problem benchmark = {.definition = "024_vision_rotary_position_embedding_generation_backward",
                                               .arguments = benchmark_arguments};

const rg_operator rg_vision_rotary_backward_contract = {
    .name = "vision_rotary",
    .function = "rg_vision_rotary_backward",
    .direction = RG_BACKWARD,
    .title = "Vision rotary embedding, gradient of the inverse frequencies",
    .formula =
        "ge = -grad_cos * sin(emb) + grad_sin * cos(emb); "
        "grad_inv_freq[j] = sum_p sum_a pos_ids[p,a] * (ge[p,a*Q+j] + ge[p,D/2+a*Q+j])",
    .args_size = sizeof(rg_vision_rotary_backward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = backward_tensors,
    .num_tensors = NUM_BACKWARD_TENSORS,
    .slice_dim = -1,
    .in_place_param = -1,
    .benchmark = &benchmark,
    .cost = backward_cost,
    .reference = rg_vision_rotary_backward_reference,
};

#define ARG(field) .name = #field, .offset = offsetof(rg_vision_rotary_forward_args, field)

static const rg_tensor_spec forward_tensors[NUM_FORWARD_TENSORS] = {
    [FORWARD_INV_FREQ] = {ARG(inv_freq), SHAPE_Q, .role = RG_INPUT, .dtype_group = GROUP_ANGLE,
                          .dtypes = RG_DTYPES_ANGLE, .suite_dtype = RG_F32,
                          .needed_for = RG_BIT(FORWARD_EMB) | RG_BIT(FORWARD_COS) | RG_BIT(FORWARD_SIN)},
    [FORWARD_POS_IDS] = {ARG(pos_ids), SHAPE_P2, .role = RG_INPUT, .dtype_group = GROUP_POSITION,
                         .dtypes = RG_DTYPES_INT64, .suite_dtype = RG_I64,
                         .needed_for = RG_BIT(FORWARD_EMB) | RG_BIT(FORWARD_COS) | RG_BIT(FORWARD_SIN),
                         .fill = RG_FILL_GRID_INDEX, .fill_dim = DIM_GRID},
    [FORWARD_EMB] = {ARG(emb), SHAPE_PD, .role = RG_OUTPUT, .dtype_group = GROUP_ANGLE, .dtypes = RG_DTYPES_ANGLE,
                     .suite_dtype = RG_F32},
    [FORWARD_COS] = {ARG(cos), SHAPE_PD, .role = RG_OUTPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                     .suite_dtype = RG_F32},
    [FORWARD_SIN] = {ARG(sin), SHAPE_PD, .role = RG_OUTPUT, .dtype_group = GROUP_GRAD, .dtypes = RG_DTYPES_PAYLOAD,
                     .suite_dtype = RG_F32},
};

static void forward_cost(const rg_problem *p, rg_cost *cost) {
  cost->read_bytes =
      rg_tensor_distinct_bytes(&p->tensor[FORWARD_INV_FREQ]) + rg_tensor_distinct_bytes(&p->tensor[FORWARD_POS_IDS]);
  cost->write_bytes = rg_tensor_distinct_bytes(&p->tensor[FORWARD_EMB]) +
                      rg_tensor_distinct_bytes(&p->tensor[FORWARD_COS]) +
                      rg_tensor_distinct_bytes(&p->tensor[FORWARD_SIN]);
  /* The halves of a row are the same: one product for each angle of the first. */
  cost->flops = p->dim[DIM_P] * (p->dim[DIM_D] / 2);
}

const rg_operator rg_vision_rotary_forward_contract = {
    .name = "vision_rotary_forward",
    .function = "rg_vision_rotary_forward",
    .direction = RG_FORWARD,
    .title = "Vision rotary embedding",
    .formula = "emb[p,a*Q+j] = emb[p,D/2+a*Q+j] = pos_ids[p,a] * inv_freq[j]; cos = cos(emb), sin = sin(emb)",
    .args_size = sizeof(rg_vision_rotary_forward_args),
    .dims = dims,
    .num_dims = NUM_DIMS,
    .tensors = forward_tensors,
    .num_tensors = NUM_FORWARD_TENSORS,
    .slice_dim = -1,
    .in_place_param = -1,
    .cost = forward_cost,
    .reference = rg_vision_rotary_forward_reference,
};
