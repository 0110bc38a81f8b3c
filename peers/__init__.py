"""Times ropegrad beside PyTorch and other public kernels, on the same cases and by the same protocol."""
