"""Tables of cos and sin, and gradients of what they are made of, inside the contract, against autograd in float64."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch_contract import DEVICES, DTYPES, angles, assert_contract, leaf

import ropegrad.torch as rope

pytestmark = pytest.mark.parametrize("device", DEVICES)
B, S, D = 2, 37, 64


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(3)


def check_tables(
    got: tuple[Tensor, Tensor], theta: Tensor, scaling: float, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """theta: the angles in float64. Returns the reference's cos and sin, which can be differentiated."""
    references = (theta.cos() * scaling, theta.sin() * scaling)
    for name, table, reference in zip(("cos", "sin"), got, references):
        assert table.dtype == dtype
        assert_contract(name, table, reference.detach(), torch.full_like(reference, abs(scaling)).detach(), 1)
    return references


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scaling", [1.0, 1.34375])
@pytest.mark.parametrize("largest", [50, 131072])
@pytest.mark.parametrize("learned", [False, True])
def test_rotary_embedding(device: str, dtype: torch.dtype, scaling: float, largest: int, learned: bool) -> None:
    positions = torch.rand(B, S, device=device) * largest
    inv_freq = rope.inverse_frequencies(D).to(device)
    grads = [torch.randn(B, S, D, device=device).to(dtype) for _ in range(2)]
    inputs = [positions.requires_grad_(), inv_freq.requires_grad_(learned)]
    made = rope.rotary_embedding(*inputs, scaling, dtype)
    needed = [t for t in inputs if t.requires_grad]
    got = torch.autograd.grad(made, needed, grads)

    exact = [leaf(positions)[..., None], leaf(inv_freq)]
    leaves = [leaf(positions), leaf(inv_freq)]
    theta = angles(leaves[0].unsqueeze(-1), leaves[1])
    references = check_tables(made, torch.cat((theta, theta), -1), scaling, dtype)
    wanted = torch.autograd.grad(references, leaves, [g.double() for g in grads])
    of_angle = scaling * (grads[0].double().abs() + grads[1].double().abs())
    of_theta = of_angle[..., : D // 2] + of_angle[..., D // 2 :]
    frequencies, places = exact[1].detach(), exact[0].detach()
    assert_contract("grad_position_ids", got[0], wanted[0], (of_theta * frequencies).sum(-1), 2 * D)
    if learned:
        assert_contract("grad_inv_freq", got[1], wanted[1], (of_theta * places).sum((0, 1)), 4 * B * S)


def test_integer_positions_and_frequencies_of_each_batch(device: str) -> None:
    position_ids = torch.randint(0, 9999, (B, S), device=device)
    inv_freq = torch.rand(B, D // 2, device=device)
    theta = (position_ids.float().unsqueeze(-1) * inv_freq.unsqueeze(1)).double()
    check_tables(rope.rotary_embedding(position_ids, inv_freq), torch.cat((theta, theta), -1), 1.0, torch.float32)


def test_learned_attention_scaling(device: str) -> None:
    positions, inv_freq = torch.arange(S, device=device), rope.inverse_frequencies(D).to(device)
    scaling = torch.tensor(1.25, device=device, requires_grad=True)
    made = rope.rotary_embedding(positions, inv_freq, scaling)
    grads = [torch.randn(S, D, device=device) for _ in range(2)]
    (got,) = torch.autograd.grad(made, [scaling], grads)
    theta = (positions.float().unsqueeze(-1) * inv_freq).double()
    theta = torch.cat((theta, theta), -1)
    check_tables(made, theta, 1.25, torch.float32)
    wanted = (grads[0].double() * theta.cos() + grads[1].double() * theta.sin()).sum()
    magnitude = (grads[0].double().abs() + grads[1].double().abs()).sum()
    assert_contract("grad_attention_scaling", got, wanted, magnitude, 2 * S * D)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rope_2d(device: str, dtype: torch.dtype) -> None:
    idx_theta = (torch.randn(B, S, D, device=device) * 1000).requires_grad_()
    made = rope.rope_2d(idx_theta, dtype)
    grads = [torch.randn(B, S, D, device=device).to(dtype) for _ in range(2)]
    (got,) = torch.autograd.grad(made, [idx_theta], grads)
    exact = leaf(idx_theta)
    references = check_tables(made, exact, 1.0, dtype)
    (wanted,) = torch.autograd.grad(references, [exact], [g.double() for g in grads])
    assert_contract("grad_idx_theta", got, wanted, grads[0].double().abs() + grads[1].double().abs(), 2)


@pytest.mark.parametrize("dtype", DTYPES)
def test_vision_rotary(device: str, dtype: torch.dtype) -> None:
    pos_ids = torch.randint(0, 60, (S, 2), device=device)
    inv_freq = rope.inverse_frequencies(36).to(device).requires_grad_()
    made = rope.vision_rotary(pos_ids, inv_freq, dtype)
    grads = [torch.randn(S, 72, device=device).to(dtype) for _ in range(2)]
    (got,) = torch.autograd.grad(made, [inv_freq], grads)
    exact = leaf(inv_freq)
    theta = angles(pos_ids.double().unsqueeze(-1), exact).flatten(1)
    references = check_tables(made, torch.cat((theta, theta), -1), 1.0, dtype)
    (wanted,) = torch.autograd.grad(references, [exact], [g.double() for g in grads])
    of_angle = (grads[0].double().abs() + grads[1].double().abs()).view(S, 2, 2, 18)
    magnitude = (of_angle * pos_ids.double().view(S, 1, 2, 1)).sum((0, 1, 2))
    assert_contract("grad_inv_freq", got, wanted, magnitude, 8 * S)


@pytest.mark.parametrize("sizes", [(0, 3), (2, 0)])
def test_empty_tables(device: str, sizes: tuple[int, int]) -> None:
    positions = torch.zeros(sizes, device=device, requires_grad=True)
    inv_freq = torch.ones(4, device=device, requires_grad=True)
    cos, sin = rope.rotary_embedding(positions, inv_freq)
    got = torch.autograd.grad((cos, sin), (positions, inv_freq), (cos, sin))
    assert cos.shape == (*sizes, 8) and got[0].shape == sizes and torch.equal(got[1], torch.zeros_like(inv_freq))
    cos, sin = rope.vision_rotary(torch.zeros(0, 2, dtype=torch.int64, device=device), inv_freq)
    (got_vision,) = torch.autograd.grad((cos, sin), (inv_freq,), (cos, sin))
    assert cos.shape == (0, 16) and torch.equal(got_vision, torch.zeros_like(inv_freq))


@pytest.mark.parametrize("mistake", ["angle", "scaling", "transposed"])
def test_planted_mistakes_are_found(device: str, mistake: str) -> None:
    """The comparison is able to fail."""
    positions = torch.rand(B, S, device=device) * 1000
    theta = (positions.unsqueeze(-1) * rope.inverse_frequencies(D).to(device)).double()
    theta = torch.cat((theta, theta), -1)
    cos, sin = rope.rotary_embedding(positions, rope.inverse_frequencies(D).to(device), 1.5)
    if mistake == "angle":  # of double the product, not rounded to float32 as the contract has it
        theta = positions.double().unsqueeze(-1) * rope.inverse_frequencies(D).double().to(device)
        theta = torch.cat((theta, theta), -1)
    elif mistake == "scaling":
        cos = cos * (1 + 2.0**-19)
    else:
        cos, sin = sin, cos
    with pytest.raises(AssertionError):
        check_tables((cos, sin), theta, 1.5, torch.float32)
