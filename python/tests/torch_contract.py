"""What the tests of ropegrad.torch compare with: plain PyTorch, differentiated by autograd in float64 on the same
rounded inputs, and the project's contract of how far a result may be from it."""

from __future__ import annotations

import math

import torch
from torch import Tensor

UNIT_ROUNDOFF = {torch.float64: 2.0**-53}  # of the arithmetic, which is float32's for every other dtype
DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
DTYPES = [torch.float32, torch.bfloat16, torch.float16]


# ---- the contract ----


def half_ulp(reference: Tensor, dtype: torch.dtype) -> Tensor:
    """Of a 16-bit dtype around each reference; else 0."""
    bits, least = {torch.bfloat16: (8, -126), torch.float16: (11, -14)}.get(dtype, (0, 0))
    if bits == 0:
        return torch.zeros_like(reference)
    exponent = torch.frexp(reference).exponent.double() - 1
    return torch.exp2(exponent.clamp(min=least) - bits)


def assert_contract(name: str, value: Tensor, reference: Tensor, magnitude: Tensor, terms: int) -> None:
    """|y - ref| <= (8 + sqrt(n)/16) u T + u |ref|, and half an ulp of 16-bit results. magnitude is T, the sum of the
    absolute values of the n = terms summed terms, with |sin| and |cos| of an angle counted as 1."""
    assert value.shape == reference.shape, f"{name}: {tuple(value.shape)} where {tuple(reference.shape)} was expected"
    u = UNIT_ROUNDOFF.get(value.dtype, 2.0**-24)
    allowance = (8 + math.sqrt(terms) / 16) * u * magnitude + u * reference.abs() + half_ulp(reference, value.dtype)
    value = value.detach()
    error = (value.double() - reference).abs()
    inside = error <= allowance  # false for NaN
    if not bool(inside.all()):
        worst = int((error / allowance.clamp(min=1e-300)).nan_to_num(nan=math.inf).argmax())
        raise AssertionError(
            f"{name}: {int((~inside).sum())} of {inside.numel()} outside of the contract; element {worst} is "
            f"{float(value.flatten()[worst])!r}, expected {float(reference.flatten()[worst])!r} within "
            f"{float(allowance.flatten()[worst]):.3g}"
        )


# ---- plain PyTorch ----


def partner(x: Tensor, interleaved: bool, signed: bool = True) -> Tensor:
    """rotate_half(x) = (-x2, x1) in either layout of pairs; unsigned, for magnitudes: (x2, x1)."""
    sign = -1.0 if signed else 1.0
    if interleaved:
        return torch.stack((sign * x[..., 1::2], x[..., 0::2]), -1).flatten(-2)
    first, second = x.chunk(2, -1)
    return torch.cat((sign * second, first), -1)


def rotate(x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool = False, unsqueeze_dim: int = 1) -> Tensor:
    """x * cos + rotate_half(x) * sin on the columns that cos has."""
    columns = cos.shape[-1]
    heads = unsqueeze_dim if cos.dim() == 3 else unsqueeze_dim - 1
    turned = x[..., :columns]
    turned = turned * cos.unsqueeze(heads) + partner(turned, interleaved) * sin.unsqueeze(heads)
    return torch.cat((turned, x[..., columns:]), -1)


def rotated_magnitude(
    x: Tensor, cos: Tensor, sin: Tensor, interleaved: bool, unsqueeze_dim: int, backward: bool = False
) -> Tensor:
    """The sum of the absolute values of the two terms of each element; backward: of the transpose."""
    columns = cos.shape[-1]
    heads = unsqueeze_dim if cos.dim() == 3 else unsqueeze_dim - 1
    x, cos, sin = x.double().abs(), cos.double().abs().unsqueeze(heads), sin.double().abs().unsqueeze(heads)
    turned = x[..., :columns]
    other = partner(turned * sin, interleaved, False) if backward else partner(turned, interleaved, False) * sin
    return torch.cat((turned * cos + other, x[..., columns:]), -1)


def angles(positions: Tensor, frequencies: Tensor) -> Tensor:
    """The products, rounded to the dtype of the frequencies as the contract has it; differentiable as if they were
    not. Both arguments in float64."""
    exact = positions * frequencies
    rounded = (positions.float() * frequencies.float()).double()
    return rounded.detach() + exact - exact.detach()


def leaf(tensor: Tensor) -> Tensor:
    """The same values in float64, as a leaf that requires gradients."""
    return tensor.detach().double().requires_grad_()
