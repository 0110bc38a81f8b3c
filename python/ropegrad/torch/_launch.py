"""From tensors to a call: `run` describes each tensor to the library and runs an operator on it."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ropegrad import _core
from ropegrad.torch._contexts import READS_TENSORS, context_of

# (address, dtype, shape, strides), as Context.call takes it; None: not given.
Described = Optional[tuple[int, int, tuple[int, ...], tuple[int, ...]]]

OPERATORS: dict[str, int] = {op["name"]: index for index, op in enumerate(_core.operators())}


class _Dtypes(dict[torch.dtype, int]):
    def __missing__(self, dtype: torch.dtype) -> int:
        raise TypeError(f"ropegrad has no {dtype}; it takes {', '.join(str(known) for known in self)}")


DTYPES = _Dtypes({getattr(torch, name): code for name, code in _core.DTYPES.items()})

ROTATE_HALF, INTERLEAVED = 0, 1  # rg_style
ADJOINT = 0  # rg_sin_pairing
ONCE = 0  # rg_rounding


def describe(tensor: Tensor, device: int) -> tuple[int, int, tuple[int, ...], tuple[int, ...]]:
    if tensor.get_device() != device:
        first = f"cuda:{device}" if device >= 0 else "cpu"
        raise ValueError(f"expected all tensors on {first}, got one on {tensor.device}")
    return tensor.data_ptr(), DTYPES[tensor.dtype], tensor.shape, tensor.stride()


def dense(tensor: Tensor | None, device: int) -> Tensor | Described:
    """A tensor as it is. device: as Tensor.get_device() has it."""
    return tensor if READS_TENSORS or tensor is None else describe(tensor, device)


def heads(tensor: Tensor | None, device: int, unsqueeze_dim: int) -> Tensor | Described:
    """[B, H, S, D], or with unsqueeze_dim = 2 [B, S, H, D], as [B, H, S, D]: a view, by its strides."""
    if tensor is None or (READS_TENSORS and unsqueeze_dim == 1):
        return tensor
    if unsqueeze_dim == 1 or tensor.dim() != 4:  # of another rank the library says what is wrong
        return dense(tensor, device)
    address, dtype, shape, strides = describe(tensor, device)
    return address, dtype, (shape[0], shape[2], shape[1], shape[3]), (strides[0], strides[2], strides[1], strides[3])


def table(tensor: Tensor | None, device: int) -> Tensor | Described:
    """[B, S, R], [1, S, R] or [S, R], which is shown as [1, S, R]."""
    if tensor is None or (READS_TENSORS and tensor.dim() != 2):
        return tensor
    if tensor.dim() != 2:
        return dense(tensor, device)
    address, dtype, shape, strides = describe(tensor, device)
    return address, dtype, (1, *shape), (0, *strides)


def no_heads(like: Tensor, unsqueeze_dim: int) -> Described:
    """As `like`, but without a single head: of a tensor that is not there, which adds nothing to a sum over heads."""
    b, s, d = like.shape[0], like.shape[3 - unsqueeze_dim], like.shape[3]
    return 0, DTYPES[like.dtype], (b, 0, s, d), (0, 0, 0, 1)


def run(operator: int, device: int, tensors: tuple[Any, ...], params: tuple[Any, ...]) -> None:
    context_of(device).call(operator, tensors, params)
