"""Rotary position embeddings (RoPE), forward and backward, with every gradient.

``ropegrad.numpy`` has the operators on NumPy arrays, on the CPU; ``ropegrad.torch`` on PyTorch tensors. Neither is
imported here: each needs its package. What they raise is in ``ropegrad.errors``.
"""

from ropegrad import _core, errors
from ropegrad.errors import Error

__all__ = ["Error", "__version__", "errors"]

__version__: str = _core.VERSION
