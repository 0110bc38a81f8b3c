"""The five backward passes in plain PyTorch, written from the operators' formulas.

Each is what a user would write by hand: vectorised, in the dtypes of its arguments, without autograd. They are three
things at once: the eager peer, what torch.compile is given, and, on arguments in float64, what every result is checked
against. Where several forms come to mind, the one that torch.compile runs fastest is here (README.md says which).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

Outputs = tuple[Tensor, ...]


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rotate_half_transposed(x: Tensor) -> Tensor:
    """The adjoint of rotate_half."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((second, -first), dim=-1)


def rotary_embedding(
    grad_cos: Tensor, grad_sin: Tensor, emb: Tensor, inv_freq_expanded: Tensor, *, attention_scaling: float
) -> Outputs:
    """grad_position_ids [B, S]. The halves of emb are equal: only the first is read."""
    theta = emb.chunk(2, dim=-1)[0]
    gc = torch.add(*grad_cos.chunk(2, dim=-1))
    gs = torch.add(*grad_sin.chunk(2, dim=-1))
    grad_theta = gs * theta.cos() - gc * theta.sin()
    return ((grad_theta * inv_freq_expanded.transpose(1, 2)).sum(-1) * attention_scaling,)


def rope_2d(grad_cos: Tensor, grad_sin: Tensor, idx_theta: Tensor) -> Outputs:
    """grad_idx_theta [B, S, D]."""
    return (grad_sin * idx_theta.cos() - grad_cos * idx_theta.sin(),)


def vision_rotary(grad_cos: Tensor, grad_sin: Tensor, emb: Tensor, pos_ids: Tensor, inv_freq: Tensor) -> Outputs:
    """grad_inv_freq [Q]. The table that the forward looks up, the scatter into it and its product with the positions
    collapse into one weighted sum."""
    grad_emb = grad_sin * emb.cos() - grad_cos * emb.sin()
    patches, quarter = emb.shape[0], inv_freq.shape[0]
    parts = grad_emb.view(patches, 2, 2, quarter)  # half of the table, height or width, frequency
    weight = pos_ids.to(emb.dtype).view(patches, 1, 2, 1)
    return ((parts * weight).sum((0, 1, 2)),)


def rope_apply(
    grad_q_embed: Tensor, grad_k_embed: Tensor, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *, sin_pairing: str
) -> Outputs:
    """grad_q [B, Hq, S, D], grad_k [B, Hk, S, D], grad_cos and grad_sin [B, S, D]."""
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    if sin_pairing == "same_half":
        grad_q = grad_q_embed * c - rotate_half(grad_q_embed) * s
        grad_k = grad_k_embed * c - rotate_half(grad_k_embed) * s
    else:
        grad_q = grad_q_embed * c + rotate_half_transposed(grad_q_embed * s)
        grad_k = grad_k_embed * c + rotate_half_transposed(grad_k_embed * s)
    grad_cos = (grad_q_embed * q).sum(1) + (grad_k_embed * k).sum(1)
    grad_sin = (grad_q_embed * rotate_half(q)).sum(1) + (grad_k_embed * rotate_half(k)).sum(1)
    return grad_q, grad_k, grad_cos, grad_sin


def kv_cache_update(
    grad_key_cache: Tensor,
    grad_value_cache: Tensor,
    key_states: Tensor,
    cos: Tensor,
    sin: Tensor,
    cache_position: Tensor,
    *,
    in_place: bool,
) -> Outputs:
    """grad_key_states, grad_value_states [B, Hk, N, D], grad_cos, grad_sin [B, N, D] and the two gradients of the
    caches [B, Hk, M, D], which in place are the very tensors that came in."""
    c, s = cos.unsqueeze(1), sin.unsqueeze(1)
    g = grad_key_cache.index_select(2, cache_position)
    grad_key_states = g * c + rotate_half_transposed(g * s)
    grad_value_states = grad_value_cache.index_select(2, cache_position)
    grad_cos = (g * key_states).sum(1)
    grad_sin = (g * rotate_half(key_states)).sum(1)
    fill = torch.Tensor.index_fill_ if in_place else torch.Tensor.index_fill
    grad_key_cache_input = fill(grad_key_cache, 2, cache_position, 0)
    grad_value_cache_input = fill(grad_value_cache, 2, cache_position, 0)
    return grad_key_states, grad_value_states, grad_cos, grad_sin, grad_key_cache_input, grad_value_cache_input


def kv_cache_update_masked(
    grad_key_cache: Tensor,
    grad_value_cache: Tensor,
    key_states: Tensor,
    cos: Tensor,
    sin: Tensor,
    cache_position: Tensor,
    *,
    in_place: bool,
) -> Outputs:
    """The same, out of place, with the caches' gradients chosen by a mask: less natural, but one pass over each cache
    where torch.compile makes a copy and then writes into it."""
    states = kv_cache_update(
        grad_key_cache, grad_value_cache, key_states, cos, sin, cache_position, in_place=in_place
    )[:4]
    rows = torch.zeros(grad_key_cache.shape[2], dtype=torch.bool, device=cache_position.device)
    named = rows.index_fill(0, cache_position, True).view(1, 1, -1, 1)
    return (*states, grad_key_cache.masked_fill(named, 0), grad_value_cache.masked_fill(named, 0))


PLAIN: dict[str, Callable[..., Outputs]] = {
    "rotary_embedding": rotary_embedding,
    "rope_2d": rope_2d,
    "vision_rotary": vision_rotary,
    "rope_apply": rope_apply,
    "kv_cache_update": kv_cache_update,
}
