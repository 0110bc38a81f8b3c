/* device_error.h: how a kernel reports an index that only the device can read. Both sides include this.
 *
 * The word is RG_CUDA_NO_ERROR while all is well. A kernel that meets an index out of range, at place i of the index
 * tensor, raises it by an atomic maximum to RG_CUDA_ERROR_AT(i), which is the larger the earlier the place: the first
 * one is reported, whatever the order of the threads. rg_context_check reads and clears the word. */
#ifndef ROPEGRAD_SRC_CUDA_DEVICE_ERROR_H
#define ROPEGRAD_SRC_CUDA_DEVICE_ERROR_H

typedef unsigned long long rg_cuda_error_word;

#define RG_CUDA_NO_ERROR 0ULL
#define RG_CUDA_ERROR_AT(place) (~(rg_cuda_error_word)(place))
#define RG_CUDA_ERROR_PLACE(word) ((long long)(~(word)))

#endif
