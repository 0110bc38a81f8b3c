/* ropegrad_dev.h: what the tool, the tests and the operators themselves share: how an operator describes itself, its
 * variants, its float64 reference and its cost. Not part of the stable API and not exported by the shared library: link
 * the static one. */
#ifndef ROPEGRAD_ROPEGRAD_DEV_H
#define ROPEGRAD_ROPEGRAD_DEV_H

#include "ropegrad/ropegrad.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { RG_MAX_RANK = 4, RG_MAX_TENSORS = 16, RG_MAX_DIMS = 8, RG_MAX_PARAMS = 6 };

/* ---- dtypes ---- */

typedef enum rg_dtype { RG_DTYPE_NONE = 0, RG_F32, RG_BF16, RG_F16, RG_F64, RG_I32, RG_I64, RG_NUM_DTYPES } rg_dtype;

const char *rg_dtype_name(rg_dtype dtype);       /* "float32", "bfloat16", ...; "none" */
rg_dtype rg_dtype_from_name(const char *name);   /* RG_DTYPE_NONE for any other name */
rg_dtype rg_dtype_from_dlpack(DLDataType dtype); /* RG_DTYPE_NONE for a dtype ropegrad does not know */
DLDataType rg_dtype_to_dlpack(rg_dtype dtype);
size_t rg_dtype_size(rg_dtype dtype);          /* bytes */
double rg_dtype_unit_roundoff(rg_dtype dtype); /* half the spacing at 1: 2^-24 for float32; 0 for integers */

/* Element `index` (in elements, any sign) from `base` as a double; integers of any size that a double holds. */
double rg_dtype_read(rg_dtype dtype, const void *base, int64_t index);
int64_t rg_dtype_read_index(rg_dtype dtype, const void *base, int64_t index); /* RG_I32 and RG_I64 only */
/* Rounds once, to nearest even, from the double itself. */
void rg_dtype_write(rg_dtype dtype, void *base, int64_t index, double value);
double rg_dtype_round(rg_dtype dtype, double value);    /* the nearest value of dtype */
double rg_dtype_half_ulp(rg_dtype dtype, double value); /* half the spacing of dtype's values around |value| */

/* ---- how an operator describes itself ---- */

typedef enum rg_op_id {
#define RG_OP(name) RG_OP_##name,
#include "ropegrad/ops.def"
#undef RG_OP
  RG_NUM_OPS
} rg_op_id;

typedef enum rg_direction { RG_BACKWARD = 0, RG_FORWARD = 1, RG_NUM_DIRECTIONS } rg_direction;

/* Each row of ops.def is two operators, its backward and its forward pass, with a contract, kernels, suites and records
 * of their own. */
enum { RG_NUM_OPERATORS = RG_NUM_DIRECTIONS * RG_NUM_OPS };

/* A named size of the problem. */
typedef struct rg_dim_spec {
  const char *name;    /* as suites spell it: "batch_size" */
  const char *symbol;  /* as formulas spell it: "B" */
  int32_t multiple_of; /* the size must be a multiple of this; 0 or 1: any size */
  enum {
    RG_DIM_BOUND = 0,  /* read off the tensors */
    RG_DIM_DERIVED,    /* computed by the operator's `resolve` from options and the bound sizes */
    RG_DIM_DESCRIPTIVE /* used by input generators alone; no tensor has it */
  } kind;
} rg_dim_spec;

/* One axis of a tensor: dims[dim] / divisor elements, or, with dim = RG_AXIS_FIXED, exactly `divisor`. */
enum { RG_AXIS_FIXED = -1 };
typedef struct rg_axis {
  int8_t dim;
  int8_t divisor;
} rg_axis;

typedef enum rg_role { RG_INPUT, RG_OUTPUT } rg_role;

/* Which dtypes a group of tensors may have; all tensors of a group have the same one. If one floating group of a call
 * is float64, all are. */
typedef enum rg_dtype_rule {
  RG_DTYPES_PAYLOAD, /* float32, bfloat16, float16, float64 */
  RG_DTYPES_TABLE,   /* float32, or the dtype of one of the call's payload groups */
  RG_DTYPES_ANGLE,   /* float32, float64 */
  RG_DTYPES_INT64,   /* int64 */
  RG_DTYPES_INDEX,   /* int64, int32 */
  RG_DTYPES_POSITION /* int64, int32, float32, float64 */
} rg_dtype_rule;

/* May a tensor of this rule have the dtype? Whether a table's goes with its call's payloads is left aside. */
bool rg_dtype_allowed(rg_dtype_rule rule, rg_dtype dtype);
const char *rg_dtype_rule_text(rg_dtype_rule rule); /* "float32 or float64" */

/* What the harness fills an input with unless a case says otherwise. */
typedef enum rg_fill {
  RG_FILL_NORMAL = 0, /* independent standard normal values */
  RG_FILL_GRID_INDEX, /* uniform integers in [0, dims[fill_dim]) */
  RG_FILL_ARANGE      /* 0, 1, 2, ... along the last axis */
} rg_fill;

#define RG_BIT(tensor) (UINT32_C(1) << (tensor))

typedef struct rg_tensor_spec {
  const char *name;
  rg_role role;
  int8_t rank;
  rg_axis axes[RG_MAX_RANK];
  int8_t dtype_group; /* tensors with the same number share their dtype */
  rg_dtype_rule dtypes;
  rg_dtype suite_dtype; /* what a case gets that does not say */
  size_t offset;        /* of its `const DLTensor *` in the arguments struct */
  uint32_t needed_for;  /* inputs: RG_BIT of each output that reads it */
  bool broadcast_first; /* axis 0 may also have size 1: one table for every batch */
  bool in_place;        /* outputs: may be the very tensor `in_place_of` when the in_place option is set */
  int8_t in_place_of;
  rg_fill fill;
  int8_t fill_dim;
} rg_tensor_spec;

typedef struct rg_param_spec {
  const char *name;
  enum { RG_PARAM_DOUBLE, RG_PARAM_INT64, RG_PARAM_BOOL, RG_PARAM_ENUM } kind;
  size_t offset;             /* of the double, int64_t, bool or enum (int) in the arguments struct */
  const char *const *values; /* enums: the names of 0, 1, ..., then NULL */
  double suggested;          /* doubles: what a case gets that does not name it */
} rg_param_spec;

/* An option's value: its kind says which member has it. */
typedef union rg_param_value {
  double number;
  int64_t integer;
  bool flag;
  int choice;
} rg_param_value;

/* A tensor of a call, resolved: data points at element [0, ..., 0], strides count elements. */
typedef struct rg_tensor {
  void *data;
  rg_dtype dtype; /* RG_DTYPE_NONE: not given */
  int32_t rank;
  int64_t shape[RG_MAX_RANK];
  int64_t stride[RG_MAX_RANK];
} rg_tensor;

typedef struct rg_operator rg_operator;

/* A call, checked and resolved. */
typedef struct rg_problem {
  const rg_operator *op;
  const void *args;
  rg_tensor tensor[RG_MAX_TENSORS]; /* in the order of op->tensors */
  int64_t dim[RG_MAX_DIMS];         /* in the order of op->dims; 0 where no given tensor has it */
} rg_problem;

/* Compulsory work: what any implementation must move and compute for the wanted outputs. Each byte is counted once,
 * stride-0 dimensions once and not per repetition. */
typedef struct rg_cost {
  int64_t read_bytes;
  int64_t write_bytes;
  int64_t flops;
} rg_cost;

/* One output of the float64 reference, row-major in the output's shape; NULL arrays where the output is not wanted.
 * The contract of an element is |y - value| <= (8 + sqrt(terms)/16) u magnitude + u |value| (+ half an ulp for 16-bit
 * outputs), with u the unit roundoff of float32 (of float64 for float64 outputs). */
typedef struct rg_reference_output {
  double *value;
  double *magnitude; /* sum of the absolute values of the summed terms, with |sin| and |cos| of an angle counted as 1;
                        RG_EXACT where the element must be copied bit for bit */
  int64_t terms;     /* number of terms an element sums */
} rg_reference_output;
#define RG_EXACT (-1.0)

/* The problem of a public benchmark that an operator solves; see docs/sol-execbench.md. */
typedef struct rg_benchmark_problem {
  const char *definition;       /* the benchmark's name of it */
  const char *const *arguments; /* tensors and options in the order of the benchmark's calls, outputs last; then NULL */
  const char *const *options;   /* what else the problem fixes: an option, its value, ...; then NULL. NULL: nothing */
} rg_benchmark_problem;

typedef struct rg_error rg_error;

struct rg_operator {
  const char *name; /* as the tool, suites and records spell it: <op> is the backward pass, <op>_forward the forward */
  const char *function; /* its public function, rg_<op>_<direction>: every message begins with it */
  rg_direction direction;
  const char *title;   /* one line for people */
  const char *formula; /* one line of plain text */
  size_t args_size;
  const rg_dim_spec *dims;
  const rg_tensor_spec *tensors;
  const rg_param_spec *params;
  int8_t num_dims, num_tensors, num_params;
  int8_t slice_dim;      /* results at different indices of this dim do not depend on each other; -1: none such */
  int8_t in_place_param; /* index of the in_place option in params, -1: none */
  const rg_benchmark_problem *benchmark; /* NULL: no benchmark has it */
  /* Checks the options and sets the derived dims. NULL: nothing to do. */
  rg_status (*resolve)(rg_problem *problem, rg_error *error);
  /* Checks values that only the host can read, before anything is written. NULL: nothing to do. */
  rg_status (*check_values)(const rg_problem *problem, rg_error *error);
  void (*cost)(const rg_problem *problem, rg_cost *cost);
  /* Plain float64 loops; `out` has op->num_tensors entries, used at the outputs' places. */
  void (*reference)(const rg_problem *problem, rg_reference_output *out);
};

/* ---- what the tool and the tests call ---- */

const rg_operator *rg_dev_operator(rg_op_id id, rg_direction direction);
/* The same by number: the backward passes in the order of ops.def, then the forward passes. */
const rg_operator *rg_dev_operator_at(int index); /* 0 <= index < RG_NUM_OPERATORS */
int rg_dev_find_operator(const char *name);       /* an index, or -1 */

/* The number of a tensor or an option by its name, or -1. */
int rg_dev_find_tensor(const rg_operator *op, const char *name);
int rg_dev_find_param(const rg_operator *op, const char *name);

/* The pointer that `args` holds for tensor number `tensor`, and how to set it and option number `param`. */
const DLTensor *rg_dev_get_tensor(const rg_operator *op, const void *args, int tensor);
void rg_dev_set_tensor(const rg_operator *op, void *args, int tensor, const DLTensor *value);
void rg_dev_set_param(const rg_operator *op, void *args, int param, rg_param_value value);
bool rg_dev_in_place(const rg_operator *op, const void *args);

/* Number of elements; 0 when any size is 0. */
int64_t rg_tensor_elements(const rg_tensor *tensor);

/* Validates a call exactly as rg_<op>_<direction> does and hands back the resolved problem. */
rg_status rg_dev_resolve(rg_context *context, const rg_operator *op, const void *args, rg_problem *problem);

/* The sizes of a call whose outputs need not be given yet, in problem->dim: what they have to be made with. Ranks,
 * dtypes, shapes, the device and the options are checked; addresses and values are left to the call. */
rg_status rg_dev_bind(rg_context *context, const rg_operator *op, const void *args, rg_problem *problem);

/* Runs a call with a named variant; NULL: the context's choice. */
rg_status rg_dev_run(rg_context *context, const rg_operator *op, const char *variant, const void *args);

/* Does value lie inside the contract? Returns the share of the allowance used: <= 1 is inside, INFINITY when a
 * non-finite value or a bit-exact element differs. `dtype` is the output's. */
double rg_dev_allowance_used(rg_dtype dtype, double value, double reference, double magnitude, int64_t terms);

/* The device code of operator number `index`, as this build embeds it; NULL and 0 in a build without CUDA. */
void rg_dev_cuda_image(int index, const void **image, size_t *bytes);

/* What a context on a CUDA device works with: the driver's handles of its context and its stream. NULL: a context of
 * another device, or the default stream. */
void *rg_dev_cuda_primary_context(const rg_context *context);
void *rg_dev_cuda_stream(const rg_context *context);

enum { RG_REASON_BYTES = 256 };
typedef struct rg_variant_info {
  const char *name;
  DLDeviceType device;
  rg_status status;             /* RG_OK: runs here; else RG_ERR_NOT_BUILT or RG_ERR_HARDWARE */
  char reason[RG_REASON_BYTES]; /* why not, for people; "" when it runs */
} rg_variant_info;
int rg_dev_num_variants(void);
void rg_dev_variant(int index, rg_variant_info *info);
/* The variant that a context runs when none is named. */
const char *rg_dev_default_variant(const rg_context *context);

#ifdef __cplusplus
}
#endif

#endif /* ROPEGRAD_ROPEGRAD_DEV_H */
