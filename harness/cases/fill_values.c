/* The values of the fills. Those that depend on an element's number alone are made in chunks, the others row by row. */
#include <math.h>
#include <omp.h>
#include <string.h>

#include "harness/cases/draw.h"
#include "harness/cases/fill.h"

__extension__ typedef unsigned __int128 wide;

/* A fill at work on one tensor. */
typedef struct work {
  const rgh_fill *fill;
  rg_tensor target; /* stride-0 axes have size 1 */
  int64_t elements;
  rgh_stream values, choices;
  int frequency_axis;      /* inv_freq: the axis that runs over the frequencies */
  int64_t factor, summand; /* shuffled, negatives: i -> (factor * i + summand) mod n */
} work;

/* ---- flat fills ---- */

static void store_floats(const rg_tensor *target, int64_t first, int64_t stride, const float *value, int64_t count) {
  if (target->dtype == RG_F32) {
    float *out = (float *)target->data + first;
    for (int64_t i = 0; i < count; ++i) out[i * stride] = value[i];
  } else if (target->dtype == RG_BF16) {
    uint16_t *out = (uint16_t *)target->data + first;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t bits;
      memcpy(&bits, &value[i], sizeof bits);
      /* To nearest even; the values are finite. */
      out[i * stride] = (uint16_t)((bits + UINT32_C(0x7fff) + (bits >> 16 & 1)) >> 16);
    }
  } else {
    for (int64_t i = 0; i < count; ++i) rg_dtype_write(target->dtype, target->data, first + i * stride, value[i]);
  }
}

static void store_doubles(const rg_tensor *target, int64_t first, int64_t stride, const double *value, int64_t count) {
  for (int64_t i = 0; i < count; ++i) rg_dtype_write(target->dtype, target->data, first + i * stride, value[i]);
}

/* The values of elements [chunk * RGH_CHUNK, (chunk + 1) * RGH_CHUNK), as floats for `normal`, else as doubles. */
static void make_chunk(const work *w, int64_t chunk, float *single, double *value) {
  const rgh_fill *fill = w->fill;
  uint32_t word[RGH_CHUNK];
  switch (fill->kind) {
    case RGH_FILL_CONSTANT:
      for (int e = 0; e < RGH_CHUNK; ++e) value[e] = fill->value;
      break;
    case RGH_FILL_UNIFORM: {
      const bool integer = w->target.dtype == RG_I32 || w->target.dtype == RG_I64;
      rgh_draw_words(&w->values, (uint64_t)chunk, word);
      for (int e = 0; e < RGH_CHUNK; ++e) {
        const double above = (fill->high - fill->low) * (word[e] * 0x1p-32);
        value[e] = fill->low + (integer ? floor(above) : above);
      }
      break;
    }
    case RGH_FILL_SPECIAL: {
      static const double special[] = {(double)INFINITY, -(double)INFINITY, (double)NAN, 0.0, -0.0};
      const uint32_t every = (uint32_t)fill->every;
      rgh_draw_normals(&w->values, (uint64_t)chunk, single);
      rgh_draw_words(&w->choices, (uint64_t)chunk, word);
      for (int e = 0; e < RGH_CHUNK; ++e) {
        value[e] = word[e] % every == 0 ? special[word[e] / every % 5] : fill->scale * single[e];
      }
      break;
    }
    default:
      rgh_draw_normals(&w->values, (uint64_t)chunk, single);
      for (int e = 0; e < RGH_CHUNK; ++e) single[e] *= (float)fill->scale;
  }
}

static void fill_chunk(const work *w, int64_t chunk) {
  const rg_tensor *target = &w->target;
  float single[RGH_CHUNK];
  double value[RGH_CHUNK];
  make_chunk(w, chunk, single, value);
  const int64_t begin = chunk * RGH_CHUNK;
  const int64_t end = begin + RGH_CHUNK < w->elements ? begin + RGH_CHUNK : w->elements;
  const int last = target->rank - 1;
  for (int64_t e = begin; e < end;) {
    int64_t first = 0, rest = e;
    for (int a = last; a >= 0; --a) {
      first += rest % target->shape[a] * target->stride[a];
      rest /= target->shape[a];
    }
    const int64_t in_row = target->shape[last] - e % target->shape[last];
    const int64_t count = in_row < end - e ? in_row : end - e;
    if (w->fill->kind == RGH_FILL_NORMAL) {
      store_floats(target, first, target->stride[last], single + (e - begin), count);
    } else {
      store_doubles(target, first, target->stride[last], value + (e - begin), count);
    }
    e += count;
  }
}

/* ---- fills that depend on the place in the shape ---- */

/* The angle, in radians, of frequency j of n at a position: position * base^(-j/n). */
static double angle_of(const rgh_fill *fill, double position, int64_t j, int64_t n) {
  return position * pow(fill->base, -(double)j / (double)n);
}

static double rope_angle(const work *w, const int64_t *index) {
  const int last = w->target.rank - 1;
  const int64_t half = w->target.shape[last] / 2;
  const int64_t j = w->fill->interleaved != 0 ? index[last] / 2 : index[last] % half;
  return angle_of(w->fill, w->fill->start + w->fill->step * (double)index[last - 1], j, half);
}

static double grid_angle(const work *w, const int64_t *index) {
  const int64_t quarter = w->target.shape[1] / 4, width = (int64_t)w->fill->width;
  const int64_t j = index[1] % (2 * quarter);
  const int64_t coordinate = j < quarter ? index[0] / width : index[0] % width;
  return angle_of(w->fill, w->fill->start + (double)coordinate, j % quarter, quarter);
}

/* 0..n-1 in another order: multiplication by a number coprime to n. */
static int64_t permuted(const work *w, int64_t i, int64_t n) {
  return (int64_t)(((wide)w->factor * (wide)i + (wide)w->summand) % (wide)n);
}

static double value_at(const work *w, const int64_t *index) {
  const rgh_fill *fill = w->fill;
  const int last = w->target.rank - 1;
  const int64_t i = index[last], n = w->target.shape[last];
  int64_t place = i;
  switch (fill->kind) {
    case RGH_FILL_INV_FREQ:
      return angle_of(fill, 1, index[w->frequency_axis], w->target.shape[w->frequency_axis]);
    case RGH_FILL_ROPE_ANGLES:
      return fill->scale * rope_angle(w, index);
    case RGH_FILL_ROPE_COS:
      return fill->scale * cos(rope_angle(w, index));
    case RGH_FILL_ROPE_SIN:
      return fill->scale * sin(rope_angle(w, index));
    case RGH_FILL_GRID_ANGLES:
      return grid_angle(w, index);
    case RGH_FILL_GRID: {
      const int64_t width = (int64_t)fill->width;
      return (double)(i == 0 ? index[0] / width : index[0] % width);
    }
    case RGH_FILL_REVERSED:
      place = n - 1 - i;
      break;
    case RGH_FILL_DUPLICATES:
      place = i / 2;
      break;
    case RGH_FILL_NEGATIVES:
      if (i % (int64_t)fill->every == 0) return (double)(-1 - i);
      place = permuted(w, i, n);
      break;
    case RGH_FILL_SHUFFLED:
      place = permuted(w, i, n);
      break;
    default:
      break;
  }
  return fill->start + fill->step * (double)place;
}

static void fill_row(const work *w, int64_t row) {
  const rg_tensor *target = &w->target;
  const int last = target->rank - 1;
  int64_t index[RG_MAX_RANK] = {0}, first = 0, rest = row;
  for (int a = last - 1; a >= 0; --a) {
    index[a] = rest % target->shape[a];
    rest /= target->shape[a];
    first += index[a] * target->stride[a];
  }
  for (; index[last] < target->shape[last]; ++index[last]) {
    rg_dtype_write(target->dtype, target->data, first + index[last] * target->stride[last], value_at(w, index));
  }
}

/* ---- all ---- */

static bool is_dense(const rg_tensor *tensor) {
  int64_t run = 1;
  for (int a = tensor->rank - 1; a >= 0; --a) {
    if (tensor->shape[a] != 1 && tensor->stride[a] != run) return false;
    run *= tensor->shape[a];
  }
  return true;
}

static int64_t greatest_common_divisor(int64_t a, int64_t b) {
  while (b != 0) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

void rgh_fill_tensor(const rgh_case *item, int tensor, uint64_t seed, const rg_tensor *target, int threads) {
  const rg_tensor_spec *spec = &item->op->tensors[tensor];
  work w = {.fill = &item->fill[tensor],
            .target = *target,
            .values = rgh_stream_of(seed, item->op->name, item->name, spec->name, 0),
            .choices = rgh_stream_of(seed, item->op->name, item->name, spec->name, 1)};
  for (int a = 0; a < target->rank; ++a) {
    if (target->stride[a] == 0 && target->shape[a] > 1) w.target.shape[a] = 1;
  }
  w.elements = rg_tensor_elements(&w.target);
  if (w.elements == 0) return;
  const bool flat = rgh_fill_is_flat(w.fill);
  if (flat && is_dense(&w.target)) {
    w.target.rank = 1;
    w.target.shape[0] = w.elements;
    w.target.stride[0] = 1;
  }
  const int last = w.target.rank - 1;
  const int64_t n = w.target.shape[last];
  w.frequency_axis = last;
  while (!flat && w.frequency_axis > 0 && spec->axes[w.frequency_axis].dim == RG_AXIS_FIXED) --w.frequency_axis;
  for (w.factor = n / 8 * 5 + 1; greatest_common_divisor(w.factor, n) != 1;) ++w.factor;
  w.summand = (int64_t)(rgh_draw_bits(&w.choices, 0) % (uint64_t)n);

  const int64_t pieces = flat ? (w.elements + RGH_CHUNK - 1) / RGH_CHUNK : w.elements / n;
  const int64_t few = flat ? 64 : 1 + 4096 / n; /* pieces that are not worth waking a thread for */
  const int team = pieces <= few ? 1 : threads > 0 ? threads : omp_get_max_threads();
#pragma omp parallel for schedule(static) num_threads(team)
  for (int64_t piece = 0; piece < pieces; ++piece) {
    if (flat) {
      fill_chunk(&w, piece);
    } else {
      fill_row(&w, piece);
    }
  }
}
