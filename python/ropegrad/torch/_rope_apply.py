"""ropegrad::rope_apply, its form in place, and its backward pass, which can be differentiated any number of times.

With F(x, c) the forward pass, c = (cos, sin), T(g, x, c) = <g, F(x, c)> is linear in each of its three arguments as far
as the rotated columns go. The backward pass B(g, x, c) = (dT/dx, dT/dc), and the gradients of B are F and B again.
"""

from __future__ import annotations

from typing import Any, Optional

import torch
import torch.nn.functional as torch_functional
from torch import Tensor, empty_like

from ropegrad.torch._dispatch import Function, Operator, check_in_place, saved
from ropegrad.torch._launch import ADJOINT, OPERATORS, check, no_heads, run

Maybe = Optional[Tensor]
_FORWARD, _BACKWARD = OPERATORS["rope_apply_forward"], OPERATORS["rope_apply"]


# ---- kernels ----


def _forward(q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int) -> list[Tensor]:
    q_embed, k_embed = empty_like(q), None if k is None else empty_like(k)
    tensors = (q, k, cos, sin, q_embed, k_embed)
    run(_FORWARD, q.get_device(), tensors, (cos.shape[-1], interleaved, False), unsqueeze_dim)
    return [q_embed] if k_embed is None else [q_embed, k_embed]


def _in_place(q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int) -> None:
    run(_FORWARD, q.get_device(), (q, k, cos, sin, q, k), (cos.shape[-1], interleaved, True), unsqueeze_dim)
    for tensor in (q,) if k is None else (q, k):
        torch.autograd.graph.increment_version(tensor)


def _results(grad_q_embed: Maybe, grad_k_embed: Maybe, cos: Tensor, sin: Tensor, wanted: list[bool]) -> list[Maybe]:
    """Room for the gradients of q, k, cos and sin, where they are wanted."""
    likes = (grad_q_embed, grad_k_embed, cos, sin)
    return [empty_like(t) if w and t is not None else None for t, w in zip(likes, wanted)]


def _backward(
    grad_q_embed: Maybe, grad_k_embed: Maybe, q: Maybe, k: Maybe, cos: Tensor, sin: Tensor,
    interleaved: bool, unsqueeze_dim: int, wanted: list[bool],
) -> list[Tensor]:  # fmt: skip
    results = _results(grad_q_embed, grad_k_embed, cos, sin, wanted)
    given: list[Any] = [grad_q_embed, grad_k_embed, q, k]
    if wanted[2] or wanted[3]:  # which sum over the heads of both
        if grad_q_embed is None and grad_k_embed is not None:
            given[0] = given[2] = no_heads(grad_k_embed, unsqueeze_dim)
        elif grad_k_embed is None and grad_q_embed is not None:
            given[1] = given[3] = no_heads(grad_q_embed, unsqueeze_dim)
    tensors = (*given, cos, sin, *results)
    run(_BACKWARD, cos.get_device(), tensors, (cos.shape[-1], interleaved, ADJOINT), unsqueeze_dim)
    return [t for t in results if t is not None]


# ---- without values ----


def _fake_forward(q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int) -> list[Tensor]:
    check(_FORWARD, (q, k, cos, sin), (cos.shape[-1], interleaved, False), unsqueeze_dim)
    return [empty_like(t) for t in (q, k) if t is not None]


def _fake_in_place(q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int) -> None:
    check(_FORWARD, (q, k, cos, sin), (cos.shape[-1], interleaved, True), unsqueeze_dim)


def _fake_backward(
    grad_q_embed: Maybe, grad_k_embed: Maybe, q: Maybe, k: Maybe, cos: Tensor, sin: Tensor,
    interleaved: bool, unsqueeze_dim: int, wanted: list[bool],
) -> list[Tensor]:  # fmt: skip
    return [t for t in _results(grad_q_embed, grad_k_embed, cos, sin, wanted) if t is not None]


# ---- autograd ----


class _Forward(Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: Any, q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int
    ) -> Any:
        made = tuple(kernel(q, k, cos, sin, interleaved, unsqueeze_dim))
        ctx.options = interleaved, unsqueeze_dim
        ctx.set_materialize_grads(False)
        needs = ctx.needs_input_grad
        if needs[3] or needs[4]:
            ctx.save_for_backward(*saved(q, k, cos, sin))
            return made
        made_in_inference_mode = cos.is_inference() or sin.is_inference()
        ctx.save_for_backward(None, None, *(saved(cos, sin) if made_in_inference_mode else (cos, sin)))
        if not (needs[1] and needs[2]):  # a k that is not there has no gradient either
            ctx.mark_non_differentiable(*[y for y, of in zip(made, needs[1:3]) if not of])
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Maybe) -> Any:
        wanted = list(ctx.needs_input_grad[1:5])
        q, k, cos, sin = ctx.saved_tensors
        grad_q, grad_k = grads if len(grads) == 2 else (grads[0], None)
        return (None, *backward(grad_q, grad_k, q, k, cos, sin, ctx.options, wanted), None, None)


class _Backward(Function):
    @staticmethod
    def forward(ctx: Any, kernel: Any, *arguments: Any) -> Any:
        ctx.save_for_backward(*saved(*arguments[:6]))
        ctx.interleaved, ctx.unsqueeze_dim, ctx.wanted = arguments[6:]
        ctx.set_materialize_grads(False)
        return tuple(kernel(*arguments))

    @staticmethod
    def backward(ctx: Any, *cotangents: Maybe) -> Any:
        options = (ctx.interleaved, ctx.unsqueeze_dim)
        grad_q, grad_k, q, k, cos, sin = ctx.saved_tensors
        left = iter(cotangents)
        v_q, v_k, v_cos, v_sin = (next(left) if w else None for w in ctx.wanted)
        needs = ctx.needs_input_grad[1:7]
        results: list[Maybe] = [None] * 6
        if v_q is not None or v_k is not None:  # <v_x, dT/dx> = T(g, v_x, c)
            results[:2] = _rotate(v_q, v_k, cos, sin, options)
            pairs_q, pairs_k = grad_q is not None and v_q is not None, grad_k is not None and v_k is not None
            results[4:] = backward(
                grad_q if pairs_q else None, grad_k if pairs_k else None, v_q if pairs_q else None,
                v_k if pairs_k else None, cos, sin, options, [False, False, needs[4], needs[5]],
            )[2:]  # fmt: skip
        if v_cos is not None or v_sin is not None:  # <v_c, dT/dc> = T(g, x, v_c), of the rotated columns
            v_cos = torch.zeros_like(cos) if v_cos is None else v_cos
            v_sin = torch.zeros_like(sin) if v_sin is None else v_sin
            columns, width = cos.shape[-1], (grad_q if grad_q is not None else grad_k).shape[-1]

            def narrow(t: Maybe) -> Maybe:
                return t if t is None or columns == width else t[..., :columns]

            def widen(t: Maybe) -> Maybe:
                return t if t is None or columns == width else torch_functional.pad(t, (0, width - columns))

            turned = _rotate(narrow(q), narrow(k), v_cos, v_sin, options)
            results[:2] = [_sum(a, widen(b)) for a, b in zip(results[:2], turned)]
            of_x = backward(
                narrow(grad_q), narrow(grad_k), None, None, v_cos, v_sin, options, [needs[2], needs[3], False, False]
            )
            results[2:4] = [widen(t) for t in of_x[:2]]
        return (None, *(r if n else None for r, n in zip(results, needs)), None, None, None)


def _sum(a: Maybe, b: Maybe) -> Maybe:
    return b if a is None else a if b is None else a + b


def _rotate(q: Maybe, k: Maybe, cos: Tensor, sin: Tensor, options: tuple[bool, int]) -> list[Maybe]:
    """F, of those that are given."""
    given = [t for t in (q, k) if t is not None]
    if not given:
        return [None, None]
    turned = iter(rope_apply(given[0], given[1] if len(given) == 2 else None, cos, sin, *options))
    return [None if t is None else next(turned) for t in (q, k)]


def backward(
    grad_q: Maybe, grad_k: Maybe, q: Maybe, k: Maybe, cos: Tensor, sin: Tensor,
    options: tuple[bool, int], wanted: list[bool],
) -> list[Maybe]:  # fmt: skip
    """Gradients of q, k, cos and sin; None for those that are not wanted or are zero."""
    available = grad_q is not None or grad_k is not None
    wanted = [wanted[0] and grad_q is not None, wanted[1] and grad_k is not None,
              wanted[2] and available, wanted[3] and available]  # fmt: skip
    if not any(wanted):
        return [None] * 4
    if not (wanted[2] or wanted[3]):
        q = k = None
    made = iter(rope_apply_backward(grad_q, grad_k, q, k, cos, sin, *options, wanted))
    return [next(made) if w else None for w in wanted]


class _InPlace(Function):
    """Records what has been done to a tensor: of one alone, as a view that is changed in place must be the only result.
    The tables have no gradient: what theirs would be made of is overwritten."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cos: Tensor, sin: Tensor, *options: Any) -> Tensor:
        ctx.save_for_backward(*saved(cos, sin))
        ctx.options = options
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        cos, sin = ctx.saved_tensors
        grad_x = backward(grad, None, None, None, cos, sin, ctx.options, [True, False, False, False])[0]
        return grad_x, None, None, None, None


_OPTIONS = "bool interleaved, int unsqueeze_dim"

rope_apply = Operator(
    f"rope_apply(Tensor q, Tensor? k, Tensor cos, Tensor sin, {_OPTIONS}) -> Tensor[]",
    4, _forward, _fake_forward, _Forward,
)  # fmt: skip
rope_apply_ = Operator(
    f"rope_apply_(Tensor(a!) q, Tensor(b!)? k, Tensor cos, Tensor sin, {_OPTIONS}) -> ()",
    4, _in_place, _fake_in_place,
)  # fmt: skip
rope_apply_backward = Operator(
    "rope_apply_backward(Tensor? grad_q_embed, Tensor? grad_k_embed, Tensor? q, Tensor? k, Tensor cos, Tensor sin, "
    f"{_OPTIONS}, bool[4] wanted) -> Tensor[]",
    6, _backward, _fake_backward, _Backward,
)  # fmt: skip


def rotate_in_place(q: Tensor, k: Maybe, cos: Tensor, sin: Tensor, *options: Any) -> None:
    """Differentiable with respect to q and k."""
    given = [t for t in (q, k) if t is not None]
    recorded = torch.is_grad_enabled() and any([t.requires_grad for t in (*given, cos, sin)])
    if recorded and (cos.requires_grad or sin.requires_grad):
        raise ValueError("in_place: cos and sin must not require gradients, as these are made of the values before")
    if torch.compiler.is_compiling():
        if not recorded:
            rope_apply_(q, k, cos, sin, *options)
            return
        # The compiler makes of it what it makes of any functional operator.
        for tensor, turned in zip(given, rope_apply(q, k, cos, sin, *options)):
            tensor.copy_(turned)
        return
    if not recorded:
        _turn(given, cos, sin, *options)
        return
    check_in_place(*given)
    with torch.no_grad():  # both in one call, which writes nothing if it refuses one of them
        _turn(given, cos, sin, *options)
    for tensor in given:
        _InPlace.apply(tensor, cos, sin, *options)


def _turn(given: list[Tensor], cos: Tensor, sin: Tensor, *options: Any) -> None:
    """A tensor that is negated lazily as it lies: turning is linear."""
    first, *second = [torch._neg_view(t) if t.is_neg() else t for t in given]
    rope_apply_(first, second[0] if second else None, cos, sin, *options)
