"""Results and gradients inside the project's contract, against autograd of plain PyTorch in float64."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch_contract import DEVICES, DTYPES, assert_contract, leaf, partner, rotate, rotated_magnitude

import ropegrad.torch as rope
from ropegrad.torch import _launch

pytestmark = pytest.mark.parametrize("device", DEVICES)
B, HQ, HK, S, D = 2, 4, 2, 37, 64


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(3)


def tables(dtype: torch.dtype, device: str, shape: tuple[int, ...], independent: bool = False) -> tuple[Tensor, Tensor]:
    """cos and sin whose halves agree, as in a model, or are independent."""
    angle = torch.randn(shape, dtype=torch.float64, device=device) * 10
    if not independent:
        angle = torch.cat((angle[..., : shape[-1] // 2],) * 2, -1)
    return angle.cos().to(dtype), angle.sin().to(dtype)


def summed(terms: Tensor, like: Tensor, unsqueeze_dim: int) -> Tensor:
    """Over the heads, and over the batch where `like` has none of its own."""
    terms = terms.sum(unsqueeze_dim)
    return terms.sum(0).view(like.shape) if like.dim() == 2 or like.shape[0] != terms.shape[0] else terms


def check_rope(
    q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, grads: tuple[Tensor, Tensor], **options: Any
) -> tuple[Tensor, ...]:
    """Forward and backward of given tensors, which are not to change. Returns ropegrad's results and gradients."""
    interleaved, unsqueeze_dim = options.get("interleaved", False), options.get("unsqueeze_dim", 1)
    inputs = [t.detach().requires_grad_() for t in (q, k, cos, sin)]
    before = [(t.clone(), t.stride()) for t in (q, k, cos, sin, *grads)]
    made = rope.apply_rotary_pos_emb(*inputs, **options)
    got = torch.autograd.grad(made, inputs, grads)
    exact = [leaf(t) for t in (q, k, cos, sin)]
    expected = [rotate(x, exact[2], exact[3], interleaved, unsqueeze_dim) for x in exact[:2]]
    wanted = torch.autograd.grad(expected, exact, [g.double() for g in grads])

    columns = cos.shape[-1]
    for name, x, y, reference in zip(("q_embed", "k_embed"), (q, k), made, expected):
        assert y.dtype == x.dtype and y.shape == x.shape
        magnitude = rotated_magnitude(x, cos, sin, interleaved, unsqueeze_dim)
        assert_contract(name, y, reference.detach(), magnitude, 2)
        assert torch.equal(y[..., columns:], x[..., columns:])
    for name, g, y, reference in zip(("grad_q", "grad_k"), grads, got, wanted):
        assert y.dtype == g.dtype
        magnitude = rotated_magnitude(g, cos, sin, interleaved, unsqueeze_dim, backward=True)
        assert_contract(name, y, reference, magnitude, 2)
        assert torch.equal(y[..., columns:], g[..., columns:])
    terms = q.shape[unsqueeze_dim] + k.shape[unsqueeze_dim]
    if cos.dim() == 2 or cos.shape[0] != q.shape[0]:
        terms *= q.shape[0]
    for name, table, y, reference, turned in zip(("grad_cos", "grad_sin"), (cos, sin), got[2:], wanted[2:], (0, 1)):
        parts = []
        for g, x in zip(grads, (q, k)):
            x, g = x.double().abs()[..., :columns], g.double().abs()[..., :columns]
            parts.append(summed(g * (partner(x, interleaved, False) if turned else x), table, unsqueeze_dim))
        assert y.dtype == table.dtype
        assert_contract(name, y, reference, parts[0] + parts[1], terms)
    for tensor, (value, stride) in zip((q, k, cos, sin, *grads), before):
        assert torch.equal(tensor, value) and tensor.stride() == stride, "an input was changed"
    return (*made, *got)


def payloads(dtype: torch.dtype, device: str, unsqueeze_dim: int = 1) -> list[Tensor]:
    """q, k and gradients of their results."""
    shapes = [(B, h, S, D) if unsqueeze_dim == 1 else (B, S, h, D) for h in (HQ, HK)] * 2
    return [torch.randn(shape, device=device).to(dtype) for shape in shapes]


@pytest.mark.parametrize("wide_tables", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("unsqueeze_dim", [1, 2])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("columns", [D, D // 2, 6])
def test_rope(
    device: str, dtype: torch.dtype, unsqueeze_dim: int, interleaved: bool, columns: int, wide_tables: bool
) -> None:
    q, k, *grads = payloads(dtype, device, unsqueeze_dim)
    cos, sin = tables(torch.float32 if wide_tables else dtype, device, (B, S, columns), independent=True)
    made = check_rope(q, k, cos, sin, tuple(grads), unsqueeze_dim=unsqueeze_dim, interleaved=interleaved)
    assert [y.stride() for y in made[:2]] == [q.stride(), k.stride()]


@pytest.mark.parametrize("shape", [(1, S, D), (S, D), (1, S, 8)])
def test_tables_for_every_batch(device: str, shape: tuple[int, ...]) -> None:
    q, k, *grads = payloads(torch.float32, device)
    check_rope(q, k, *tables(torch.float32, device, shape), tuple(grads))


def test_expanded_tables(device: str) -> None:
    q, k, *grads = payloads(torch.bfloat16, device)
    cos, sin = (t.expand(B, S, D) for t in tables(torch.float32, device, (1, S, D)))
    check_rope(q, k, cos, sin, tuple(grads))


def test_dtypes_of_q_and_k_differ(device: str) -> None:
    q, k, *grads = payloads(torch.float32, device)
    check_rope(q, k.bfloat16(), *tables(torch.float32, device, (B, S, D)), (grads[0], grads[1].bfloat16()))


def test_gradients_of_stride_0(device: str) -> None:
    q, k, *_ = payloads(torch.float32, device)
    ones = [torch.ones((), device=device).expand(t.shape) for t in (q, k)]
    check_rope(q, k, *tables(torch.float32, device, (B, S, D)), (ones[0], ones[1]))


def test_sum_backward(device: str) -> None:
    q, k, *_ = payloads(torch.float32, device)
    cos, sin = tables(torch.float32, device, (B, S, D))
    q.requires_grad_()
    rope.apply_rotary_pos_emb(q, k, cos, sin)[0].sum().backward()
    expected = leaf(q)
    rotate(expected, cos.double(), sin.double()).sum().backward()
    magnitude = rotated_magnitude(torch.ones_like(q), cos, sin, False, 1, backward=True)
    assert_contract("grad_q", q.grad, expected.grad, magnitude, 2)


def test_views(device: str) -> None:
    """q and k of one projection, with the heads in the third dimension; gradients transposed and sliced."""
    projected = torch.randn(B, S, (HQ + 2 * HK) * D, device=device)
    q, k, _ = (t.view(B, S, -1, D).transpose(1, 2) for t in projected.split((HQ * D, HK * D, HK * D), -1))
    grad_q = torch.randn(B, HQ, D, S, device=device).transpose(2, 3)
    grad_k = torch.randn(B, HK, S, 2 * D, device=device)[..., ::2]
    cos, sin = (t[:, ::2] for t in tables(torch.float32, device, (B, 2 * S, D)))
    check_rope(q, k, cos, sin, (grad_q, grad_k))


@pytest.mark.parametrize("sizes", [(0, HQ, HK, S), (B, 0, HK, S), (B, HQ, 0, S), (B, HQ, HK, 0), (0, 0, 0, 0)])
@pytest.mark.parametrize("unsqueeze_dim", [1, 2])
def test_empty(device: str, sizes: tuple[int, ...], unsqueeze_dim: int) -> None:
    b, hq, hk, s = sizes
    shapes = [(b, h, s, D) if unsqueeze_dim == 1 else (b, s, h, D) for h in (hq, hk)] * 2
    q, k, *grads = (torch.randn(shape, device=device) for shape in shapes)
    check_rope(q, k, *tables(torch.float32, device, (b, s, D)), tuple(grads), unsqueeze_dim=unsqueeze_dim)


def test_position_ids(device: str) -> None:
    q, k, *_ = payloads(torch.float32, device)
    cos, sin = tables(torch.float32, device, (100, D))
    position_ids = torch.randint(0, 100, (B, S), device=device)
    made = rope.apply_rotary_pos_emb(q, k, cos, sin, position_ids)
    expected = rope.apply_rotary_pos_emb(q, k, cos[position_ids], sin[position_ids])
    assert torch.equal(made[0], expected[0]) and torch.equal(made[1], expected[1])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("interleaved", [False, True])
def test_one_tensor_and_in_place(device: str, dtype: torch.dtype, interleaved: bool) -> None:
    q, k, *_ = payloads(dtype, device)
    cos, sin = tables(dtype, device, (B, S, 32))
    both = rope.apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)
    assert torch.equal(rope.apply_rotary(q, cos, sin, interleaved=interleaved), both[0])
    again = rope.apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved, in_place=True)
    assert again[0] is q and again[1] is k
    assert torch.equal(q, both[0]) and torch.equal(k, both[1])


# ---- the cache ----


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [D, 16])
def test_kv_cache(device: str, dtype: torch.dtype, columns: int, in_place: bool) -> None:
    rows, new = 19, 5
    caches = [torch.randn(B, HK, rows, D, device=device).to(dtype) for _ in range(2)]
    states = [torch.randn(B, HK, new, D, device=device).to(dtype) for _ in range(2)]
    grads = [torch.randn(B, HK, rows, D, device=device).to(dtype) for _ in range(2)]
    cos, sin = tables(dtype, device, (B, new, columns), independent=True)
    cache_position = torch.tensor([7, 3, -1, 18, 0], device=device)
    inputs = [t.detach().clone().requires_grad_() for t in (*caches, *states, cos, sin)]
    copies = [inputs[0] * 1, inputs[1] * 1]
    made = rope.update_kv_cache(*copies, *inputs[2:], cache_position, in_place)
    assert (made[0] is copies[0]) == in_place and (made[1] is copies[1]) == in_place
    if not in_place:
        assert torch.equal(copies[0], caches[0]) and torch.equal(copies[1], caches[1])
    got = torch.autograd.grad(made, inputs, grads)

    exact = [leaf(t) for t in (*caches, *states, cos, sin)]
    written = cache_position >= 0
    named = cache_position[written]
    turned = rotate(exact[2], exact[4], exact[5])
    expected = [
        exact[0].index_copy(2, named, turned[:, :, written]),
        exact[1].index_copy(2, named, exact[3][:, :, written]),
    ]
    wanted = torch.autograd.grad(expected, exact, [g.double() for g in grads])

    magnitude = torch.zeros(B, HK, rows, D, dtype=torch.float64, device=device)
    magnitude[:, :, named] = rotated_magnitude(states[0], cos, sin, False, 1)[:, :, written]
    assert_contract("key_cache", made[0], expected[0].detach(), magnitude, 2)
    assert torch.equal(made[1], expected[1].to(dtype))
    for name, i in (("key_cache", 0), ("value_cache", 1), ("value_states", 3)):
        assert torch.equal(got[i], wanted[i].to(dtype)), f"the gradient of {name} is copied"
    g = torch.zeros(B, HK, new, D, dtype=torch.float64, device=device)
    g[:, :, written] = grads[0].double()[:, :, named]
    assert_contract("grad_key_states", got[2], wanted[2], rotated_magnitude(g, cos, sin, False, 1, True), 2)
    x, g = states[0].double().abs()[..., :columns], g.abs()[..., :columns]
    assert_contract("grad_cos", got[4], wanted[4], (g * x).sum(1), HK)
    assert_contract("grad_sin", got[5], wanted[5], (g * partner(x, False, False)).sum(1), HK)


def test_repeated_rows_keep_the_last(device: str) -> None:
    cache, states = torch.zeros(1, 1, 4, 4, device=device), torch.randn(1, 1, 3, 4, device=device)
    cos, sin = torch.ones(3, 4, device=device), torch.zeros(3, 4, device=device)
    position = torch.tensor([1, 1, 1], dtype=torch.int32, device=device)
    keys, values = rope.update_kv_cache(cache, cache.clone(), states, states, cos, sin, position)
    assert torch.equal(keys[0, 0, 1], states[0, 0, 2]) and torch.equal(values, keys)


# ---- PyTorch before it let C read its tensors ----


@pytest.mark.skipif(not _launch.READS_TENSORS, reason="this PyTorch is such a one: every other test is of it")
@pytest.mark.parametrize("unsqueeze_dim", [1, 2])
def test_tensors_described_by_python(device: str, unsqueeze_dim: int, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, *grads = payloads(torch.bfloat16, device, unsqueeze_dim)
    cos, sin = tables(torch.float32, device, (B, S, D))
    options: dict[str, Any] = {"unsqueeze_dim": unsqueeze_dim}
    expected = check_rope(q, k, cos, sin, (grads[0], grads[1]), **options)
    made_by_c = rope.rope_2d(cos)[0]
    monkeypatch.setattr(_launch, "READS_TENSORS", False)
    got = check_rope(q, k, cos, sin, (grads[0], grads[1]), **options)
    assert all(map(torch.equal, got, expected))
    cache = torch.zeros(B, HK, S, D, device=device, dtype=torch.bfloat16)
    keys = k if unsqueeze_dim == 1 else k.transpose(1, 2)
    made = rope.update_kv_cache(cache, cache, keys, keys, cos, sin, torch.arange(S, device=device))
    assert torch.equal(made[0], rope.apply_rotary(keys, cos, sin)) and torch.equal(made[1], keys)
    assert torch.equal(rope.rope_2d(cos)[0], made_by_c)


# ---- can these comparisons fail? ----


@pytest.mark.parametrize("mistake", ["rounding", "pairing", "sign", "nan", "copied"])
def test_planted_mistakes_are_found(device: str, mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, *grads = payloads(torch.float32, device)
    cos, sin = tables(torch.float32, device, (B, S, D - 2), independent=True)
    right = rope.apply_rotary_pos_emb
    place = (1, 2, S - 1, 5)

    def wrong(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
        if mistake == "pairing":  # the halves of sin exchanged in the gradient alone
            exchanged = right(q, k, cos, torch.cat(sin.chunk(2, -1)[::-1], -1))
            made = right(q, k, cos, sin)
            return exchanged[0] + (made[0] - exchanged[0]).detach(), exchanged[1] + (made[1] - exchanged[1]).detach()
        made = tuple(t * 1 for t in right(q, k, cos, -sin if mistake == "sign" else sin))
        with torch.no_grad():
            if mistake == "rounding":  # of one element, as by products rounded to half as many bits
                made[0][place] += made[0][place].abs().clamp(min=0.5) * 2.0**-18
            elif mistake == "nan":
                made[0][place] = float("nan")
            elif mistake == "copied":  # the last bit of a column that passes through
                made[1][0, 0, 0, D - 1] = torch.nextafter(made[1][0, 0, 0, D - 1], torch.tensor(9.0, device=device))
        return made[0], made[1]

    monkeypatch.setattr(rope, "apply_rotary_pos_emb", wrong)
    with pytest.raises(AssertionError):
        check_rope(q, k, cos, sin, (grads[0], grads[1]))
