/* Every operator with any descriptors: a status each time, no byte outside the tensors read or written
 * (AddressSanitizer), nothing written unless the call succeeded, inputs never. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/draw_call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds) {
  if (!holds) abort();
}

/* True where a wanted output lies in the block of tensor `index`. */
static bool holds_output(const drawn_call *call, int index) {
  const drawn_tensor *host = &call->tensor[index];
  for (int t = 0; t < call->op->num_tensors; ++t) {
    const DLTensor *given = rg_dev_get_tensor(call->op, call->args, t);
    if (call->op->tensors[t].role != RG_OUTPUT || given == NULL) continue;
    const uintptr_t at = (uintptr_t)given->data, first = (uintptr_t)host->block;
    if (at >= first && at <= first + host->block_bytes) return true;
  }
  return false;
}

static void check_memory(const drawn_call *call, rg_status status) {
  for (int t = 0; t < call->op->num_tensors; ++t) {
    const drawn_tensor *tensor = &call->tensor[t];
    if (tensor->block == NULL || (status == RG_OK && holds_output(call, t))) continue;
    demand(memcmp(tensor->block, tensor->kept, tensor->block_bytes) == 0);
  }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  rg_context *context;
  demand(rg_context_create(&context, (DLDevice){kDLCPU, 0}, &(rg_context_options){.threads = 1}) == RG_OK);
  drawn_call call;
  if (draw_call(&call, data, size)) {
    const rg_status status = rg_dev_run(context, call.op, call.variant, call.args);
    demand(strcmp(rg_status_string(status), "unknown status") != 0);
    demand(status != RG_ERR_INTERNAL && status != RG_ERR_CUDA);
    demand((status == RG_OK) == (rg_last_error(context)[0] == '\0'));
    check_memory(&call, status);
  }
  release_call(&call);
  rg_context_destroy(context);
  return 0;
}
