"""ropegrad for PyTorch: rotary position embeddings whose backward pass is fused and returns every gradient.

    from ropegrad.torch import apply_rotary_pos_emb      # in place of transformers' own

Functions: `apply_rotary_pos_emb`, `apply_rotary`, `update_kv_cache`, `rotary_embedding`, `rope_2d`, `vision_rotary`.
Modules: `RotaryEmbedding`, `VisionRotaryEmbedding`. On the CPU and on CUDA, eager and compiled; the operators are
`torch.ops.ropegrad.*`. Arithmetic is in float32 (float64 for float64 tensors), results are rounded once.

A CUDA graph of `vision_rotary`'s backward pass shares room on the GPU with others captured on the same stream: do not
replay two of them at the same time.
"""

from ropegrad.torch._contexts import check_device
from ropegrad.torch._functional import (
    apply_rotary,
    apply_rotary_pos_emb,
    rope_2d,
    rotary_embedding,
    update_kv_cache,
    vision_rotary,
)
from ropegrad.torch._modules import RotaryEmbedding, VisionRotaryEmbedding, inverse_frequencies

__all__ = [
    "RotaryEmbedding",
    "VisionRotaryEmbedding",
    "apply_rotary",
    "apply_rotary_pos_emb",
    "check_device",
    "inverse_frequencies",
    "rope_2d",
    "rotary_embedding",
    "update_kv_cache",
    "vision_rotary",
]
