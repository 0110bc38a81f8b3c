"""The functions: what they take is checked and put in the form that the operators know."""

from __future__ import annotations

import torch
from torch import Tensor

from ropegrad.torch import _kv_cache, _kv_cache_in_place, _rope_apply, _tables, _vision
from ropegrad.torch._dispatch import is_compiling

_ROTATE = _rope_apply.rope_apply
_LOW_PRECISION = (torch.bfloat16, torch.float16)


def _widened(table: Tensor, payloads: tuple[Tensor, ...]) -> Tensor:
    """A table is float32 or of the dtype of a tensor that it turns, and float64 beside float64."""
    if not table.is_floating_point():
        raise TypeError(f"cos and sin: expected tables of floating-point numbers, got {table.dtype}")
    dtypes = [t.dtype for t in payloads]
    if torch.float64 in dtypes:
        return table.to(torch.float64)
    return table if table.dtype in dtypes else table.to(torch.float32)


def _tables_for(
    cos: Tensor, sin: Tensor, rotary_dim: int | None, payloads: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The columns that are asked for, in a dtype that the operators take."""
    if rotary_dim is not None and rotary_dim != cos.shape[-1]:
        if not 0 < rotary_dim <= cos.shape[-1]:
            raise ValueError(f"rotary_dim: expected 1 to {cos.shape[-1]}, the columns of cos, got {rotary_dim}")
        cos, sin = cos[..., :rotary_dim], sin[..., :rotary_dim]
    return _widened(cos, payloads), _widened(sin, payloads)


def apply_rotary_pos_emb(
    q: Tensor,
    k: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None = None,
    unsqueeze_dim: int = 1,
    *,
    interleaved: bool = False,
    rotary_dim: int | None = None,
    in_place: bool = False,
) -> tuple[Tensor, Tensor]:
    """Turns q and k by rotary position embeddings: `x * cos + rotate_half(x) * sin`.

    Gradients flow to q, k, cos and sin, as far as they are needed.

    Args:
        q: [B, Hq, S, D], or [B, S, Hq, D] with unsqueeze_dim = 2; any strides. float32, bfloat16, float16 or float64.
        k: [B, Hk, S, D] or [B, S, Hk, D]; its number of heads and its dtype may be others than those of q.
        cos, sin: [B, S, R], or [1, S, R] or [S, R] for every batch; R <= D. The first R columns of q and k are turned,
            the others pass through. In float32 or in the dtype of q or k.
        position_ids: [B, S] int64 with tables [L, R] of L positions: rows of the tables that are to be used. With
            tables of another shape it is ignored, as in transformers.
        unsqueeze_dim: where the heads are: 1 or 2.
        interleaved: whether columns 2j and 2j + 1 form a pair (GPT-J) instead of j and j + R/2 (NeoX, Llama).
        rotary_dim: use only the first rotary_dim columns of cos and sin.
        in_place: write the results over q and k. cos and sin must then not require gradients.

    Returns:
        The turned q and k, in the dtypes and layouts of q and k; with in_place q and k themselves.
    """
    if unsqueeze_dim not in (1, 2):
        raise ValueError(f"unsqueeze_dim: expected 1 for [B, H, S, D] or 2 for [B, S, H, D], got {unsqueeze_dim}")
    if position_ids is not None and cos.dim() == 2:
        cos, sin = cos[position_ids], sin[position_ids]
    if rotary_dim is not None or not cos.dtype is sin.dtype is q.dtype is k.dtype:
        cos, sin = _tables_for(cos, sin, rotary_dim, (q, k))
    if in_place:
        _rope_apply.rotate_in_place(q, k, cos, sin, interleaved, unsqueeze_dim)
        return q, k
    rotate = _ROTATE.overload if is_compiling() else _ROTATE.eager
    q_embed, k_embed = rotate(q, k, cos, sin, interleaved, unsqueeze_dim)
    return q_embed, k_embed


def apply_rotary(
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    position_ids: Tensor | None = None,
    unsqueeze_dim: int = 1,
    *,
    interleaved: bool = False,
    rotary_dim: int | None = None,
    in_place: bool = False,
) -> Tensor:
    """`apply_rotary_pos_emb` of one tensor."""
    if unsqueeze_dim not in (1, 2):
        raise ValueError(f"unsqueeze_dim: expected 1 for [B, H, S, D] or 2 for [B, S, H, D], got {unsqueeze_dim}")
    if position_ids is not None and cos.dim() == 2:
        cos, sin = cos[position_ids], sin[position_ids]
    if rotary_dim is not None or not cos.dtype is sin.dtype is x.dtype:
        cos, sin = _tables_for(cos, sin, rotary_dim, (x,))
    if in_place:
        _rope_apply.rotate_in_place(x, None, cos, sin, interleaved, unsqueeze_dim)
        return x
    rotate = _ROTATE.overload if is_compiling() else _ROTATE.eager
    turned: Tensor = rotate(x, None, cos, sin, interleaved, unsqueeze_dim)[0]
    return turned


def update_kv_cache(
    key_cache: Tensor,
    value_cache: Tensor,
    key_states: Tensor,
    value_states: Tensor,
    cos: Tensor,
    sin: Tensor,
    cache_position: Tensor,
    in_place: bool = False,
    *,
    interleaved: bool = False,
    rotary_dim: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Turns new keys and writes them and new values into a key-value cache.

    Gradients flow to all tensors but cache_position, as far as they are needed.

    Args:
        key_cache, value_cache: [B, Hk, M, D].
        key_states, value_states: [B, Hk, N, D], before rotation, in the dtypes of their caches. Under autocast they are
            cast to these.
        cos, sin: [B, N, R], or [1, N, R] or [N, R] for every batch, as for `apply_rotary_pos_emb`.
        cache_position: [N] int64 or int32: the cache row of each new row. A negative entry is padding: its row is not
            written. Of entries that repeat, the last is kept; the gradient of each is that of the row. An entry past
            the end is an error on the CPU; on CUDA its row is not written, and `check_device` raises.
        in_place: write into key_cache and value_cache, of which only the named rows are then touched.

    Returns:
        The caches with the new rows; with in_place key_cache and value_cache themselves.
    """
    device = key_cache.device.type
    if device in ("cpu", "cuda") and torch.is_autocast_enabled(device):
        key_states, value_states = key_states.to(key_cache.dtype), value_states.to(value_cache.dtype)
    cos, sin = _tables_for(cos, sin, rotary_dim, (key_cache, value_cache))
    arguments = (key_cache, value_cache, key_states, value_states, cos, sin, cache_position, interleaved)
    if in_place:
        _kv_cache_in_place.update_in_place(*arguments)
        return key_cache, value_cache
    keys, values = _kv_cache.kv_cache_update(*arguments)
    return keys, values


def _angles(tensor: Tensor) -> Tensor:
    """Angles and frequencies are float32 at least, under autocast too."""
    return tensor.float() if tensor.dtype in _LOW_PRECISION else tensor


def rope_2d(idx_theta: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """cos and sin of given angles, in radians, accurate for every finite angle.

    Args:
        idx_theta: [B, S, D] or [S, D], float32 or float64; D even. 16-bit angles are widened first.
        dtype: of the results; the dtype of the angles if None.

    Returns:
        cos and sin, each rounded once, differentiable with respect to the angles.
    """
    angles = _angles(idx_theta)
    shaped = angles.unsqueeze(0) if angles.dim() == 2 else angles
    cos, sin = _tables.rope_2d(shaped, dtype or angles.dtype)
    return (cos[0], sin[0]) if angles.dim() == 2 else (cos, sin)


def rotary_embedding(
    position_ids: Tensor,
    inv_freq: Tensor,
    attention_scaling: float | Tensor = 1.0,
    dtype: torch.dtype | None = None,
) -> tuple[Tensor, Tensor]:
    """The tables of a rotary embedding: cos and sin of `position_ids * inv_freq`, times attention_scaling.

    Gradients flow to position_ids, inv_freq and attention_scaling, as far as they are floating-point tensors that
    require them.

    Args:
        position_ids: [B, S] or [S]; integers, or floating-point numbers in the dtype of inv_freq.
        inv_freq: [D/2], or [B, D/2] for frequencies of each batch; float32 or float64. 16-bit ones are widened.
        attention_scaling: the factor on cos and sin: a number, or a tensor of one element.
        dtype: of the tables; the dtype of inv_freq if None.

    Returns:
        cos and sin, [B, S, D], or [S, D] for position_ids [S]; each rounded once.
    """
    inv_freq = _angles(inv_freq)
    if position_ids.is_floating_point() and position_ids.dtype != inv_freq.dtype:
        position_ids = position_ids.to(inv_freq.dtype)
    rows = position_ids.unsqueeze(0) if position_ids.dim() == 1 else position_ids
    dtype = dtype or inv_freq.dtype
    if isinstance(attention_scaling, Tensor):
        cos, sin = _tables.rotary_embedding(rows, inv_freq, 1.0, inv_freq.dtype)
        scale = attention_scaling.to(inv_freq.dtype)
        cos, sin = (cos * scale).to(dtype), (sin * scale).to(dtype)
    else:
        cos, sin = _tables.rotary_embedding(rows, inv_freq, float(attention_scaling), dtype)
    return (cos[0], sin[0]) if position_ids.dim() == 1 else (cos, sin)


def vision_rotary(pos_ids: Tensor, inv_freq: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
    """The tables of a vision transformer's patches: angles are `pos_ids[p, a] * inv_freq[j]` for row and column.

    Args:
        pos_ids: [P, 2] int64: row and column of each patch.
        inv_freq: [D/4] float32 or float64; gradients flow to it. 16-bit ones are widened.
        dtype: of the tables; the dtype of inv_freq if None.

    Returns:
        cos and sin [P, D]; the second half of the columns repeats the first.
    """
    inv_freq = _angles(inv_freq)
    cos, sin = _vision.vision_rotary(inv_freq, pos_ids, dtype or inv_freq.dtype)
    return cos, sin
