/* case.h: one problem to verify or time: an operator, sizes, options, dtypes, memory layouts and what fills the inputs.
 * A case holds no tensor memory; buffers.h gives it some. */
#ifndef ROPEGRAD_HARNESS_CASES_CASE_H
#define ROPEGRAD_HARNESS_CASES_CASE_H

#include "harness/base/message.h"
#include "ropegrad/ropegrad_dev.h"

/* No tensor of a case may have more elements than this. */
#define RGH_MAX_ELEMENTS (INT64_C(1) << 40)

/* How a tensor lies in memory. A zeroed struct is dense and row-major. */
typedef struct rgh_layout {
  bool reordered;            /* `order` is given; otherwise 0, 1, 2, ... */
  int8_t order[RG_MAX_RANK]; /* axes from the outermost to the innermost in memory */
  uint32_t expanded;         /* RG_BIT of each axis with stride 0 (inputs only) */
  uint32_t reversed;         /* RG_BIT of each axis with a negative stride (inputs only) */
  int64_t offset;            /* elements before the tensor's first, handed over as byte_offset */
  int64_t pad[RG_MAX_RANK];  /* elements left unused after each full run along an axis */
  int64_t stride_last;       /* stride of the innermost axis in memory; 0 stands for 1 */
} rgh_layout;

typedef enum rgh_fill_kind {
  RGH_FILL_DEFAULT = 0, /* what the operator's table says for the tensor */
  RGH_FILL_NORMAL,      /* scale * standard normal */
  RGH_FILL_UNIFORM,     /* floats in [low, high); integers in [low, high) */
  RGH_FILL_CONSTANT,    /* value */
  RGH_FILL_SPECIAL,  /* normal, one element in `every` an infinity, a NaN, a signed zero, a subnormal or the largest */
  RGH_FILL_ARANGE,   /* start + step * i, i along the last axis */
  RGH_FILL_REVERSED, /* start + step * (n - 1 - i) */
  RGH_FILL_SHUFFLED, /* start + step * (a permutation of 0..n-1) */
  RGH_FILL_DUPLICATES,  /* start + step * (i / 2) */
  RGH_FILL_NEGATIVES,   /* as shuffled, but one entry in `every` is negative */
  RGH_FILL_GRID,        /* integers [patch][2]: row and column of the patch in a grid of `width` columns */
  RGH_FILL_INV_FREQ,    /* base^(-j/n) along the last axis that has a dimension */
  RGH_FILL_ROPE_ANGLES, /* (start + step * position) * base^(-2j/R): real angles, both halves alike */
  RGH_FILL_ROPE_COS,    /* scale * cos of those */
  RGH_FILL_ROPE_SIN,    /* scale * sin of those */
  RGH_FILL_GRID_ANGLES, /* angles of a patch's row (first quarter) and column (second), repeated for the second half */
  RGH_NUM_FILLS
} rgh_fill_kind;

/* Numbers that the kind does not take stay at their defaults, unread. */
typedef struct rgh_fill {
  rgh_fill_kind kind;
  double low, high, value, scale, base, start, step;
  double every, width; /* whole, at least 1 */
  double interleaved;  /* rope fills: not 0 when elements 2j and 2j+1 share an angle, and not j and j + R/2 */
} rgh_fill;

typedef struct rgh_case {
  const rg_operator *op;
  char *name;               /* unique within the suite's cases of the operator; owned */
  int64_t dim[RG_MAX_DIMS]; /* in the order of op->dims, derived ones included; -1: a descriptive one not given */
  rg_param_value param[RG_MAX_PARAMS];
  rg_dtype dtype[RG_MAX_TENSORS];
  rgh_layout layout[RG_MAX_TENSORS];
  rgh_fill fill[RG_MAX_TENSORS]; /* inputs; never RGH_FILL_DEFAULT once the case is finished */
  uint32_t unwanted;             /* RG_BIT of each output given as NULL */
  uint32_t shared;               /* RG_BIT of each tensor whose axis 0 has size 1 and serves every index */
} rgh_case;

/* Every default of the operator: suggested options, suite dtypes, dense layouts, default fills; all sizes -1, no name.
 */
void rgh_case_init(rgh_case *item, const rg_operator *op);

/* Computes the derived sizes, settles the default fills, and checks sizes, dtypes, layouts and fills against the
 * operator's tables. The reason names the key at fault, such as `layouts.q.order`. */
bool rgh_case_finish(rgh_case *item, rgh_message *why);

/* Sets the operator's in-place option. False when the operator has none, or a tensor's layout rules it out. */
bool rgh_case_set_in_place(rgh_case *item, rgh_message *why);
bool rgh_case_in_place(const rgh_case *item);

/* The tensors a call of this case passes; an output that is not wanted, and an input that only such outputs need, are
 * NULL. As RG_BITs. */
uint32_t rgh_case_given(const rgh_case *item);

/* The input whose memory an output shares in this case, or -1: it has memory of its own. */
int rgh_case_alias(const rgh_case *item, int tensor);

/* Sizes of a tensor, shared tables taken into account. Returns the number of elements. */
int64_t rgh_case_shape(const rgh_case *item, int tensor, int64_t shape[RG_MAX_RANK]);

/* Strides in elements; *origin is the place of element [0, ..., 0] counted from the start of the tensor's memory, and
 * the result is how many elements that memory holds, gaps and offset included. */
int64_t rgh_case_strides(const rgh_case *item, int tensor, int64_t stride[RG_MAX_RANK], int64_t *origin);

/* Bytes of all tensors of the case together, gaps included, each in-place pair once. */
int64_t rgh_case_bytes(const rgh_case *item);

/* Writes the options into an arguments struct of op->args_size bytes. */
void rgh_case_set_params(const rgh_case *item, void *args);

void rgh_case_free(rgh_case *item);

#endif /* ROPEGRAD_HARNESS_CASES_CASE_H */
