#include "harness/cases/layout_json.h"

#include <stdio.h>
#include <string.h>

#include "harness/cases/json_value.h"

/* A list of different axes; `axes` gets them in order. Returns how many, or -1. */
static int read_axes(const json_t *value, int rank, const char *path, int8_t *axes, rgh_message *why) {
  if (!json_is_array(value)) {
    rgh_fail(why, "%s: expected a list of axes, got %s", path, rgh_json_kind(value));
    return -1;
  }
  if (json_array_size(value) > (size_t)rank) {
    rgh_fail(why, "%s: the tensor has only %d axes", path, rank);
    return -1;
  }
  uint32_t seen = 0;
  for (int i = 0; i < (int)json_array_size(value); ++i) {
    const json_t *axis = json_array_get(value, (size_t)i);
    const json_int_t number = json_is_integer(axis) ? json_integer_value(axis) : -1;
    if (number < 0 || number >= rank || (seen & RG_BIT(number)) != 0) {
      rgh_fail(why, "%s: entry %d must be an axis from 0 to %d that was not named before", path, i, rank - 1);
      return -1;
    }
    seen |= RG_BIT(number);
    axes[i] = (int8_t)number;
  }
  return (int)json_array_size(value);
}

static bool read_pad(const json_t *value, int rank, const char *path, rgh_layout *layout, rgh_message *why) {
  if (!json_is_array(value)) {
    const int innermost = layout->reordered ? layout->order[rank - 1] : rank - 1;
    return rgh_json_size(value, 0, path, &layout->pad[innermost], why);
  }
  if (json_array_size(value) != (size_t)rank) return rgh_fail(why, "%s: expected %d numbers, one per axis", path, rank);
  for (int a = 0; a < rank; ++a) {
    if (!rgh_json_size(json_array_get(value, (size_t)a), 0, path, &layout->pad[a], why)) return false;
  }
  return true;
}

bool rgh_layout_from_json(json_t *json, int rank, const char *tensor, rgh_layout *layout, rgh_message *why) {
  char path[160];
  int8_t axes[RG_MAX_RANK];
  /* `pad` is read once the order is known, which says where the innermost axis is. */
  json_t *order = json_object_get(json, "order"), *pad = json_object_get(json, "pad");
  if (order != NULL) {
    snprintf(path, sizeof path, "layouts.%s.order", tensor);
    const int count = read_axes(order, rank, path, layout->order, why);
    if (count < 0) return false;
    if (count < rank) return rgh_fail(why, "%s: expected all %d axes, got %d", path, rank, count);
    layout->reordered = true;
  }
  snprintf(path, sizeof path, "layouts.%s.pad", tensor);
  if (pad != NULL && !read_pad(pad, rank, path, layout, why)) return false;
  const char *key;
  json_t *value;
  json_object_foreach(json, key, value) {
    snprintf(path, sizeof path, "layouts.%s.%s", tensor, key);
    if (value == order || value == pad) continue;
    if (strcmp(key, "offset") == 0) {
      if (!rgh_json_size(value, 0, path, &layout->offset, why)) return false;
    } else if (strcmp(key, "stride_last") == 0) {
      if (!rgh_json_size(value, 1, path, &layout->stride_last, why)) return false;
    } else if (strcmp(key, "expand") == 0 || strcmp(key, "reverse") == 0) {
      uint32_t *set = strcmp(key, "expand") == 0 ? &layout->expanded : &layout->reversed;
      const int count = read_axes(value, rank, path, axes, why);
      if (count < 0) return false;
      for (int i = 0; i < count; ++i) *set |= RG_BIT(axes[i]);
    } else {
      return rgh_fail(why, "%s: unknown key", path);
    }
  }
  return true;
}
