"""ropegrad::vision_rotary: tables [P, D] of inv_freq [D/4] and pos_ids [P, 2], and its backward pass, as in _tables."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ropegrad.torch._dispatch import Function, Operator, saved
from ropegrad.torch._launch import OPERATORS, check, run
from ropegrad.torch._tables import Pair, differentiate, rope_2d_backward

_VISION, _VISION_BACKWARD = OPERATORS["vision_rotary_forward"], OPERATORS["vision_rotary"]


def _fake_vision(inv_freq: Tensor, pos_ids: Tensor, dtype: torch.dtype) -> Pair:
    check(_VISION, (inv_freq, pos_ids), ())
    return _room(inv_freq, pos_ids, dtype)


def _room(inv_freq: Tensor, pos_ids: Tensor, dtype: torch.dtype) -> Pair:
    shape = (pos_ids.shape[0], 4 * inv_freq.shape[0])
    return inv_freq.new_empty(shape, dtype=dtype), inv_freq.new_empty(shape, dtype=dtype)


def _vision(inv_freq: Tensor, pos_ids: Tensor, dtype: torch.dtype) -> Pair:
    cos, sin = _room(inv_freq, pos_ids, dtype)
    run(_VISION, inv_freq.get_device(), (inv_freq, pos_ids, None, cos, sin), ())
    return cos, sin


def _fake_vision_backward(grad_cos: Tensor, grad_sin: Tensor, inv_freq: Tensor, pos_ids: Tensor) -> Tensor:
    return torch.empty_like(inv_freq)


def _vision_backward(grad_cos: Tensor, grad_sin: Tensor, inv_freq: Tensor, pos_ids: Tensor) -> Tensor:
    device = inv_freq.get_device()
    angles = inv_freq.new_empty(grad_cos.shape)
    run(_VISION, device, (inv_freq, pos_ids, angles, None, None), ())
    result = torch.empty_like(inv_freq)
    run(_VISION_BACKWARD, device, (grad_cos, grad_sin, angles, pos_ids, inv_freq, result), ())
    return result


def _vision_gradient(grad_cos: Tensor, grad_sin: Tensor, inv_freq: Tensor, pos_ids: Tensor) -> Tensor:
    """Of inv_freq, through the gradient of the angles."""
    positions = pos_ids.to(inv_freq.dtype).unsqueeze(-1)  # [P, 2, 1]
    theta = (positions * inv_freq).flatten(1)
    grad_emb = rope_2d_backward(grad_cos[None], grad_sin[None], torch.cat((theta, theta), -1)[None])
    parts = grad_emb.view(-1, 2, 2, inv_freq.shape[0])  # patch, half of the table, row or column, frequency
    gradient: Tensor = (parts * positions.unsqueeze(1)).sum((0, 1, 2))
    return gradient


class _Vision(Function):
    @staticmethod
    def forward(ctx: Any, kernel: Any, inv_freq: Tensor, pos_ids: Tensor, dtype: torch.dtype) -> Pair:
        ctx.save_for_backward(*saved(inv_freq, pos_ids))
        cos, sin = kernel(inv_freq, pos_ids, dtype)
        return cos, sin

    @staticmethod
    def backward(ctx: Any, grad_cos: Tensor, grad_sin: Tensor) -> Any:
        return None, vision_rotary_backward(grad_cos, grad_sin, *ctx.saved_tensors), None, None


class _VisionBackward(Function):
    """Differentiated through operators that can be."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, *arguments: Any) -> Tensor:
        ctx.save_for_backward(*saved(*arguments))
        result: Tensor = kernel(*arguments)
        return result

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        return None, *differentiate(_vision_gradient, ctx.saved_tensors, ctx.needs_input_grad[1:], cotangent)


vision_rotary = Operator(
    "vision_rotary(Tensor inv_freq, Tensor pos_ids, ScalarType dtype) -> (Tensor, Tensor)",
    2, _vision, _fake_vision, _Vision,
)  # fmt: skip
vision_rotary_backward = Operator(
    "vision_rotary_backward(Tensor grad_cos, Tensor grad_sin, Tensor inv_freq, Tensor pos_ids) -> Tensor",
    4, _vision_backward, _fake_vision_backward, _VisionBackward,
)  # fmt: skip
