"""Modules that hold frequencies and make tables of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ropegrad.torch._functional import rotary_embedding, vision_rotary


def inverse_frequencies(dim: int, base: float = 10000.0) -> Tensor:
    """[dim/2] float32: base^(-2j/dim), radians per position."""
    if dim <= 0 or dim % 2:
        raise ValueError(f"dim: expected a positive even number, got {dim}")
    exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    return (base**-exponents).float()


class _Frequencies(nn.Module):
    """Frequencies that stay in float32 (or float64) when the model is cast to a shorter dtype: positions of some
    thousands times a rounded frequency would be other angles."""

    inv_freq: Tensor

    def __init__(self, inv_freq: Tensor, learned: bool) -> None:
        super().__init__()
        if learned:
            self.inv_freq = nn.Parameter(inv_freq)
        else:
            self.register_buffer("inv_freq", inv_freq, persistent=False)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        before = self.inv_freq.data
        super()._apply(fn, recurse)
        if self.inv_freq.dtype.itemsize < before.dtype.itemsize and self.inv_freq.dtype is not torch.float32:
            self.inv_freq.data = before.to(self.inv_freq.device)
        return self


class RotaryEmbedding(_Frequencies):
    """The rotary embedding of a language model, as transformers' models have one: `cos, sin = rotary(x, position_ids)`.

    Args:
        dim: the columns that are turned, head_dim or fewer; of the default frequencies `base**(-2j/dim)`.
        base: of the default frequencies.
        inv_freq: [dim/2] frequencies of any kind, such as YaRN's or Llama 3's, instead of dim and base.
        attention_scaling: the factor on cos and sin that goes with them; a tensor if it is to be learned.
        learned: make inv_freq a parameter.
    """

    attention_scaling: float | Tensor

    def __init__(
        self,
        dim: int | None = None,
        base: float = 10000.0,
        *,
        inv_freq: Tensor | None = None,
        attention_scaling: float | Tensor = 1.0,
        learned: bool = False,
    ) -> None:
        if (dim is None) == (inv_freq is None):
            raise ValueError("RotaryEmbedding takes either dim or inv_freq")
        if inv_freq is None:
            assert dim is not None
            inv_freq = inverse_frequencies(dim, base)
        super().__init__(inv_freq, learned)
        self.attention_scaling = attention_scaling  # a Parameter is registered

    def forward(self, x: Tensor, position_ids: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
        """cos and sin [B, S, dim] of position_ids [B, S], in dtype or that of x; nothing else of x is used."""
        return rotary_embedding(position_ids, self.inv_freq, self.attention_scaling, dtype or x.dtype)


class VisionRotaryEmbedding(_Frequencies):
    """The rotary embedding of a vision transformer: `cos, sin = rotary(pos_ids)`.

    Args:
        dim: head_dim, a multiple of 4; of the default frequencies `base**(-4j/dim)`.
        base: of the default frequencies.
        inv_freq: [dim/4] frequencies instead of dim and base.
        learned: make inv_freq a parameter.
    """

    def __init__(
        self,
        dim: int | None = None,
        base: float = 10000.0,
        *,
        inv_freq: Tensor | None = None,
        learned: bool = False,
    ) -> None:
        if (dim is None) == (inv_freq is None):
            raise ValueError("VisionRotaryEmbedding takes either dim or inv_freq")
        if inv_freq is None:
            assert dim is not None
            if dim <= 0 or dim % 4:
                raise ValueError(f"dim: expected a positive multiple of 4, got {dim}")
            inv_freq = inverse_frequencies(dim // 2, base)
        super().__init__(inv_freq, learned)

    def forward(self, pos_ids: Tensor, dtype: torch.dtype | None = None) -> tuple[Tensor, Tensor]:
        """cos and sin [P, dim] of pos_ids [P, 2], rows and columns of patches, in dtype or float32."""
        return vision_rotary(pos_ids, self.inv_freq, dtype)
