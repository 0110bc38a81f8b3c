#include "harness/verify/verify.h"

#include <inttypes.h>
#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

const char *rgh_status_name(rgh_status status) {
  static const char *const names[] = {[RGH_PASS] = "pass", [RGH_FAIL] = "fail", [RGH_SKIP] = "skip"};
  return names[status];
}

/* ---- the reference, slice by slice ---- */

/* What a slice's doubles may take: they stay in a core's cache between the reference and the comparison. */
static const int64_t SLICE_BYTES = 2 << 20;

/* One way through the reference: which outputs it computes, cut along which dim. */
typedef struct pass {
  const rg_problem *problem; /* inputs as they were before the run */
  uint32_t outputs;          /* RG_BITs */
  int dim;                   /* -1: in one piece */
  int64_t length;            /* of the whole dim */
  int64_t slice;             /* of one slice of it */
} pass;

/* The axis of a tensor that a slice of `dim` narrows; -1: none (it has no such dim, or serves every index of it). */
static int sliced_axis(const rg_problem *problem, int tensor, int dim) {
  const rg_tensor_spec *spec = &problem->op->tensors[tensor];
  for (int a = 0; a < spec->rank; ++a) {
    if (spec->axes[a].dim == dim && problem->tensor[tensor].shape[a] == problem->dim[dim]) return a;
  }
  return -1;
}

static int64_t output_elements(const rg_problem *problem, uint32_t outputs) {
  int64_t elements = 0;
  for (int t = 0; t < problem->op->num_tensors; ++t) {
    if ((outputs & RG_BIT(t)) != 0) elements += rg_tensor_elements(&problem->tensor[t]);
  }
  return elements;
}

/* Computes and compares the slice that begins at `begin`, in memory for twice the slice's output elements. */
static void compare_slice(const pass *p, int64_t begin, double *memory, rgh_comparison *comparison) {
  rg_problem problem = *p->problem;
  int64_t first[RG_MAX_TENSORS][RG_MAX_RANK] = {{0}};
  if (p->dim >= 0) {
    const int64_t length = p->length - begin < p->slice ? p->length - begin : p->slice;
    for (int t = 0; t < problem.op->num_tensors; ++t) {
      rg_tensor *tensor = &problem.tensor[t];
      const int axis = tensor->dtype != RG_DTYPE_NONE ? sliced_axis(p->problem, t, p->dim) : -1;
      if (axis < 0) continue;
      tensor->data = (char *)tensor->data + begin * tensor->stride[axis] * (int64_t)rg_dtype_size(tensor->dtype);
      tensor->shape[axis] = length;
      first[t][axis] = begin;
    }
    problem.dim[p->dim] = length;
  }
  rg_reference_output out[RG_MAX_TENSORS] = {{0}};
  for (int t = 0; t < problem.op->num_tensors; ++t) {
    if ((p->outputs & RG_BIT(t)) == 0) continue;
    const int64_t elements = rg_tensor_elements(&problem.tensor[t]);
    out[t].value = memory;
    out[t].magnitude = memory + elements;
    memory += 2 * elements;
  }
  problem.op->reference(&problem, out);
  for (int t = 0; t < problem.op->num_tensors; ++t) {
    if (out[t].value != NULL) rgh_compare(&problem.tensor[t], &out[t], t, first[t], comparison);
  }
}

/* False when there is no memory for the doubles. */
static bool compare_pass(const pass *p, int threads, rgh_comparison *comparison) {
  bool enough_memory = true;
  const int64_t slices = p->dim >= 0 ? (p->length + p->slice - 1) / p->slice : 1;
  const int64_t elements = output_elements(p->problem, p->outputs);
  const int64_t slice_elements = p->dim >= 0 && p->length > 0 ? elements / p->length * p->slice : elements;
  const int team = slices <= 1 ? 1 : threads > 0 ? threads : omp_get_max_threads();
#pragma omp parallel num_threads(team)
  {
    rgh_comparison mine;
    rgh_comparison_init(&mine);
    double *memory = malloc((size_t)(2 * slice_elements + 1) * sizeof *memory);
#pragma omp for schedule(dynamic)
    for (int64_t s = 0; s < slices; ++s) {
      if (memory != NULL) compare_slice(p, s * p->slice, memory, &mine);
    }
#pragma omp critical(rgh_verify_merge)
    {
      rgh_comparison_merge(comparison, &mine);
      enough_memory = enough_memory && memory != NULL;
    }
    free(memory);
  }
  return enough_memory;
}

/* Outputs that have the slice dim are compared slice by slice; the others (those of a table that serves every index of
 * the dim, say) sum over it and take the reference in one piece. */
static bool compare_outputs(const rg_problem *problem, uint32_t outputs, int threads, rgh_comparison *comparison) {
  pass sliced = {.problem = problem, .dim = problem->op->slice_dim}, whole = {.problem = problem, .dim = -1};
  for (int t = 0; t < problem->op->num_tensors; ++t) {
    if ((outputs & RG_BIT(t)) == 0) continue;
    const bool has_dim = sliced.dim >= 0 && sliced_axis(problem, t, sliced.dim) >= 0;
    *(has_dim ? &sliced.outputs : &whole.outputs) |= RG_BIT(t);
  }
  if (sliced.outputs != 0) {
    sliced.length = problem->dim[sliced.dim];
    const int64_t bytes = 2 * (int64_t)sizeof(double) * output_elements(problem, sliced.outputs);
    const int64_t slices = bytes / SLICE_BYTES + 1;
    sliced.slice = slices < sliced.length ? (sliced.length + slices - 1) / slices : 1;
    if (!compare_pass(&sliced, threads, comparison)) return false;
  }
  return whole.outputs == 0 || compare_pass(&whole, threads, comparison);
}

/* ---- judging ---- */

static void describe_worst(const rgh_case *item, const rgh_comparison *worst, rgh_message *why) {
  const rg_tensor_spec *spec = &item->op->tensors[worst->tensor];
  char index[RGH_INDEX_TEXT];
  rgh_index_text(worst->index, spec->rank, index);
  if (worst->unwritten) {
    rgh_fail(why, "%s%s was not written (%" PRId64 " of %" PRId64 " elements break the contract)", spec->name, index,
             worst->out_of_contract, worst->compared);
  } else {
    rgh_fail(why,
             "%s%s is %.9g, expected %.9g: %.3g times the allowance (%" PRId64 " of %" PRId64
             " elements break the contract)",
             spec->name, index, worst->got, worst->expected, worst->allowance_used, worst->out_of_contract,
             worst->compared);
  }
}

bool rgh_verify_outputs(rg_context *context, const rgh_buffers *buffers, rgh_comparison *worst, rgh_message *why) {
  const rgh_case *item = buffers->item;
  rgh_comparison_init(worst);
  if (!rgh_buffers_intact(buffers, why)) return false;
  rg_problem problem;
  if (rgh_buffers_resolve(buffers, context, &problem) != RG_OK) {
    return rgh_fail(why, "%s", rg_last_error(context));
  }
  uint32_t outputs = 0;
  for (int t = 0; t < item->op->num_tensors; ++t) {
    rg_tensor *tensor = &problem.tensor[t];
    if (tensor->dtype == RG_DTYPE_NONE) continue;
    if (item->op->tensors[t].role == RG_OUTPUT) {
      outputs |= RG_BIT(t);
    } else {
      tensor->data = rgh_buffers_pristine(buffers, t, tensor->data);
    }
  }
  if (!compare_outputs(&problem, outputs, buffers->threads, worst)) {
    return rgh_fail(why, "no memory for the float64 reference");
  }
  if (worst->out_of_contract == 0) return true;
  describe_worst(item, worst, why);
  return false;
}

static bool same_hashes(const rgh_case *item, const uint64_t *before, const uint64_t *after, const char *what,
                        rgh_message *why) {
  for (int t = 0; t < item->op->num_tensors; ++t) {
    if (before[t] != after[t]) return rgh_fail(why, "%s: %s", item->op->tensors[t].name, what);
  }
  return true;
}

rg_status rgh_verify_run(rg_context *context, const rgh_buffers *buffers, const char *variant) {
  const rg_status status = rg_dev_run(context, buffers->item->op, variant, buffers->args);
  return status == RG_OK ? rg_context_check(context) : status;
}

/* Every run must leave the same bits, and the outputs of the last one are fetched. Returns false with *why or with
 * *call other than RG_OK. */
static bool run_repeatedly(rg_context *context, rgh_buffers *buffers, const rgh_verify_options *options,
                           rg_status *call, rgh_message *why) {
  uint64_t first[RG_MAX_TENSORS], again[RG_MAX_TENSORS];
  for (int run = 0; run < options->repeats || run == 0; ++run) {
    if (run > 0) rgh_buffers_prepare(buffers);
    *call = rgh_verify_run(context, buffers, options->variant);
    if (*call != RG_OK) return rgh_fail(why, "%s", rg_last_error(context));
    if (!rgh_buffers_fetch(buffers, false, why)) return false;
    if (options->repeats <= 1) break;
    rgh_buffers_hash_outputs(buffers, run == 0 ? first : again);
    if (run > 0 && !same_hashes(buffers->item, first, again, "another run on the same inputs gave other bits", why)) {
      return false;
    }
  }
  return true;
}

size_t rgh_verify_device_bytes(const rgh_case *item) { return rgh_buffers_device_bytes(item, 0); }

void rgh_verify_case(rg_context *context, const rgh_case *item, const rgh_verify_options *options,
                     rgh_verdict *verdict) {
  *verdict = (rgh_verdict){.status = RGH_FAIL};
  rgh_comparison_init(&verdict->worst);
  rgh_message *why = &verdict->reason;
  rgh_buffers buffers;
  if (!rgh_buffers_create_on(options->memory, &buffers, item, options->seed, 0, options->threads, why)) {
    verdict->status = RGH_SKIP;
    return;
  }
  uint64_t before[RG_MAX_TENSORS], after[RG_MAX_TENSORS];
  rgh_buffers_hash_inputs(&buffers, before);
  if (run_repeatedly(context, &buffers, options, &verdict->call, why) && rgh_buffers_fetch(&buffers, true, why)) {
    rgh_buffers_hash_inputs(&buffers, after);
    if (same_hashes(item, before, after, "the call wrote to an input", why) &&
        rgh_verify_outputs(context, &buffers, &verdict->worst, why)) {
      verdict->status = RGH_PASS;
    }
  } else if (verdict->call == RG_ERR_NOT_BUILT || verdict->call == RG_ERR_HARDWARE) {
    verdict->status = RGH_SKIP;
  }
  rgh_buffers_destroy(&buffers);
}
