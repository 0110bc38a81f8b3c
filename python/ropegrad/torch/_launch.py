"""From tensors to a call: `run` describes each tensor to the library and runs an operator on it."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ropegrad import _core
from ropegrad.torch._contexts import context_of

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


def dense(tensor: Tensor | None, device: int) -> Described:
    """A tensor as it is. device: as Tensor.get_device() has it."""
    if tensor is None:
        return None
    if tensor.get_device() != device:
        raise _refuse(tensor, device)
    return tensor.data_ptr(), DTYPES[tensor.dtype], tensor.shape, tensor.stride()


def heads(tensor: Tensor | None, device: int, unsqueeze_dim: int) -> Described:
    """[B, H, S, D], or with unsqueeze_dim = 2 [B, S, H, D], as [B, H, S, D]: a view, by its strides."""
    if tensor is None:
        return None
    if tensor.get_device() != device:
        raise _refuse(tensor, device)
    shape: tuple[int, ...] = tensor.shape
    strides: tuple[int, ...] = tensor.stride()
    if unsqueeze_dim == 2 and len(shape) == 4:  # of another rank the library says what is wrong
        shape, strides = (shape[0], shape[2], shape[1], shape[3]), (strides[0], strides[2], strides[1], strides[3])
    return tensor.data_ptr(), DTYPES[tensor.dtype], shape, strides


def no_heads(like: Described) -> Described:
    """As `like`, but without a single head: of a tensor that is not there, which adds nothing to a sum over heads."""
    if like is None:
        return None
    _, dtype, (b, _, s, d), _ = like
    return 0, dtype, (b, 0, s, d), (0, 0, 0, 1)


def table(tensor: Tensor | None, device: int) -> Described:
    """[B, S, R], [1, S, R] or [S, R], which is shown as [1, S, R]."""
    if tensor is None:
        return None
    if tensor.get_device() != device:
        raise _refuse(tensor, device)
    shape: tuple[int, ...] = tensor.shape
    strides: tuple[int, ...] = tensor.stride()
    if len(shape) == 2:
        shape, strides = (1, *shape), (0, *strides)
    return tensor.data_ptr(), DTYPES[tensor.dtype], shape, strides


def _refuse(tensor: Tensor, device: int) -> ValueError:
    first = f"cuda:{device}" if device >= 0 else "cpu"
    return ValueError(f"expected all tensors on {first}, got one on {tensor.device}")


def run(operator: int, device: int, tensors: tuple[Described, ...], params: tuple[Any, ...]) -> None:
    context_of(device).call(operator, tensors, params)
