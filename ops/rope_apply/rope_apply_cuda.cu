/* rope_apply on CUDA: device code. */
