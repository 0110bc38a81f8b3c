/* cupti_library.h: CUPTI, looked for and loaded at run time. */
#ifndef ROPEGRAD_HARNESS_CUDA_CUPTI_LIBRARY_H
#define ROPEGRAD_HARNESS_CUDA_CUPTI_LIBRARY_H

#include <cupti.h>

#include "harness/base/message.h"

/* The functions that are called, by their own names. */
#define RGH_CUPTI_FUNCTIONS(X)      \
  X(cuptiGetVersion)                \
  X(cuptiGetResultString)           \
  X(cuptiActivityRegisterCallbacks) \
  X(cuptiActivityEnable)            \
  X(cuptiActivityDisable)           \
  X(cuptiActivityFlushAll)          \
  X(cuptiActivityGetNextRecord)     \
  X(cuptiActivityGetNumDroppedRecords)

typedef struct rgh_cupti {
  void *library;
  uint32_t version; /* of the library: 130001 is of CUDA 13.0 */
#define RGH_CUPTI_MEMBER(function) __typeof__(function) *function;
  RGH_CUPTI_FUNCTIONS(RGH_CUPTI_MEMBER)
#undef RGH_CUPTI_MEMBER
} rgh_cupti;

/* The environment variable RGH_CUPTI_VARIABLE, if it is set, names the file, and no other is tried. Without it: the
 * loader's path, then the folders of CUDA toolkits, then beside the Python that PATH finds, where PyTorch's lies. The
 * error says so. */
#define RGH_CUPTI_VARIABLE "ROPEGRAD_CUPTI"
bool rgh_cupti_load(rgh_cupti *cupti, rgh_message *why);

#endif /* ROPEGRAD_HARNESS_CUDA_CUPTI_LIBRARY_H */
