/* dtypes as data: names, sizes, and exact conversion of single elements through double. Speed matters here only to the
 * reference; the kernels convert whole vectors in src/simd. */
#include <math.h>
#include <string.h>

#include "ropegrad/ropegrad_dev.h"

typedef struct dtype_facts {
  const char *name;
  DLDataType dlpack;
  int precision;    /* significand bits with the hidden one; 0 for integers */
  int min_exponent; /* of the smallest normal value, as in 2^min_exponent */
  double max;
} dtype_facts;

static const dtype_facts facts[RG_NUM_DTYPES] = {
    [RG_DTYPE_NONE] = {"none", {0, 0, 0}, 0, 0, 0.0},
    [RG_F32] = {"float32", {kDLFloat, 32, 1}, 24, -126, 0x1.fffffep127},
    [RG_BF16] = {"bfloat16", {kDLBfloat, 16, 1}, 8, -126, 0x1.fep127},
    [RG_F16] = {"float16", {kDLFloat, 16, 1}, 11, -14, 65504.0},
    [RG_F64] = {"float64", {kDLFloat, 64, 1}, 53, -1022, 0x1.fffffffffffffp1023},
    [RG_I32] = {"int32", {kDLInt, 32, 1}, 0, 0, 0.0},
    [RG_I64] = {"int64", {kDLInt, 64, 1}, 0, 0, 0.0},
};

const char *rg_dtype_name(rg_dtype dtype) { return facts[dtype].name; }

rg_dtype rg_dtype_from_name(const char *name) {
  for (int d = 1; d < RG_NUM_DTYPES; ++d) {
    if (strcmp(name, facts[d].name) == 0) return (rg_dtype)d;
  }
  return RG_DTYPE_NONE;
}

bool rg_dtype_allowed(rg_dtype_rule rule, rg_dtype dtype) {
  const bool integer = dtype == RG_I32 || dtype == RG_I64, wide = dtype == RG_F32 || dtype == RG_F64;
  switch (rule) {
    case RG_DTYPES_PAYLOAD:
    case RG_DTYPES_TABLE:
      return wide || dtype == RG_BF16 || dtype == RG_F16;
    case RG_DTYPES_ANGLE:
      return wide;
    case RG_DTYPES_INT64:
      return dtype == RG_I64;
    case RG_DTYPES_INDEX:
      return integer;
    case RG_DTYPES_POSITION:
      return integer || wide;
  }
  return false;
}

const char *rg_dtype_rule_text(rg_dtype_rule rule) {
  switch (rule) {
    case RG_DTYPES_PAYLOAD:
      return "float32, bfloat16, float16 or float64";
    case RG_DTYPES_TABLE:
      return "float32 or the dtype of the tensor it rotates";
    case RG_DTYPES_ANGLE:
      return "float32 or float64";
    case RG_DTYPES_INT64:
      return "int64";
    case RG_DTYPES_INDEX:
      return "int64 or int32";
    case RG_DTYPES_POSITION:
      return "int64, int32, float32 or float64";
  }
  return "";
}

rg_dtype rg_dtype_from_dlpack(DLDataType dtype) {
  for (int d = 1; d < RG_NUM_DTYPES; ++d) {
    const DLDataType known = facts[d].dlpack;
    if (dtype.code == known.code && dtype.bits == known.bits && dtype.lanes == known.lanes) return (rg_dtype)d;
  }
  return RG_DTYPE_NONE;
}

DLDataType rg_dtype_to_dlpack(rg_dtype dtype) { return facts[dtype].dlpack; }
size_t rg_dtype_size(rg_dtype dtype) { return facts[dtype].dlpack.bits / 8u; }
double rg_dtype_unit_roundoff(rg_dtype dtype) {
  return facts[dtype].precision > 0 ? ldexp(1.0, -facts[dtype].precision) : 0.0;
}

/* The spacing of dtype's values around a finite |value|, from the exponent field of the double itself. */
static double spacing(const dtype_facts *f, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  if (exponent < f->min_exponent) exponent = f->min_exponent;
  const int scale = exponent - (f->precision - 1);
  if (scale < -1022) return ldexp(1.0, scale);
  bits = (uint64_t)(scale + 1023) << 52;
  memcpy(&value, &bits, sizeof value);
  return value;
}

double rg_dtype_half_ulp(rg_dtype dtype, double value) {
  return facts[dtype].precision > 0 && isfinite(value) ? 0.5 * spacing(&facts[dtype], value) : 0.0;
}

double rg_dtype_round(rg_dtype dtype, double value) {
  const dtype_facts *f = &facts[dtype];
  if (dtype == RG_F64 || f->precision == 0 || !isfinite(value)) return value;
  if (fabs(value) > 2.0 * f->max) return copysign(INFINITY, value); /* the sum below could overflow */
  /* Adding 1.5 * 2^52 spacings leaves room for no bits below one spacing, so the addition rounds to nearest even. */
  const double shift = 0x1.8p52 * spacing(f, value);
  const double rounded = (value + shift) - shift;
  if (fabs(rounded) > f->max) return copysign(INFINITY, value);
  return copysign(rounded, value);
}

static double read_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction ? (double)NAN : (double)INFINITY;
  } else if (exponent == 0) {
    magnitude = fraction * 0x1p-24;
  } else {
    magnitude = ldexp(1024 + fraction, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

/* `value` is one that float16 has. */
static uint16_t write_f16(double value) {
  const uint16_t sign = signbit(value) ? 0x8000 : 0;
  if (isnan(value)) return (uint16_t)(sign | 0x7e00);
  if (isinf(value)) return (uint16_t)(sign | 0x7c00);
  const double magnitude = fabs(value);
  if (magnitude < 0x1p-14) return (uint16_t)(sign | (uint16_t)(magnitude * 0x1p24));
  int exponent;
  const double fraction = frexp(magnitude, &exponent); /* [0.5, 1) */
  return (uint16_t)(sign | ((exponent + 14) << 10) | ((int)(fraction * 2048) & 1023));
}

double rg_dtype_read(rg_dtype dtype, const void *base, int64_t index) {
  switch (dtype) {
    case RG_F32:
      return ((const float *)base)[index];
    case RG_F64:
      return ((const double *)base)[index];
    case RG_F16:
      return read_f16(((const uint16_t *)base)[index]);
    case RG_BF16: {
      const uint32_t bits = (uint32_t)((const uint16_t *)base)[index] << 16;
      float value;
      memcpy(&value, &bits, sizeof value);
      return value;
    }
    case RG_I32:
    case RG_I64:
      return (double)rg_dtype_read_index(dtype, base, index);
    case RG_DTYPE_NONE:
    case RG_NUM_DTYPES:
      break;
  }
  return (double)NAN;
}

int64_t rg_dtype_read_index(rg_dtype dtype, const void *base, int64_t index) {
  return dtype == RG_I32 ? ((const int32_t *)base)[index] : ((const int64_t *)base)[index];
}

void rg_dtype_write(rg_dtype dtype, void *base, int64_t index, double value) {
  switch (dtype) {
    case RG_F32:
      ((float *)base)[index] = (float)rg_dtype_round(RG_F32, value);
      break;
    case RG_F64:
      ((double *)base)[index] = value;
      break;
    case RG_F16:
      ((uint16_t *)base)[index] = write_f16(rg_dtype_round(RG_F16, value));
      break;
    case RG_BF16: {
      const float rounded = (float)rg_dtype_round(RG_BF16, value);
      uint32_t bits;
      memcpy(&bits, &rounded, sizeof bits);
      ((uint16_t *)base)[index] = (uint16_t)(bits >> 16 | (isnan(value) ? 0x40u : 0u));
      break;
    }
    case RG_I32:
      ((int32_t *)base)[index] = (int32_t)value;
      break;
    case RG_I64:
      ((int64_t *)base)[index] = (int64_t)value;
      break;
    case RG_DTYPE_NONE:
    case RG_NUM_DTYPES:
      break;
  }
}
