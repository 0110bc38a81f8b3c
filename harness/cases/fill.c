/* What fills exist, their names and numbers, and which tensors they suit. The values are made in fill_values.c. */
#include "harness/cases/fill.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* The largest integer below which a double holds every integer. */
static const double MAX_EXACT = 0x1p53;

#define FILL(kind) (UINT32_C(1) << RGH_FILL_##kind)
#define ROPE_FILLS (FILL(ROPE_ANGLES) | FILL(ROPE_COS) | FILL(ROPE_SIN))
#define SEQUENCES (FILL(ARANGE) | FILL(REVERSED) | FILL(SHUFFLED) | FILL(DUPLICATES) | FILL(NEGATIVES))

#define FLAT (FILL(NORMAL) | FILL(UNIFORM) | FILL(CONSTANT) | FILL(SPECIAL))

static const uint32_t FOR_INTEGERS = FILL(UNIFORM) | FILL(CONSTANT) | SEQUENCES | FILL(GRID);
/* Sequences too: positions may be floating. */
static const uint32_t FOR_FLOATS = FLAT | SEQUENCES | FILL(INV_FREQ) | ROPE_FILLS | FILL(GRID_ANGLES);

static const char *const names[RGH_NUM_FILLS] = {
    [RGH_FILL_DEFAULT] = "default",         [RGH_FILL_NORMAL] = "normal",     [RGH_FILL_UNIFORM] = "uniform",
    [RGH_FILL_CONSTANT] = "constant",       [RGH_FILL_SPECIAL] = "special",   [RGH_FILL_ARANGE] = "arange",
    [RGH_FILL_REVERSED] = "reversed",       [RGH_FILL_SHUFFLED] = "shuffled", [RGH_FILL_DUPLICATES] = "duplicates",
    [RGH_FILL_NEGATIVES] = "negatives",     [RGH_FILL_GRID] = "grid",         [RGH_FILL_INV_FREQ] = "inv_freq",
    [RGH_FILL_ROPE_ANGLES] = "rope_angles", [RGH_FILL_ROPE_COS] = "rope_cos", [RGH_FILL_ROPE_SIN] = "rope_sin",
    [RGH_FILL_GRID_ANGLES] = "grid_angles",
};

/* The numbers that fills take. */
static const struct {
  const char *name;
  size_t offset;
  double suggested;
  bool integral; /* counts: whole and at least 1 */
  uint32_t fills;
} numbers[] = {
    {"low", offsetof(rgh_fill, low), 0, false, FILL(UNIFORM)},
    {"high", offsetof(rgh_fill, high), 1, false, FILL(UNIFORM)},
    {"value", offsetof(rgh_fill, value), 1, false, FILL(CONSTANT)},
    {"scale", offsetof(rgh_fill, scale), 1, false, FILL(NORMAL) | FILL(SPECIAL) | ROPE_FILLS},
    {"base", offsetof(rgh_fill, base), 10000, false, FILL(INV_FREQ) | ROPE_FILLS | FILL(GRID_ANGLES)},
    {"start", offsetof(rgh_fill, start), 0, false, SEQUENCES | ROPE_FILLS | FILL(GRID_ANGLES)},
    {"step", offsetof(rgh_fill, step), 1, false, SEQUENCES | ROPE_FILLS},
    {"every", offsetof(rgh_fill, every), 4, true, FILL(SPECIAL) | FILL(NEGATIVES)},
    {"width", offsetof(rgh_fill, width), 16, true, FILL(GRID) | FILL(GRID_ANGLES)},
    {"interleaved", offsetof(rgh_fill, interleaved), 0, false, ROPE_FILLS},
};
enum { NUM_NUMBERS = sizeof numbers / sizeof numbers[0] };

static double *number_of(rgh_fill *fill, int index) { return (double *)((char *)fill + numbers[index].offset); }

const char *rgh_fill_name(rgh_fill_kind kind) { return names[kind]; }

rgh_fill_kind rgh_fill_from_name(const char *name) {
  for (int k = 1; k < RGH_NUM_FILLS; ++k) {
    if (strcmp(name, names[k]) == 0) return (rgh_fill_kind)k;
  }
  return RGH_NUM_FILLS;
}

rgh_fill rgh_fill_default(rgh_fill_kind kind) {
  rgh_fill fill = {.kind = kind};
  for (int n = 0; n < NUM_NUMBERS; ++n) *number_of(&fill, n) = numbers[n].suggested;
  return fill;
}

bool rgh_fill_set(rgh_fill *fill, const char *key, double number) {
  for (int n = 0; n < NUM_NUMBERS; ++n) {
    if (strcmp(key, numbers[n].name) != 0 || (numbers[n].fills & (UINT32_C(1) << fill->kind)) == 0) continue;
    *number_of(fill, n) = number;
    return true;
  }
  return false;
}

bool rgh_fill_is_flat(const rgh_fill *fill) { return (FLAT & (UINT32_C(1) << fill->kind)) != 0; }

/* ---- what a tensor takes ---- */

static bool take_default(rgh_case *item, int tensor, rgh_message *why) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  rgh_fill *fill = &item->fill[tensor];
  switch (spec->fill) {
    case RG_FILL_NORMAL:
      *fill = rgh_fill_default(RGH_FILL_NORMAL);
      break;
    case RG_FILL_ARANGE:
      *fill = rgh_fill_default(RGH_FILL_ARANGE);
      break;
    case RG_FILL_GRID_INDEX: {
      const int64_t size = item->dim[spec->fill_dim];
      if (size < 0)
        return rgh_fail(why, "dims.%s: missing, and %s is drawn below it", item->op->dims[spec->fill_dim].name,
                        spec->name);
      *fill = rgh_fill_default(RGH_FILL_UNIFORM);
      fill->high = (double)size;
      break;
    }
  }
  return true;
}

/* The least and the greatest integer that the fill can produce. */
static void integer_bounds(const rgh_fill *fill, int64_t elements, int64_t along, double *least, double *greatest) {
  const double last = (double)(along > 0 ? along - 1 : 0);
  switch (fill->kind) {
    case RGH_FILL_UNIFORM:
      *least = fill->low;
      *greatest = fill->high;
      break;
    case RGH_FILL_CONSTANT:
      *least = *greatest = fill->value;
      break;
    case RGH_FILL_GRID:
      *least = 0;
      *greatest = (double)elements;
      break;
    default:
      *least =
          fmin(fmin(fill->start, fill->start + fill->step * last), fill->kind == RGH_FILL_NEGATIVES ? -last - 1 : 0);
      *greatest = fmax(fill->start, fill->start + fill->step * last);
  }
}

static bool check_numbers(const rgh_case *item, int tensor, rgh_message *why) {
  const char *name = item->op->tensors[tensor].name;
  rgh_fill fill = item->fill[tensor];
  const bool integer = item->dtype[tensor] == RG_I32 || item->dtype[tensor] == RG_I64;
  for (int n = 0; n < NUM_NUMBERS; ++n) {
    if ((numbers[n].fills & (UINT32_C(1) << fill.kind)) == 0) continue;
    const double value = *number_of(&fill, n);
    const bool whole = value == floor(value) && fabs(value) <= MAX_EXACT;
    if (numbers[n].integral && !(whole && value >= 1 && value <= INT32_MAX)) {
      return rgh_fail(why, "inputs.%s.%s: expected a whole number from 1 to 2^31 - 1, got %.17g", name, numbers[n].name,
                      value);
    }
    if (integer && !whole) {
      return rgh_fail(why, "inputs.%s.%s: an integer tensor needs a whole number, got %.17g", name, numbers[n].name,
                      value);
    }
  }
  if (fill.kind == RGH_FILL_UNIFORM && !(fill.low <= fill.high && (!integer || fill.high - fill.low <= 0x1p32))) {
    return rgh_fail(why, "inputs.%s: low must not pass high, nor an integer's high be more than 2^32 above it", name);
  }
  if ((ROPE_FILLS | FILL(INV_FREQ) | FILL(GRID_ANGLES)) & (UINT32_C(1) << fill.kind) && !(fill.base > 0)) {
    return rgh_fail(why, "inputs.%s.base: must be positive", name);
  }
  return true;
}

bool rgh_fill_settle(rgh_case *item, int tensor, rgh_message *why) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  rgh_fill *fill = &item->fill[tensor];
  if (fill->kind == RGH_FILL_DEFAULT && !take_default(item, tensor, why)) return false;
  const bool integer = item->dtype[tensor] == RG_I32 || item->dtype[tensor] == RG_I64;
  if (((integer ? FOR_INTEGERS : FOR_FLOATS) & (UINT32_C(1) << fill->kind)) == 0) {
    return rgh_fail(why, "inputs.%s: \"%s\" cannot fill a tensor of dtype %s", spec->name, names[fill->kind],
                    rg_dtype_name(item->dtype[tensor]));
  }
  if (!check_numbers(item, tensor, why)) return false;
  int64_t shape[RG_MAX_RANK];
  const int64_t elements = rgh_case_shape(item, tensor, shape);
  const int64_t along = shape[spec->rank - 1];
  const bool shaped = fill->kind == RGH_FILL_GRID                  ? spec->rank == 2 && along == 2
                      : fill->kind == RGH_FILL_GRID_ANGLES         ? spec->rank == 2 && along % 4 == 0
                      : (ROPE_FILLS & (UINT32_C(1) << fill->kind)) ? spec->rank >= 2 && along % 2 == 0
                                                                   : true;
  if (!shaped) {
    return rgh_fail(why, "inputs.%s: \"%s\" cannot fill a tensor of this shape", spec->name, names[fill->kind]);
  }
  if (integer) {
    double least, greatest;
    integer_bounds(fill, elements, along, &least, &greatest);
    const double limit = item->dtype[tensor] == RG_I32 ? INT32_MAX : MAX_EXACT;
    if (least < -limit || greatest > limit) {
      return rgh_fail(why, "inputs.%s: its numbers pass what the dtype holds", spec->name);
    }
  }
  return true;
}
