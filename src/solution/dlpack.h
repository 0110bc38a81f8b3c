/* <dlpack/dlpack.h> where PyTorch alone is installed: it brings a copy of the same header. */
#include <ATen/dlpack.h>
