"""A key-value cache that is updated where it lies: what autograd and the compiler have to know of it."""

from __future__ import annotations

from typing import Any, Optional

import torch
from torch import Tensor

from ropegrad.torch._dispatch import check_in_place, saved
from ropegrad.torch._kv_cache import backward, kv_cache_update, kv_cache_update_

Maybe = Optional[Tensor]


class _InPlace(torch.autograd.Function):
    """Records what has been done to a cache: of one alone, as a view that is changed in place must be the only result.
    With cos the keys', else the values'."""

    @staticmethod
    def forward(
        ctx: Any, cache: Tensor, states: Tensor, cos: Maybe, sin: Maybe, position: Tensor, interleaved: bool
    ) -> Tensor:
        of_tables = ctx.needs_input_grad[2] or ctx.needs_input_grad[3]
        ctx.save_for_backward(*saved(states if of_tables else None, cos, sin, position))
        ctx.interleaved = interleaved
        ctx.mark_dirty(cache)
        return cache

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        states, cos, sin, position = ctx.saved_tensors
        of_cache, of_states, of_cos, of_sin = ctx.needs_input_grad[:4]
        if cos is None:
            wanted = [False, of_cache, False, of_states, False, False]
            made = backward(None, grad, None, None, None, position, ctx.interleaved, wanted)
            return made[1], made[3], None, None, None, None
        wanted = [of_cache, False, of_states, False, of_cos, of_sin]
        made = backward(grad, None, states, cos, sin, position, ctx.interleaved, wanted)
        return made[0], made[2], made[4], made[5], None, None


def update_in_place(
    key_cache: Tensor, value_cache: Tensor, key_states: Tensor, value_states: Tensor, cos: Tensor, sin: Tensor,
    position: Tensor, interleaved: bool,
) -> None:  # fmt: skip
    tensors = (key_cache, value_cache, key_states, value_states, cos, sin)
    recorded = torch.is_grad_enabled() and any([t.requires_grad for t in tensors])
    if torch.compiler.is_compiling():
        if not recorded:
            kv_cache_update_(*tensors, position, interleaved)
            return
        # The compiler makes of it what it makes of any functional operator.
        keys, values = kv_cache_update(*tensors, position, interleaved)
        key_cache.copy_(keys)
        value_cache.copy_(values)
    elif not recorded:
        _write(*tensors, position, interleaved)
    else:
        check_in_place(key_cache, value_cache)
        with torch.no_grad():  # both in one call, which writes nothing if it refuses one of them
            _write(*tensors, position, interleaved)
        _InPlace.apply(key_cache, key_states, cos, sin, position, interleaved)
        _InPlace.apply(value_cache, value_states, None, None, position, interleaved)


def _write(
    key_cache: Tensor, value_cache: Tensor, key_states: Tensor, value_states: Tensor, cos: Tensor, sin: Tensor,
    position: Tensor, interleaved: bool,
) -> None:  # fmt: skip
    """Into caches as they lie: into one that is negated lazily, the rows with the other sign."""
    if key_cache.is_neg():
        key_cache, key_states = torch._neg_view(key_cache), -key_states
    if value_cache.is_neg():
        value_cache, value_states = torch._neg_view(value_cache), -value_states
    kv_cache_update_(key_cache, value_cache, key_states, value_states, cos, sin, position, interleaved)
