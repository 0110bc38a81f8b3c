"""The operators in plain NumPy, in extended precision: each function takes and returns what its namesake of
ropegrad.numpy does, written from the formulas in the headers of the C library.

Run once with VALUE for the results and once with MAGNITUDE, on absolute values, for the sum of the absolute values of
all terms, with |sin| and |cos| of an angle counted as 1: the T of the accuracy contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy

Array = numpy.ndarray[Any, Any]


@dataclass(frozen=True)
class Arithmetic:
    minus: Callable[..., Array]
    sin: Callable[[Array], Array]
    cos: Callable[[Array], Array]


VALUE = Arithmetic(numpy.subtract, numpy.sin, numpy.cos)
MAGNITUDE = Arithmetic(numpy.add, numpy.ones_like, numpy.ones_like)


def wide(array: Array) -> Array:
    return array.astype(numpy.float64).astype(numpy.longdouble)


def pairs(x: Array, style: str) -> tuple[Array, Array]:
    """The first and the second elements of the pairs of the last axis; views."""
    half = x.shape[-1] // 2
    if style == "rotate_half":
        return x[..., :half], x[..., half:]
    return x[..., 0::2], x[..., 1::2]


def joined(first: Array, second: Array, style: str) -> Array:
    if style == "rotate_half":
        return numpy.concatenate([first, second], -1)
    return numpy.stack([first, second], -1).reshape(*first.shape[:-1], -1)


def turned(a: Arithmetic, x: Array, cos: Array, sin: Array, style: str) -> Array:
    """x [B, H, S, D] by tables [B or 1, S, R]; columns from R on pass."""
    R = cos.shape[-1]
    x = wide(x)
    (x1, x2), (c1, c2), (s1, s2) = (pairs(t, style) for t in (x[..., :R], wide(cos)[:, None], wide(sin)[:, None]))
    y = joined(a.minus(x1 * c1, x2 * s1), x2 * c2 + x1 * s2, style)
    return numpy.concatenate([y, x[..., R:]], -1)


def turned_back(a: Arithmetic, g: Array, cos: Array, sin: Array, style: str, pairing: str = "adjoint") -> Array:
    R = cos.shape[-1]
    g = wide(g)
    (g1, g2), (c1, c2), (s1, s2) = (pairs(t, style) for t in (g[..., :R], wide(cos)[:, None], wide(sin)[:, None]))
    if pairing == "same_half":
        s1, s2 = s2, s1
    x = joined(g1 * c1 + g2 * s2, a.minus(g2 * c2, g1 * s1), style)
    return numpy.concatenate([x, g[..., R:]], -1)


def table_gradients(a: Arithmetic, g: Array, x: Array, R: int, style: str) -> tuple[Array, Array]:
    """[B, S, R] each, summed over heads."""
    (g1, g2), (x1, x2) = (pairs(wide(t)[..., :R], style) for t in (g, x))
    grad_cos = joined(g1 * x1, g2 * x2, style).sum(1)
    return grad_cos, joined(a.minus(0, g1 * x2), g2 * x1, style).sum(1)


def rotary_embedding(
    a: Arithmetic, *, position_ids: Array, inv_freq_expanded: Array, attention_scaling: float = 1.0
) -> dict[str, Array]:
    angle = inv_freq_expanded.dtype
    theta = position_ids.astype(angle)[:, :, None] * inv_freq_expanded[:, None, :, 0]
    emb = wide(numpy.concatenate([theta, theta], -1))
    scaling = float(angle.type(attention_scaling))
    return {"emb": emb, "cos": a.cos(emb) * scaling, "sin": a.sin(emb) * scaling}


def rotary_embedding_backward(
    a: Arithmetic, *, grad_cos: Array, grad_sin: Array, emb: Array, inv_freq_expanded: Array,
    attention_scaling: float = 1.0,
) -> dict[str, Array]:  # fmt: skip
    gc, gs = wide(grad_cos), wide(grad_sin)
    half = emb.shape[-1] // 2
    theta = wide(emb)[..., :half]
    terms = (
        a.minus((gs[..., :half] + gs[..., half:]) * a.cos(theta), (gc[..., :half] + gc[..., half:]) * a.sin(theta))
        * wide(inv_freq_expanded)[:, None, :, 0]
    )
    return {"grad_position_ids": terms.sum(-1) * float(emb.dtype.type(attention_scaling))}


def rope_2d(a: Arithmetic, *, idx_theta: Array) -> dict[str, Array]:
    return {"cos": a.cos(wide(idx_theta)), "sin": a.sin(wide(idx_theta))}


def angle_gradient(a: Arithmetic, grad_cos: Array, grad_sin: Array, angle: Array) -> Array:
    return a.minus(wide(grad_sin) * a.cos(wide(angle)), wide(grad_cos) * a.sin(wide(angle)))


def rope_2d_backward(a: Arithmetic, *, grad_cos: Array, grad_sin: Array, idx_theta: Array) -> dict[str, Array]:
    return {"grad_idx_theta": angle_gradient(a, grad_cos, grad_sin, idx_theta)}


def vision_rotary(a: Arithmetic, *, inv_freq: Array, pos_ids: Array) -> dict[str, Array]:
    half = (pos_ids.astype(inv_freq.dtype)[:, :, None] * inv_freq).reshape(len(pos_ids), -1)
    emb = wide(numpy.concatenate([half, half], -1))
    return {"emb": emb, "cos": a.cos(emb), "sin": a.sin(emb)}


def vision_rotary_backward(
    a: Arithmetic, *, grad_cos: Array, grad_sin: Array, emb: Array, pos_ids: Array, inv_freq: Array | None = None
) -> dict[str, Array]:
    quarter = emb.shape[1] // 4
    ge = angle_gradient(a, grad_cos, grad_sin, emb).reshape(len(emb), 2, 2, quarter)
    return {"grad_inv_freq": (ge.sum(1) * wide(pos_ids)[:, :, None]).sum((0, 1))}


def rope_apply(
    a: Arithmetic, *, cos: Array, sin: Array, q: Array | None = None, k: Array | None = None,
    style: str = "rotate_half", rotary_dim: int = 0, in_place: bool = False,
) -> dict[str, Array]:  # fmt: skip
    given = {"q_embed": q, "k_embed": k}
    return {name: turned(a, x, cos, sin, style) for name, x in given.items() if x is not None}


def rope_apply_backward(
    a: Arithmetic, *, grad_q_embed: Array, grad_k_embed: Array, q: Array, k: Array, cos: Array, sin: Array,
    style: str = "rotate_half", rotary_dim: int = 0, sin_pairing: str = "adjoint",
) -> dict[str, Array]:  # fmt: skip
    R = cos.shape[-1]
    of_q, of_k = (table_gradients(a, g, x, R, style) for g, x in ((grad_q_embed, q), (grad_k_embed, k)))
    grad_cos, grad_sin = of_q[0] + of_k[0], of_q[1] + of_k[1]
    if len(cos) == 1:
        grad_cos, grad_sin = grad_cos.sum(0, keepdims=True), grad_sin.sum(0, keepdims=True)
    return {
        "grad_q": turned_back(a, grad_q_embed, cos, sin, style, sin_pairing),
        "grad_k": turned_back(a, grad_k_embed, cos, sin, style, sin_pairing),
        "grad_cos": grad_cos,
        "grad_sin": grad_sin,
    }


def kv_cache_update(
    a: Arithmetic, *, key_cache_input: Array, value_cache_input: Array, key_states: Array, value_states: Array,
    cos: Array, sin: Array, cache_position: Array, style: str = "rotate_half", rotary_dim: int = 0,
    in_place: bool = False,
) -> dict[str, Array]:  # fmt: skip
    key_cache, value_cache = wide(key_cache_input), wide(value_cache_input)
    keys = turned(a, key_states, cos, sin, style)
    for n, row in enumerate(cache_position):
        if row >= 0:
            key_cache[:, :, row] = keys[:, :, n]
            value_cache[:, :, row] = wide(value_states)[:, :, n]
    return {"key_cache": key_cache, "value_cache": value_cache}


def kv_cache_update_backward(
    a: Arithmetic, *, grad_key_cache: Array, grad_value_cache: Array, key_states: Array, cos: Array, sin: Array,
    cache_position: Array, style: str = "rotate_half", rotary_dim: int = 0, rounding: str = "once",
    in_place: bool = False,
) -> dict[str, Array]:  # fmt: skip
    written = (cache_position >= 0)[None, None, :, None]
    g = numpy.where(written, wide(grad_key_cache)[:, :, cache_position], 0)
    grad_cos, grad_sin = table_gradients(a, g, key_states, cos.shape[-1], style)
    if len(cos) == 1:
        grad_cos, grad_sin = grad_cos.sum(0, keepdims=True), grad_sin.sum(0, keepdims=True)
    passed = [wide(grad_key_cache), wide(grad_value_cache)]
    for cache in passed:
        cache[:, :, cache_position[cache_position >= 0]] = 0
    return {
        "grad_key_states": turned_back(a, g, cos, sin, style),
        "grad_value_states": numpy.where(written, wide(grad_value_cache)[:, :, cache_position], 0),
        "grad_cos": grad_cos,
        "grad_sin": grad_sin,
        "grad_key_cache_input": passed[0],
        "grad_value_cache_input": passed[1],
    }
