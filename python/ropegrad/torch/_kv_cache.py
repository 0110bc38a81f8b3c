"""ropegrad::kv_cache_update, its form in place (recorded by _kv_cache_in_place.py), and its backward pass, which can be
differentiated any number of times.

With P the writing of rows that `cache_position` names and A the passing on of all others, the forward pass of a cache
is A cache + P F(states, c), where F rotates the keys with c = (cos, sin) and leaves the values as they are. The key
side needs the key tensors, cos and sin, the value side the value tensors; either may be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Optional

import torch
from torch import Tensor

from ropegrad.torch._dispatch import Function, Operator, saved
from ropegrad.torch._launch import ONCE, OPERATORS, check, run
from ropegrad.torch._rope_apply import rope_apply

Maybe = Optional[Tensor]
_FORWARD, _BACKWARD = OPERATORS["kv_cache_update_forward"], OPERATORS["kv_cache_update"]


# ---- kernels ----


def _columns(cos: Maybe) -> int:
    """rotary_dim; 0 stands for all columns."""
    return 0 if cos is None else cos.shape[-1]


def _run_forward(
    key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe, sin: Maybe,
    cache_position: Tensor, interleaved: bool, results: tuple[Maybe, Maybe], in_place: bool,
) -> None:  # fmt: skip
    tensors = (key_cache, value_cache, key_states, value_states, cos, sin, cache_position, *results)
    run(_FORWARD, cache_position.get_device(), tensors, (in_place, interleaved, _columns(cos)))


def _forward(
    key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe, sin: Maybe,
    cache_position: Tensor, interleaved: bool,
) -> list[Tensor]:  # fmt: skip
    results = tuple(None if t is None else torch.empty_like(t) for t in (key_cache, value_cache))
    _run_forward(
        key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved,
        (results[0], results[1]), False,
    )  # fmt: skip
    return [t for t in results if t is not None]


def _in_place(
    key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe, sin: Maybe,
    cache_position: Tensor, interleaved: bool,
) -> None:  # fmt: skip
    _run_forward(
        key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved,
        (key_cache, value_cache), True,
    )  # fmt: skip
    for cache in (key_cache, value_cache):
        if cache is not None:
            torch.autograd.graph.increment_version(cache)


def _results(
    grad_key_cache: Maybe, grad_value_cache: Maybe, cos: Maybe, sin: Maybe, new_rows: int, wanted: list[bool]
) -> list[Maybe]:
    """Room for the gradients of key_cache, value_cache, key_states, value_states, cos and sin, where they are
    wanted."""

    def states(cache: Maybe) -> Maybe:
        return None if cache is None else cache.new_empty((*cache.shape[:2], new_rows, cache.shape[3]))

    likes = (grad_key_cache, grad_value_cache, grad_key_cache, grad_value_cache, cos, sin)
    makers: tuple[Callable[[Tensor], Maybe], ...] = (
        torch.empty_like, torch.empty_like, states, states, torch.empty_like, torch.empty_like,
    )  # fmt: skip
    return [make(t) if w and t is not None else None for make, t, w in zip(makers, likes, wanted)]


def _backward(
    grad_key_cache: Maybe, grad_value_cache: Maybe, key_states: Maybe, cos: Maybe, sin: Maybe, cache_position: Tensor,
    interleaved: bool, wanted: list[bool],
) -> list[Tensor]:  # fmt: skip
    results = _results(grad_key_cache, grad_value_cache, cos, sin, cache_position.shape[0], wanted)
    given = (grad_key_cache, grad_value_cache, key_states, cos, sin, cache_position)
    run(
        _BACKWARD, cache_position.get_device(), (*given, *results[2:], *results[:2]),
        (False, ONCE, interleaved, _columns(cos)),
    )  # fmt: skip
    return [t for t in results if t is not None]


# ---- without values ----


def _check(*arguments: Any) -> None:
    *tensors, interleaved, in_place = arguments
    check(_FORWARD, tuple(tensors), (in_place, interleaved, _columns(tensors[4])))


def _fake_forward(
    key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe, sin: Maybe,
    cache_position: Tensor, interleaved: bool,
) -> list[Tensor]:  # fmt: skip
    _check(key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved, False)
    return [torch.empty_like(t) for t in (key_cache, value_cache) if t is not None]


def _fake_in_place(
    key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe, sin: Maybe,
    cache_position: Tensor, interleaved: bool,
) -> None:  # fmt: skip
    _check(key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved, True)


def _fake_backward(
    grad_key_cache: Maybe, grad_value_cache: Maybe, key_states: Maybe, cos: Maybe, sin: Maybe, cache_position: Tensor,
    interleaved: bool, wanted: list[bool],
) -> list[Tensor]:  # fmt: skip
    results = _results(grad_key_cache, grad_value_cache, cos, sin, cache_position.shape[0], wanted)
    return [t for t in results if t is not None]


# ---- autograd ----


class _Forward(Function):
    @staticmethod
    def forward(
        ctx: Any, kernel: Any, key_cache: Maybe, value_cache: Maybe, key_states: Maybe, value_states: Maybe, cos: Maybe,
        sin: Maybe, cache_position: Tensor, interleaved: bool,
    ) -> Any:  # fmt: skip
        of_tables = ctx.needs_input_grad[5] or ctx.needs_input_grad[6]
        ctx.save_for_backward(*saved(key_states if of_tables else None, cos, sin, cache_position))
        ctx.interleaved = interleaved
        ctx.has_keys = key_cache is not None
        ctx.set_materialize_grads(False)
        made = tuple(kernel(key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved))
        needs = ctx.needs_input_grad
        sides = ((key_cache, needs[1] or needs[3] or of_tables), (value_cache, needs[2] or needs[4]))
        given = [of for cache, of in sides if cache is not None]
        ctx.mark_non_differentiable(*[cache for cache, of in zip(made, given) if not of])
        return made

    @staticmethod
    def backward(ctx: Any, *grads: Maybe) -> Any:
        wanted = list(ctx.needs_input_grad[1:7])
        grad_keys, grad_values = grads if len(grads) == 2 else (grads[0], None) if ctx.has_keys else (None, grads[0])
        key_states, cos, sin, cache_position = ctx.saved_tensors
        gradients = backward(grad_keys, grad_values, key_states, cos, sin, cache_position, ctx.interleaved, wanted)
        return (None, *gradients, None, None)


class _Backward(Function):
    """Linear in the gradients of the caches: every new row reads the row that it names. So the gradients with respect
    to these write rows back, and rows of entries that repeat add up."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, *arguments: Any) -> Any:
        ctx.save_for_backward(*saved(*arguments[:6]))
        ctx.interleaved, ctx.wanted = arguments[6:]
        ctx.set_materialize_grads(False)
        return tuple(kernel(*arguments))

    @staticmethod
    def backward(ctx: Any, *cotangents: Maybe) -> Any:
        grad_keys, grad_values, keys, cos, sin, position = ctx.saved_tensors
        left = iter(cotangents)
        v_key_cache, v_value_cache, v_keys, v_values, v_cos, v_sin = (next(left) if w else None for w in ctx.wanted)
        needs = ctx.needs_input_grad[1:6]
        grad_of_keys = grad_of_values = grad_of_states = None
        grads_of_tables: list[Maybe] = [None, None]
        if v_key_cache is not None or v_keys is not None:
            rows = None if v_keys is None else rope_apply(v_keys, None, cos, sin, ctx.interleaved, 1)[0]
            grad_of_keys = _passed_and_added(grad_keys, v_key_cache, rows, position)
        if v_value_cache is not None or v_values is not None:
            grad_of_values = _passed_and_added(grad_values, v_value_cache, v_values, position)
        if v_keys is not None:
            of = [False, False, False, False, needs[3], needs[4]]
            grads_of_tables = backward(grad_keys, None, v_keys, cos, sin, position, ctx.interleaved, of)[4:]
        if v_cos is not None or v_sin is not None:  # of the rotated columns alone
            v_cos = torch.zeros_like(cos) if v_cos is None else v_cos
            v_sin = torch.zeros_like(sin) if v_sin is None else v_sin
            columns, width = cos.shape[-1], keys.shape[-1]
            narrow, pad = (lambda t: t if columns == width else t[..., :columns]), (0, width - columns)
            rows = rope_apply(narrow(keys), None, v_cos, v_sin, ctx.interleaved, 1)[0]
            written = _passed_and_added(grad_keys, None, torch.nn.functional.pad(rows, pad), position)
            grad_of_keys = written if grad_of_keys is None else grad_of_keys + written
            of = [False, False, needs[2], False, False, False]
            grad_of_states = backward(
                narrow(grad_keys), None, None, v_cos, v_sin, position, ctx.interleaved, of
            )[2]  # fmt: skip
            if grad_of_states is not None:
                grad_of_states = torch.nn.functional.pad(grad_of_states, pad)
        results = (grad_of_keys, grad_of_values, grad_of_states, *grads_of_tables)
        return (None, *(r if n else None for r, n in zip(results, needs)), None, None, None)


def _passed_and_added(like: Tensor, cache: Maybe, rows: Maybe, position: Tensor) -> Tensor:
    """The rows [B, Hk, N, D], each added to the row of a cache that `position` names, and of `cache` all other rows;
    one that is not given is zeros. Nothing waits for the GPU: what names no row adds nothing to one."""
    made, length = torch.zeros_like(like), like.shape[2]
    if length == 0:
        return made
    is_row = (position >= 0) & (position < length)
    target = torch.where(is_row, position, 0).long()
    if rows is not None:
        made = _add_rows(made, target, rows.where(is_row[:, None], 0))
    if cache is not None:
        times_named = position.new_zeros(length).index_add(0, target, is_row.to(position.dtype))
        made = made + cache.where(times_named[:, None] == 0, 0)
    return made


def _add_rows(cache: Tensor, target: Tensor, rows: Tensor) -> Tensor:
    """The same bits every time: index_add adds in order on the CPU, but on CUDA as it comes, where index_put sorts."""
    if not cache.is_cuda:
        return cache.index_add(2, target, rows)
    return cache.transpose(0, 2).index_put((target,), rows.transpose(0, 2), accumulate=True).transpose(0, 2)


def backward(
    grad_keys: Maybe, grad_values: Maybe, keys: Maybe, cos: Maybe, sin: Maybe, position: Tensor, interleaved: bool,
    wanted: list[bool],
) -> list[Maybe]:  # fmt: skip
    """Gradients of key_cache, value_cache, key_states, value_states, cos and sin; None for those that are not wanted or
    are zero."""
    sides = (grad_keys, grad_values, grad_keys, grad_values, grad_keys, grad_keys)
    wanted = [w and side is not None for w, side in zip(wanted, sides)]
    if not any(wanted):
        return [None] * 6
    made = iter(kv_cache_update_backward(grad_keys, grad_values, keys, cos, sin, position, interleaved, wanted))
    return [next(made) if w else None for w in wanted]


_INPUTS = "Tensor? key_states, Tensor? value_states, Tensor? cos, Tensor? sin, Tensor cache_position, bool interleaved"

kv_cache_update = Operator(
    f"kv_cache_update(Tensor? key_cache, Tensor? value_cache, {_INPUTS}) -> Tensor[]",
    7, _forward, _fake_forward, _Forward,
)  # fmt: skip
kv_cache_update_ = Operator(
    f"kv_cache_update_(Tensor(a!)? key_cache, Tensor(b!)? value_cache, {_INPUTS}) -> ()",
    7, _in_place, _fake_in_place,
)  # fmt: skip
kv_cache_update_backward = Operator(
    "kv_cache_update_backward(Tensor? grad_key_cache, Tensor? grad_value_cache, Tensor? key_states, Tensor? cos, "
    "Tensor? sin, Tensor cache_position, bool interleaved, bool[6] wanted) -> Tensor[]",
    6, _backward, _fake_backward, _Backward,
)  # fmt: skip
