"""Operators that make tables of cos and sin: ropegrad::rope_2d and ::rotary_embedding (::vision_rotary: _vision.py).

Their backward passes are kernels of their own. Where a gradient is to be differentiated again, or where a kernel has
not the gradient, it is put together from the gradient of the angles (rope_2d_backward), which can be differentiated any
number of times.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ropegrad.torch._dispatch import Function, Operator, saved
from ropegrad.torch._launch import OPERATORS, Described, check, describe, outline, run

_ROPE_2D, _ROPE_2D_BACKWARD = OPERATORS["rope_2d_forward"], OPERATORS["rope_2d"]
_ROTARY, _ROTARY_BACKWARD = OPERATORS["rotary_embedding_forward"], OPERATORS["rotary_embedding"]

Pair = tuple[Tensor, Tensor]


# ---- rope_2d: cos and sin of given angles [B, S, D] ----


def _fake_rope_2d(idx_theta: Tensor, dtype: torch.dtype) -> Pair:
    check(_ROPE_2D, (idx_theta,), ())
    return _room_rope_2d(idx_theta, dtype)


def _room_rope_2d(idx_theta: Tensor, dtype: torch.dtype) -> Pair:
    return torch.empty_like(idx_theta, dtype=dtype), torch.empty_like(idx_theta, dtype=dtype)


def _rope_2d(idx_theta: Tensor, dtype: torch.dtype) -> Pair:
    cos, sin = _room_rope_2d(idx_theta, dtype)
    run(_ROPE_2D, idx_theta.get_device(), (idx_theta, cos, sin), ())
    return cos, sin


def _fake_rope_2d_backward(grad_cos: Tensor, grad_sin: Tensor, idx_theta: Tensor) -> Tensor:
    return torch.empty_like(idx_theta)


def _rope_2d_backward(grad_cos: Tensor, grad_sin: Tensor, idx_theta: Tensor) -> Tensor:
    result = torch.empty_like(idx_theta)
    run(_ROPE_2D_BACKWARD, idx_theta.get_device(), (grad_cos, grad_sin, idx_theta, result), ())
    return result


class _Rope2d(Function):
    @staticmethod
    def forward(ctx: Any, kernel: Any, idx_theta: Tensor, dtype: torch.dtype) -> Pair:
        ctx.save_for_backward(*saved(idx_theta))
        cos, sin = kernel(idx_theta, dtype)
        return cos, sin

    @staticmethod
    def backward(ctx: Any, grad_cos: Tensor, grad_sin: Tensor) -> Any:
        return None, rope_2d_backward(grad_cos, grad_sin, *ctx.saved_tensors), None


class _Rope2dBackward(Function):
    """Of g = grad_sin * cos(t) - grad_cos * sin(t)."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, grad_cos: Tensor, grad_sin: Tensor, idx_theta: Tensor) -> Tensor:
        ctx.save_for_backward(*saved(grad_cos, grad_sin, idx_theta))
        result: Tensor = kernel(grad_cos, grad_sin, idx_theta)
        return result

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        grad_cos, grad_sin, idx_theta = ctx.saved_tensors
        of_cos = of_sin = of_theta = None
        if ctx.needs_input_grad[1] or ctx.needs_input_grad[2]:
            cos, sin = rope_2d(idx_theta, idx_theta.dtype)
            of_cos, of_sin = (-cotangent * sin).to(grad_cos.dtype), (cotangent * cos).to(grad_sin.dtype)
        if ctx.needs_input_grad[3]:
            of_theta = cotangent * rope_2d_backward(grad_sin, -grad_cos, idx_theta)
        return None, of_cos, of_sin, of_theta


rope_2d = Operator(
    "rope_2d(Tensor idx_theta, ScalarType dtype) -> (Tensor, Tensor)", 1, _rope_2d, _fake_rope_2d, _Rope2d
)
rope_2d_backward = Operator(
    "rope_2d_backward(Tensor grad_cos, Tensor grad_sin, Tensor idx_theta) -> Tensor",
    3, _rope_2d_backward, _fake_rope_2d_backward, _Rope2dBackward,
)  # fmt: skip


# ---- rotary_embedding: tables [B, S, D] of position_ids [B, S] and inv_freq [D/2] or [B, D/2] ----


def _frequencies(inv_freq: Described, batches: int) -> Described:
    """[D/2] or [B, D/2] as [B, D/2, 1]."""
    address, dtype, shape, strides = inv_freq
    if len(shape) == 1:
        return address, dtype, (batches, shape[0], 1), (0, strides[0], 1)
    return address, dtype, (*shape, 1), (*strides, 1)


def _fake_rotary(position_ids: Tensor, inv_freq: Tensor, attention_scaling: float, dtype: torch.dtype) -> Pair:
    frequencies = _frequencies(outline(inv_freq), position_ids.shape[0])
    check(_ROTARY, (position_ids, frequencies), (attention_scaling,))
    return _room_rotary(position_ids, inv_freq, dtype)


def _room_rotary(position_ids: Tensor, inv_freq: Tensor, dtype: torch.dtype) -> Pair:
    shape = (*position_ids.shape, 2 * inv_freq.shape[-1])
    return inv_freq.new_empty(shape, dtype=dtype), inv_freq.new_empty(shape, dtype=dtype)


def _rotary(position_ids: Tensor, inv_freq: Tensor, attention_scaling: float, dtype: torch.dtype) -> Pair:
    device = inv_freq.get_device()
    cos, sin = _room_rotary(position_ids, inv_freq, dtype)
    frequencies = _frequencies(describe(inv_freq, device), position_ids.shape[0])
    run(_ROTARY, device, (position_ids, frequencies, None, cos, sin), (attention_scaling,))
    return cos, sin


def _fake_rotary_backward(
    grad_cos: Tensor, grad_sin: Tensor, position_ids: Tensor, inv_freq: Tensor, attention_scaling: float
) -> Tensor:
    return inv_freq.new_empty(position_ids.shape)


def _rotary_backward(
    grad_cos: Tensor, grad_sin: Tensor, position_ids: Tensor, inv_freq: Tensor, attention_scaling: float
) -> Tensor:
    """The angles are made again, which takes less memory than to keep them from the forward pass."""
    device = inv_freq.get_device()
    frequencies = _frequencies(describe(inv_freq, device), position_ids.shape[0])
    angles = inv_freq.new_empty(grad_cos.shape)
    run(_ROTARY, device, (position_ids, frequencies, angles, None, None), (attention_scaling,))
    result = inv_freq.new_empty(position_ids.shape)
    run(_ROTARY_BACKWARD, device, (grad_cos, grad_sin, angles, frequencies, result), (attention_scaling,))
    return result


def _rotary_gradients(
    grad_cos: Tensor, grad_sin: Tensor, position_ids: Tensor, inv_freq: Tensor, attention_scaling: float
) -> Pair:
    """Of position_ids and inv_freq, through the gradient of the angles."""
    positions = position_ids.to(inv_freq.dtype).unsqueeze(-1)
    frequencies = inv_freq if inv_freq.dim() == 1 else inv_freq.unsqueeze(1)
    theta = positions * frequencies
    half = theta.shape[-1]
    grad_emb = rope_2d_backward(grad_cos, grad_sin, torch.cat((theta, theta), -1))
    grad_theta = (grad_emb[..., :half] + grad_emb[..., half:]) * attention_scaling
    grad_positions = (grad_theta * frequencies).sum(-1)
    grad_frequencies = (grad_theta * positions).sum(1)
    return grad_positions, grad_frequencies.sum(0) if inv_freq.dim() == 1 else grad_frequencies


class _Rotary(Function):
    @staticmethod
    def forward(ctx: Any, kernel: Any, position_ids: Tensor, inv_freq: Tensor, *options: Any) -> Pair:
        ctx.save_for_backward(*saved(position_ids, inv_freq))
        ctx.attention_scaling = options[0]
        cos, sin = kernel(position_ids, inv_freq, *options)
        return cos, sin

    @staticmethod
    def backward(ctx: Any, grad_cos: Tensor, grad_sin: Tensor) -> Any:
        arguments = (grad_cos, grad_sin, *ctx.saved_tensors, ctx.attention_scaling)
        of_positions, of_frequencies = ctx.needs_input_grad[1:3]
        if not of_frequencies:
            return None, rotary_embedding_backward(*arguments), None, None, None
        gradients = _rotary_gradients(*arguments)
        return None, gradients[0] if of_positions else None, gradients[1], None, None


class _RotaryBackward(Function):
    """Differentiated through operators that can be."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, *arguments: Any) -> Tensor:
        ctx.save_for_backward(*saved(*arguments[:4]))
        ctx.attention_scaling = arguments[4]
        result: Tensor = kernel(*arguments)
        return result

    @staticmethod
    def backward(ctx: Any, cotangent: Tensor) -> Any:
        def of_positions(grad_cos: Tensor, grad_sin: Tensor, position_ids: Tensor, inv_freq: Tensor) -> Tensor:
            return _rotary_gradients(grad_cos, grad_sin, position_ids, inv_freq, ctx.attention_scaling)[0]

        return None, *differentiate(of_positions, ctx.saved_tensors, ctx.needs_input_grad[1:5], cotangent), None


def differentiate(function: Any, inputs: Any, needs: Any, cotangent: Tensor) -> list[Tensor | None]:
    """Gradients of <cotangent, function(inputs)>, themselves differentiable where gradients are on."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        inputs = [t if again or not n else t.detach().requires_grad_() for t, n in zip(inputs, needs)]
        wanted = [t for t, n in zip(inputs, needs) if n]
        made = iter(torch.autograd.grad(function(*inputs), wanted, cotangent, create_graph=again, allow_unused=True))
    return [next(made) if n else None for n in needs]


rotary_embedding = Operator(
    "rotary_embedding(Tensor position_ids, Tensor inv_freq, float attention_scaling, ScalarType dtype)"
    " -> (Tensor, Tensor)",
    2, _rotary, _fake_rotary, _Rotary,
)  # fmt: skip
rotary_embedding_backward = Operator(
    "rotary_embedding_backward(Tensor grad_cos, Tensor grad_sin, Tensor position_ids, Tensor inv_freq, "
    "float attention_scaling) -> Tensor",
    4, _rotary_backward, _fake_rotary_backward, _RotaryBackward,
)  # fmt: skip
