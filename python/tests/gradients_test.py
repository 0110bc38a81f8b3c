"""Each backward pass against central differences of the forward pass, both of the library, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import ropegrad.numpy
from cases import Array, Draw

STEP = 1e-5


def numerical(function: Callable[[], tuple[Array | None, ...]], gradients: dict[str, Array], x: Array) -> Array:
    """Of sum(gradients * function()) with respect to x, which function reads."""

    def loss() -> float:
        outputs: Any = function()
        return float(sum((gradient * getattr(outputs, name)).sum() for name, gradient in gradients.items()))

    result = numpy.empty_like(x)
    for place in numpy.ndindex(x.shape):
        middle = x[place]
        x[place] = middle + STEP
        above = loss()
        x[place] = middle - STEP
        result[place] = (above - loss()) / (2 * STEP)
        x[place] = middle
    return result


def agree(gradient: Array, expected: Array) -> None:
    numpy.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("style", ["rotate_half", "interleaved"])
@pytest.mark.parametrize(("rotary_dim", "tables"), [(0, 0), (4, 1)])
def test_rope_apply(style: str, rotary_dim: int, tables: int) -> None:
    draw = Draw()
    given = draw.rope_apply("float64", "float64", "float64", S=3, D=8, R=rotary_dim, tables=tables)
    options: dict[str, Any] = {"style": style, "rotary_dim": rotary_dim}
    incoming = {"q_embed": draw.normal(*given["q"].shape, dtype="float64"),
                "k_embed": draw.normal(*given["k"].shape, dtype="float64")}  # fmt: skip
    grads = ropegrad.numpy.rope_apply_backward(
        **given, **options, grad_q_embed=incoming["q_embed"], grad_k_embed=incoming["k_embed"]
    )
    for name, x in given.items():
        expected = numerical(lambda: ropegrad.numpy.rope_apply(**given, **options), incoming, x)
        agree(getattr(grads, f"grad_{name}"), expected)


@pytest.mark.parametrize("style", ["rotate_half", "interleaved"])
@pytest.mark.parametrize(("rotary_dim", "tables"), [(0, 0), (4, 1)])
def test_kv_cache_update(style: str, rotary_dim: int, tables: int) -> None:
    draw = Draw()
    sizes: dict[str, Any] = {"positions": (3, -1, 0), "M": 4, "D": 8, "R": rotary_dim, "tables": tables}
    given = draw.kv_cache_update("float64", "float64", "float64", **sizes)
    options: dict[str, Any] = {"style": style, "rotary_dim": rotary_dim}
    incoming = {"key_cache": draw.normal(*given["key_cache_input"].shape, dtype="float64"),
                "value_cache": draw.normal(*given["value_cache_input"].shape, dtype="float64")}  # fmt: skip
    grads = ropegrad.numpy.kv_cache_update_backward(
        grad_key_cache=incoming["key_cache"], grad_value_cache=incoming["value_cache"],
        **{name: given[name] for name in ("key_states", "cos", "sin", "cache_position")}, **options,
    )  # fmt: skip
    for name, x in given.items():
        if name != "cache_position":
            expected = numerical(lambda: ropegrad.numpy.kv_cache_update(**given, **options), incoming, x)
            agree(getattr(grads, f"grad_{name}"), expected)


def test_rotary_embedding() -> None:
    draw = Draw()
    position_ids = draw.random.uniform(0, 10, (2, 3))
    inv_freq = draw.random.uniform(0, 1, (2, 4, 1))

    def forward() -> Any:
        return ropegrad.numpy.rotary_embedding(
            position_ids=position_ids, inv_freq_expanded=inv_freq, attention_scaling=1.3
        )

    incoming = {name: draw.normal(2, 3, 8, dtype="float64") for name in ("cos", "sin")}
    grads = ropegrad.numpy.rotary_embedding_backward(
        grad_cos=incoming["cos"], grad_sin=incoming["sin"], emb=forward().emb, inv_freq_expanded=inv_freq,
        attention_scaling=1.3,
    )  # fmt: skip
    agree(grads.grad_position_ids, numerical(forward, incoming, position_ids))


def test_rope_2d() -> None:
    draw = Draw()
    angles = draw.random.uniform(-3, 3, (2, 3, 4))
    incoming = {name: draw.normal(2, 3, 4, dtype="float64") for name in ("cos", "sin")}
    grads = ropegrad.numpy.rope_2d_backward(grad_cos=incoming["cos"], grad_sin=incoming["sin"], idx_theta=angles)
    agree(grads.grad_idx_theta, numerical(lambda: ropegrad.numpy.rope_2d(idx_theta=angles), incoming, angles))


def test_vision_rotary() -> None:
    draw = Draw()
    inv_freq, pos_ids = draw.random.uniform(0, 1, 4), draw.random.integers(0, 6, (5, 2))

    def forward() -> Any:
        return ropegrad.numpy.vision_rotary(inv_freq=inv_freq, pos_ids=pos_ids)

    incoming = {name: draw.normal(5, 16, dtype="float64") for name in ("cos", "sin")}
    grads = ropegrad.numpy.vision_rotary_backward(
        grad_cos=incoming["cos"], grad_sin=incoming["sin"], emb=forward().emb, pos_ids=pos_ids
    )
    agree(grads.grad_inv_freq, numerical(forward, incoming, inv_freq))
