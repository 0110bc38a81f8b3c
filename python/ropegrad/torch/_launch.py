"""From tensors to a call: `run` runs an operator of the library on tensors."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ropegrad import _core
from ropegrad.torch._contexts import READS_TENSORS, context_of

# (address, dtype, shape, strides), as Context.call takes it.
Described = tuple[int, int, tuple[int, ...], tuple[int, ...]]

OPERATORS: dict[str, int] = {op["name"]: index for index, op in enumerate(_core.operators())}

_COUNTS = [len(op["tensors"]) for op in _core.operators()]


class _Dtypes(dict[torch.dtype, int]):
    def __missing__(self, dtype: torch.dtype) -> int:
        raise TypeError(f"ropegrad has no {dtype}; it takes {', '.join(str(known) for known in self)}")


DTYPES = _Dtypes({getattr(torch, name): code for name, code in _core.DTYPES.items()})

ROTATE_HALF, INTERLEAVED = 0, 1  # rg_style
ADJOINT = 0  # rg_sin_pairing
ONCE = 0  # rg_rounding


def describe(tensor: Tensor, device: int) -> Described:
    if tensor.get_device() != device or tensor.is_meta:  # whose index is the CPU's
        first = f"cuda:{device}" if device >= 0 else "cpu"
        raise ValueError(f"expected all tensors on {first}, got one on {tensor.device}")
    try:
        address = tensor.data_ptr()
    except RuntimeError as error:
        raise BufferError("a tensor without memory of its own") from error
    return address, DTYPES[tensor.dtype], tensor.shape, tensor.stride()


def outline(tensor: Tensor) -> Described:
    """Without an address: of a tensor without values."""
    return 0, DTYPES[tensor.dtype], tuple(tensor.shape), tensor.stride()


def no_heads(like: Tensor, unsqueeze_dim: int) -> Described:
    """As `like`, but without a single head: of a tensor that is not there, which adds nothing to a sum over heads."""
    shape = list(like.shape)
    shape[unsqueeze_dim] = 0
    return 0, DTYPES[like.dtype], tuple(shape), (0,) * len(shape)


def run(operator: int, device: int, tensors: tuple[Any, ...], params: tuple[Any, ...], unsqueeze_dim: int = 1) -> None:
    """tensors: each a tensor, described already or None, in the order of the contract. What the contract has as [B, H,
    S, D] is [B, S, H, D] with unsqueeze_dim = 2; a table may be [S, R]. device: as Tensor.get_device() has it."""
    if not READS_TENSORS:
        tensors = tuple([describe(t, device) if isinstance(t, Tensor) else t for t in tensors])
    context_of(device).call(operator, tensors, params, unsqueeze_dim)


_of_sizes = _core.Context(_core.CPU, 0, threads=1)


def check(operator: int, inputs: tuple[Any, ...], params: tuple[Any, ...], unsqueeze_dim: int = 1) -> None:
    """What `run` would say of dtypes and shapes, about tensors without values. inputs: those of the contract. Shapes of
    symbols are left to the call itself: nothing is known of them that would not fix them."""
    outlines = [outline(t) if isinstance(t, Tensor) else t for t in inputs]
    if all([type(n) is int for o in outlines if o is not None for n in (*o[2], *o[3])]):
        outlines += [None] * (_COUNTS[operator] - len(inputs))
        _of_sizes.sizes(operator, tuple(outlines), params, unsqueeze_dim)
