/* The kernels of rope_apply_cuda.cu by name and number, and which one is for what. */
#ifndef ROPEGRAD_OPS_ROPE_APPLY_KERNELS_H
#define ROPEGRAD_OPS_ROPE_APPLY_KERNELS_H

#include "ops/rope_apply/rope_apply_cuda.h"
#include "ops/rope_apply/rope_apply_shapes.h"
#include "ops/rope_apply/rope_apply_tune.h"

/* The dtypes that the tuned kernels are compiled for, of q and k and of the tables. */
#define DTYPES_f32 RG_F32
#define DTYPES_bf16 RG_BF16
#define DTYPES_f16 RG_F16
#define VECTORS_DTYPES(X) X(f32, f32) X(bf16, bf16) X(bf16, f32) X(f16, f16) X(f16, f32)

/* A kernel for rows in vectors comes in every rope_apply_how, each in both styles. */
enum { STYLES = 2 };

enum {
  ANY_GENERAL,
  F64_GENERAL,
#define X(payload, table) \
  VECTORS_##payload##_##table, LAST_##payload##_##table = VECTORS_##payload##_##table + STYLES * ROPE_APPLY_HOWS - 1,
  VECTORS_DTYPES(X)
#undef X
      FIRST_FIXED /* then those of rope_apply_shapes.h */
};

static const char *const kernels[] = {
    [ANY_GENERAL] = "rope_apply_any__general",
    [F64_GENERAL] = "rope_apply_f64__general",
#define STYLED(payload, table, how) \
  "rope_apply_" #payload "_" #table "__vectors" #how, "rope_apply_" #payload "_" #table "__vectors" #how "_interleaved",
#define X(payload, table) STYLED(payload, table, ) STYLED(payload, table, _long) STYLED(payload, table, _plain)
    VECTORS_DTYPES(X)
#undef X
#undef STYLED
#define NAME(payload, table, how, plain, rows, groups, depth, once) \
  "rope_apply_" #payload "_" #table "__" how #plain "_" #rows "x" #groups "x" #depth "x" #once,
#define DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  NAME(payload, table, "direct", plain, rows, groups, depth, loads_once)
#define PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  NAME(payload, table, "pipeline", plain, rows, groups, depth, loads_once)
        ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)
#undef DIRECT
#undef PIPELINE
            NULL,
};

typedef struct fixed_kernel {
  rg_dtype payload, table;
  bool plain;
  rope_apply_shape shape;
} fixed_kernel;

static const fixed_kernel fixed_kernels[] = {
#define ROW(payload, table, is_pipeline, is_plain, row_count, group_count, how_deep, once) \
  {DTYPES_##payload,                                                                       \
   DTYPES_##table,                                                                         \
   is_plain,                                                                               \
   {.pipeline = is_pipeline, .rows = row_count, .groups = group_count, .depth = how_deep, .loads_once = once}},
#define DIRECT(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  ROW(payload, table, false, plain, rows, groups, depth, loads_once)
#define PIPELINE(payload, table, plain, rows, groups, depth, loads_once, stores_once) \
  ROW(payload, table, true, plain, rows, groups, depth, loads_once)
    ROPE_APPLY_FIXED_KERNELS(DIRECT, PIPELINE)};

/* -1: there is none. */
static inline int find_fixed(rg_dtype payload, rg_dtype table, bool plain, rope_apply_shape shape) {
  for (int k = 0; k < (int)(sizeof fixed_kernels / sizeof *fixed_kernels); ++k) {
    const fixed_kernel *kernel = &fixed_kernels[k];
    if (kernel->payload == payload && kernel->table == table && kernel->plain == plain &&
        kernel->shape.pipeline == shape.pipeline && kernel->shape.rows == shape.rows &&
        kernel->shape.groups == shape.groups && kernel->shape.depth == shape.depth &&
        kernel->shape.loads_once == shape.loads_once) {
      return FIRST_FIXED + k;
    }
  }
  return -1;
}

/* -1: none is compiled for these dtypes. */
static inline int vectors_kernel(rg_dtype payload, rg_dtype table, bool interleaved, rope_apply_how how) {
#define X(of_payload, of_table)                                                 \
  if (payload == DTYPES_##of_payload && table == DTYPES_##of_table) {           \
    return VECTORS_##of_payload##_##of_table + STYLES * (int)how + interleaved; \
  }
  VECTORS_DTYPES(X)
#undef X
  return -1;
}

#endif
