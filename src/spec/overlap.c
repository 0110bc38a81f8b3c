#include "src/spec/overlap.h"

/* Both questions ask for integers x with sum(step[k] * x[k]) = target and 0 <= x[k] <= count[k]. A depth-first search
 * over the steps, largest first, decides it: in nested layouts, which are all that occur in practice, what remains
 * below a step is smaller than the step, so each level tries one or two values. */

enum { MAX_TERMS = 2 * RG_MAX_RANK + 1, MAX_NODES = 20000 };

typedef struct term {
  int64_t step, count;
  int64_t center; /* of the trivial solution, for self-overlap */
} term;

typedef struct equation {
  term terms[MAX_TERMS];
  int64_t reach[MAX_TERMS + 1]; /* reach[k]: the most that terms k and later can sum to */
  int num_terms;
  int nodes_left;
  bool only_nontrivial; /* a solution counts only where some x differs from its center */
} equation;

static void add_term(equation *e, int64_t step, int64_t count, int64_t center) {
  if (count == 0) return;
  if (!e->only_nontrivial) {
    /* The sum of two multiples of one step is again any multiple of it; in views of one buffer most steps recur. */
    for (int k = 0; k < e->num_terms; ++k) {
      if (e->terms[k].step != step) continue;
      e->terms[k].count += count;
      return;
    }
  }
  int at = e->num_terms++;
  for (; at > 0 && e->terms[at - 1].step < step; --at) e->terms[at] = e->terms[at - 1];
  e->terms[at] = (term){step, count, center};
}

static bool search(equation *e, int k, int64_t target, bool nontrivial) {
  if (target < 0 || target > e->reach[k]) return false;
  if (k == e->num_terms) return target == 0 && (nontrivial || !e->only_nontrivial);
  const term t = e->terms[k];
  const int64_t rest = target - e->reach[k + 1];
  const int64_t first = rest <= 0 ? 0 : (rest + t.step - 1) / t.step;
  const int64_t last = target / t.step < t.count ? target / t.step : t.count;
  for (int64_t x = first; x <= last; ++x) {
    if (--e->nodes_left < 0) return true;
    if (search(e, k + 1, target - x * t.step, nontrivial || x != t.center)) return true;
  }
  return false;
}

static bool has_solution(equation *e, int64_t target) {
  e->nodes_left = MAX_NODES;
  e->reach[e->num_terms] = 0;
  for (int k = e->num_terms - 1; k >= 0; --k) e->reach[k] = e->reach[k + 1] + e->terms[k].step * e->terms[k].count;
  return search(e, 0, target, false);
}

static bool is_empty(const rg_tensor *tensor) {
  for (int a = 0; a < tensor->rank; ++a) {
    if (tensor->shape[a] == 0) return true;
  }
  return false;
}

static int64_t magnitude(int64_t value) { return value < 0 ? -value : value; }

bool rg_overlaps_itself(const rg_tensor *tensor) {
  if (is_empty(tensor)) return false;
  equation e = {.only_nontrivial = true};
  int64_t target = 0;
  for (int a = 0; a < tensor->rank; ++a) {
    const int64_t last = tensor->shape[a] - 1, step = magnitude(tensor->stride[a]);
    if (last > 0 && step == 0) return true;
    /* The difference of two indices lies in [-last, last]; x = difference + last. */
    add_term(&e, step, 2 * last, last);
    target += step * last;
  }
  /* Nested strides, the usual case: each step is larger than all that lies below it. */
  int64_t below = 0;
  bool nested = true;
  for (int k = e.num_terms - 1; k >= 0; --k) {
    nested = nested && e.terms[k].step > below;
    below += e.terms[k].step * (e.terms[k].count / 2);
  }
  return nested ? false : has_solution(&e, target);
}

rg_extent rg_extent_of(const rg_tensor *tensor) {
  if (is_empty(tensor)) return (rg_extent){1, 0};
  const int64_t size = (int64_t)rg_dtype_size(tensor->dtype);
  rg_extent bytes = {(uintptr_t)tensor->data, (uintptr_t)tensor->data + (uintptr_t)size - 1};
  for (int a = 0; a < tensor->rank; ++a) {
    const int64_t span = (tensor->shape[a] - 1) * tensor->stride[a] * size;
    if (span < 0) bytes.first -= (uintptr_t)-span;
    if (span > 0) bytes.last += (uintptr_t)span;
  }
  return bytes;
}

bool rg_overlap(const rg_tensor *a, const rg_tensor *b) {
  if (is_empty(a) || is_empty(b)) return false;
  const rg_extent ea = rg_extent_of(a), eb = rg_extent_of(b);
  if (!rg_extents_meet(ea, eb)) return false;
  /* first_a + offset_a = first_b + offset_b, with offset_b counted down from last_b so that every step is positive. */
  equation e = {.only_nontrivial = false};
  const rg_tensor *both[2] = {a, b};
  int64_t bytes = 0;
  for (int t = 0; t < 2; ++t) {
    const int64_t size = (int64_t)rg_dtype_size(both[t]->dtype);
    bytes += size - 1;
    for (int axis = 0; axis < both[t]->rank; ++axis) {
      if (both[t]->stride[axis] == 0) continue;
      add_term(&e, magnitude(both[t]->stride[axis]) * size, both[t]->shape[axis] - 1, 0);
    }
  }
  add_term(&e, 1, bytes, 0);
  return has_solution(&e, (int64_t)(eb.last - ea.first));
}
