/* rotary_embedding on CUDA: device code. */
