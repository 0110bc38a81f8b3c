#include "ropegrad/ropegrad.h"

#define RG_TEXT(value) #value
#define RG_DOTTED(major, minor, patch) RG_TEXT(major) "." RG_TEXT(minor) "." RG_TEXT(patch)

const char *rg_version(void) { return RG_DOTTED(RG_VERSION_MAJOR, RG_VERSION_MINOR, RG_VERSION_PATCH); }

const char *rg_status_string(rg_status status) {
  switch (status) {
    case RG_OK:
      return "success";
    case RG_ERR_NULL:
      return "a needed pointer is NULL";
    case RG_ERR_RANK:
      return "a tensor has the wrong number of dimensions";
    case RG_ERR_SHAPE:
      return "a tensor has the wrong size in some dimension";
    case RG_ERR_DTYPE:
      return "a dtype or a pairing of dtypes is not supported";
    case RG_ERR_STRIDE:
      return "a tensor's first element is not aligned to its element size";
    case RG_ERR_ALIAS:
      return "an output overlaps itself or another tensor";
    case RG_ERR_RANGE:
      return "an option or an index lies outside its range";
    case RG_ERR_OVERFLOW:
      return "sizes or strides exceed the address space";
    case RG_ERR_DEVICE:
      return "a tensor or a context names the wrong device";
    case RG_ERR_VARIANT:
      return "there is no variant of that name";
    case RG_ERR_NOT_BUILT:
      return "this build leaves out what was asked for";
    case RG_ERR_HARDWARE:
      return "this machine lacks what was asked for";
    case RG_ERR_ALLOC:
      return "out of memory";
    case RG_ERR_CUDA:
      return "the CUDA driver reported an error";
    case RG_ERR_INTERNAL:
      return "internal error in ropegrad";
  }
  return "unknown status";
}
