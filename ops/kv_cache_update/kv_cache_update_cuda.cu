/* kv_cache_update on CUDA: device code. */
