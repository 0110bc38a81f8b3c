/* Machines whose driver cannot serve, each a process of its own because the driver is looked for once:
 *   no_driver_test TEXT: a context on CUDA is refused with a reason that has TEXT; the CPU serves all the same. */
#include <stdio.h>
#include <string.h>

#include "ropegrad/ropegrad.h"

static int failed(const char *what, const char *why) {
  fprintf(stderr, "%s: '%s'\n", what, why);
  return 1;
}

int main(int argc, char **argv) {
  if (argc != 2) return failed("expected one argument", "TEXT");
  char why[256];
  const rg_status status = rg_device_status((DLDevice){kDLCUDA, 0}, why, sizeof why);
  if (status != RG_ERR_HARDWARE) return failed("another status than RG_ERR_HARDWARE", rg_status_string(status));
  if (strstr(why, argv[1]) == NULL) return failed("another reason", why);
  rg_context *context;
  if (rg_context_create(&context, (DLDevice){kDLCUDA, 0}, NULL) != RG_ERR_HARDWARE || context != NULL) {
    return failed("a context was made", why);
  }
  if (rg_context_create(&context, (DLDevice){kDLCPU, 0}, NULL) != RG_OK) return failed("the CPU does not serve", why);
  rg_context_destroy(context);
  return 0;
}
