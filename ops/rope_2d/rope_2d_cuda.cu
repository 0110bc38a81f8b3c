/* rope_2d on CUDA: device code. */
