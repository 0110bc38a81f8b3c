/* solution.h: an operator inside the process of SOL-ExecBench's harness (docs/sol-execbench.md). `ropegrad
 * export-solution` writes these files into a solution together with the operator's own, in place of src/core; they are
 * not part of the library. */
#ifndef ROPEGRAD_SRC_SOLUTION_SOLUTION_H
#define ROPEGRAD_SRC_SOLUTION_SOLUTION_H

#include "src/cuda/launch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One argument of a call. */
typedef struct rgx_argument {
  bool is_tensor;
  DLTensor tensor;
  double number; /* of an option */
} rgx_argument;

/* The operator's kernels, or any of those of kernels.cu: by this one the others are found. */
const void *rgx_any_kernel(void);

/* What calls on this device work with, made by the first of them and kept as long as the process lives. The device is
 * the current one; `queue` is where the calls go in order, a handle of the CUDA runtime. One thread at a time. */
rg_status rgx_device(int device, void *queue, rg_cuda_context **cuda, rg_error *error);

/* Runs the operator on arguments in the order of its benchmark's calls. Waits for nothing, but for the first call on a
 * device. One thread at a time. */
rg_status rgx_run(int device, void *queue, const rgx_argument *arguments, int num_arguments, rg_error *error);

#ifdef __cplusplus
}
#endif

#endif
