#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/base/json_file.h"
#include "harness/record/environment.h"
#include "tools/ropegrad/tool.h"

/* ---- the device ---- */

static void list_variants(char *list, size_t room, DLDeviceType device) {
  size_t used = 0;
  list[0] = '\0';
  for (int v = 0; v < rg_dev_num_variants(); v++) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (info.device != device || used >= room) continue;
    used += (size_t)snprintf(list + used, room - used, "%s%s", used > 0 ? ", " : "", info.name);
  }
}

/* Says why a context could not be made. Returns the exit code. */
static int complain_context(const rgt_session *session, DLDevice device, rg_status status) {
  const rgt_options *o = session->options;
  if (status == RG_ERR_VARIANT) {
    char list[256];
    list_variants(list, sizeof list, device.device_type);
    return rgt_complain(RGT_WRONG_USE, o->command, "device %s has no variant '%s'; there are: %s", session->device,
                        o->variant, list[0] != '\0' ? list : "none");
  }
  for (int v = 0; o->variant != NULL && v < rg_dev_num_variants(); v++) {
    rg_variant_info info;
    rg_dev_variant(v, &info);
    if (strcmp(info.name, o->variant) != 0 || info.device != device.device_type || info.status == RG_OK) continue;
    return rgt_complain(RGT_LACKING, o->command, "variant %s cannot run here: %s", info.name, info.reason);
  }
  char why[RG_REASON_BYTES];
  rg_device_status(device, why, sizeof why);
  return rgt_complain(RGT_LACKING, o->command, "device %s cannot be used: %s", session->device,
                      why[0] != '\0' ? why : rg_status_string(status));
}

/* The device asked for; without one, CUDA where it can run, else the CPU. */
static bool open_device(rgt_session *session, int *code) {
  const rgt_options *o = session->options;
  const rg_context_options options = {.threads = o->threads, .variant = o->variant};
  DLDevice device = o->device_given ? o->device : (DLDevice){kDLCUDA, 0};
  rg_status status = rg_context_create(&session->context, device, &options);
  if (status != RG_OK && !o->device_given) {
    device = (DLDevice){kDLCPU, 0};
    status = rg_context_create(&session->context, device, &options);
  }
  if (device.device_type == kDLCUDA) {
    snprintf(session->device, sizeof session->device, "cuda:%d", device.device_id);
    session->device_index = device.device_id;
    session->on_gpu = true;
  } else {
    snprintf(session->device, sizeof session->device, "cpu");
  }
  if (status == RG_OK) return true;
  *code = complain_context(session, device, status);
  return false;
}

/* The GPU's memory is taken once, for the largest case; one that has too little for that may still run the others. */
static bool open_gpu(rgt_session *session, size_t (*device_bytes)(const rgh_case *item), int *code) {
  size_t pool_bytes = 0;
  for (int c = 0; c < session->selection.num_cases; c++) {
    if (session->selection.too_large[c]) continue;
    const size_t bytes = device_bytes(session->selection.cases[c]);
    if (bytes > pool_bytes) pool_bytes = bytes;
  }
  const int threads = session->run.options.threads;
  rgh_message why;
  if (!rgh_cuda_open(&session->cuda, session->context, session->device_index, pool_bytes, threads, &why)) {
    *code = rgt_complain(RGT_LACKING, session->options->command, "%s", why.text);
    return false;
  }
  rgh_cuda_read_facts(session->cuda, &session->gpu);
  session->run.gpu = &session->gpu;
  session->run.options.device = rgh_cuda_device(session->cuda);
  return true;
}

/* ---- begin and end ---- */

void rgt_session_print_head(const rgt_session *session) {
  char version[128];
  rgh_version_text(version, sizeof version);
  const rgh_run *run = &session->run;
  rgh_message suite;
  rgh_fail(&suite, "%s", run->suite); /* a name out of a file may hold what a terminal obeys */
  printf("ropegrad %s: %s, suite %s, %d case%s\n", version, session->options->command, suite.text, run->num_rows,
         run->num_rows == 1 ? "" : "s");
  const char *model = run->gpu != NULL ? run->gpu->name : session->machine.cpu_model;
  printf("device %s%s%s%s, variant %s, %d thread%s, seed %llu\n", run->device, model[0] != '\0' ? " (" : "", model,
         model[0] != '\0' ? ")" : "", run->variant, run->options.threads, run->options.threads == 1 ? "" : "s",
         (unsigned long long)run->options.seed);
  if (session->selection.left_out > 0) {
    printf("left out: %d case%s without an in-place mode\n", session->selection.left_out,
           session->selection.left_out == 1 ? "" : "s");
  }
}

void rgt_session_abandon(rgt_session *session) {
  if (session->timer.destroy != NULL) session->timer.destroy(&session->timer);
  rgh_cuda_close(session->cuda);
  rg_context_destroy(session->context);
  rgh_selection_free(&session->selection);
  free(session->rows);
}

bool rgt_session_begin(rgt_session *session, const rgt_options *options, size_t (*device_bytes)(const rgh_case *item),
                       int *code) {
  memset(session, 0, sizeof *session);
  session->options = options;
  rgt_folders_find(&session->folders);
  rgh_request request = options->request;
  request.folders = session->folders.list;
  rgh_message why;
  if (!rgh_select(&request, &session->selection, &why) ||
      (options->json != NULL && !rgh_json_writable(options->json, &why))) {
    *code = rgt_complain(RGT_WRONG_USE, options->command, "%s", why.text);
    rgt_session_abandon(session);
    return false;
  }
  session->rows = calloc((size_t)session->selection.num_cases, sizeof *session->rows);
  if (session->rows == NULL || !open_device(session, code)) {
    if (session->rows == NULL) *code = rgt_complain(RGT_LACKING, options->command, "no memory");
    rgt_session_abandon(session);
    return false;
  }
  for (int c = 0; c < session->selection.num_cases; c++) session->rows[c].item = session->selection.cases[c];
  rgh_machine_read(&session->machine);
  session->run = (rgh_run){
      .suite = session->selection.suite.name,
      .suite_digest = session->selection.suite.digest,
      .device = session->device,
      .variant = rg_dev_default_variant(session->context),
      .repeats = options->repeat,
      .options = {.threads = options->threads > 0 ? options->threads : omp_get_max_threads(),
                  .strict = options->strict,
                  .warm = options->warm,
                  .budget_s = options->budget_s,
                  .seed = options->seed},
      .machine = &session->machine,
      .argv = options->argv,
      .rows = session->rows,
      .num_rows = session->selection.num_cases,
  };
  if (session->on_gpu && !open_gpu(session, device_bytes, code)) {
    rgt_session_abandon(session);
    return false;
  }
  return true;
}

bool rgt_session_skips(rgt_session *session, int index) {
  if (!session->selection.too_large[index]) return false;
  rgh_verdict *verdict = &session->rows[index].measurement.verdict;
  verdict->status = RGH_SKIP;
  rgh_fail(&verdict->reason, "larger than --max-bytes: %lld bytes",
           (long long)rgh_case_bytes(session->rows[index].item));
  return true;
}

static int exit_code(const rgt_session *session) {
  int lacking = 0;
  for (int c = 0; c < session->run.num_rows; c++) {
    lacking += session->rows[c].measurement.verdict.status == RGH_SKIP && !session->selection.too_large[c];
  }
  if (rgh_count(&session->run, RGH_FAIL) > 0) return RGT_MISMATCH;
  return lacking > 0 ? RGT_LACKING : RGT_FINE;
}

int rgt_session_end(rgt_session *session, json_t *(*to_json)(const rgh_run *)) {
  const char *command = session->options->command;
  printf("\n%d passed, %d failed, %d skipped\n", rgh_count(&session->run, RGH_PASS), rgh_count(&session->run, RGH_FAIL),
         rgh_count(&session->run, RGH_SKIP));
  int code = exit_code(session);
  if (session->options->json != NULL) {
    /* Clocks and temperature as the work has left them. */
    if (session->cuda != NULL) rgh_cuda_read_facts(session->cuda, &session->gpu);
    json_t *json = to_json(&session->run);
    rgh_message why;
    if (json == NULL) {
      code = rgt_complain(RGT_LACKING, command, "no memory for the record");
    } else if (!rgh_json_save(session->options->json, json, &why)) {
      code = rgt_complain(RGT_WRONG_USE, command, "%s", why.text);
    }
    json_decref(json);
  }
  rgt_session_abandon(session);
  return code;
}
