/* vision_rotary on CUDA: device code. */
