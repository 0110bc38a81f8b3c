"""First and second derivatives of every function and option, against finite differences in float64, on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch_contract import DEVICES

import ropegrad.torch as rope

BATCHES, HEADS, KV_HEADS, POSITIONS, WIDTH = 2, 3, 1, 2, 6
OPTIONS = [(i, r, u) for i in (False, True) for r in (4, WIDTH) for u in (1, 2)]


def random(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


TOLERANCE = {"atol": 1e-6, "rtol": 1e-5}


def check(function: Callable[..., Any], *inputs: Tensor) -> None:
    assert gradcheck(function, inputs, **TOLERANCE)
    assert gradgradcheck(function, inputs, **TOLERANCE)


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(7)


def rope_inputs(rotary_dim: int, unsqueeze_dim: int, tables: str) -> list[Tensor]:
    def heads(count: int) -> Tensor:
        outer = (count, POSITIONS) if unsqueeze_dim == 1 else (POSITIONS, count)
        return random(BATCHES, *outer, WIDTH)

    table = {"each": (BATCHES, POSITIONS), "one": (1, POSITIONS), "flat": (POSITIONS,)}[tables]
    return [heads(HEADS), heads(KV_HEADS), random(*table, rotary_dim), random(*table, rotary_dim)]


@pytest.mark.parametrize("tables", ["each", "one", "flat"])
@pytest.mark.parametrize(("interleaved", "rotary_dim", "unsqueeze_dim"), OPTIONS)
def test_apply_rotary_pos_emb(interleaved: bool, rotary_dim: int, unsqueeze_dim: int, tables: str) -> None:
    options: dict[str, Any] = {"unsqueeze_dim": unsqueeze_dim, "interleaved": interleaved}
    q, k, cos, sin = rope_inputs(rotary_dim, unsqueeze_dim, tables)
    check(lambda *t: rope.apply_rotary_pos_emb(*t, **options), q, k, cos, sin)
    check(lambda *t: rope.apply_rotary(*t, **options), q, cos, sin)


@pytest.mark.parametrize("needed", range(1, 15))
def test_any_subset_of_the_gradients(needed: int) -> None:
    inputs = rope_inputs(4, 1, "each")
    for i, tensor in enumerate(inputs):
        tensor.requires_grad_(bool(needed >> i & 1))
    check(rope.apply_rotary_pos_emb, *inputs)


@pytest.mark.parametrize("one_output", [0, 1])
def test_one_of_the_two_outputs(one_output: int) -> None:
    check(lambda *t: rope.apply_rotary_pos_emb(*t)[one_output], *rope_inputs(4, 1, "each"))


def test_position_ids_and_rotary_dim() -> None:
    q, k, _, _ = rope_inputs(WIDTH, 1, "each")
    cos, sin, position_ids = random(5, WIDTH), random(5, WIDTH), torch.tensor([[4, 1], [1, 1]])
    check(lambda *t: rope.apply_rotary_pos_emb(*t, position_ids, rotary_dim=4), q, k, cos, sin)


@pytest.mark.parametrize(("interleaved", "rotary_dim", "unsqueeze_dim"), OPTIONS)
def test_in_place(interleaved: bool, rotary_dim: int, unsqueeze_dim: int) -> None:
    q, k, cos, sin = rope_inputs(rotary_dim, unsqueeze_dim, "each")

    def function(q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        first, second = q * 2, k * 2
        return rope.apply_rotary_pos_emb(
            first, second, cos.detach(), sin.detach(), unsqueeze_dim=unsqueeze_dim, interleaved=interleaved,
            in_place=True,
        )  # fmt: skip

    check(function, q, k)


def test_in_place_on_a_view() -> None:
    q, k, cos, sin = rope_inputs(4, 1, "each")

    def function(q: Tensor, k: Tensor) -> Tensor:
        room = torch.cat((q, k), 1) * 2
        rope.apply_rotary_pos_emb(room[:, :HEADS], room[:, HEADS:], cos.detach(), sin.detach(), in_place=True)
        return room

    check(function, q, k)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("tables", ["each", "one", "flat"])
@pytest.mark.parametrize(("interleaved", "rotary_dim"), [(False, 2), (False, 4), (True, 2), (True, 4)])
def test_update_kv_cache(interleaved: bool, rotary_dim: int, tables: str, in_place: bool) -> None:
    rows, new, width = 4, 3, 4
    caches = [random(BATCHES, 2, rows, width) for _ in range(2)]
    states = [random(BATCHES, 2, new, width) for _ in range(2)]
    table = {"each": (BATCHES, new), "one": (1, new), "flat": (new,)}[tables]
    cos, sin = random(*table, rotary_dim), random(*table, rotary_dim)
    cache_position = torch.tensor([2, -1, 0])

    def function(key_cache: Tensor, value_cache: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
        return rope.update_kv_cache(
            key_cache * 1, value_cache * 1, *rest, cache_position, in_place, interleaved=interleaved
        )  # fmt: skip

    check(function, *caches, *states, cos, sin)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rotary_dim", [2, 4])
@pytest.mark.parametrize("entries", [[1, 1, 0, 1], [2, -1, 2, -1], [0, 0, 0, 0]])
def test_gradients_of_gradients_of_repeated_rows(entries: list[int], rotary_dim: int, device: str) -> None:
    """The first gradient of each entry is that of its row, and this is what is differentiated again."""
    shapes = [(BATCHES, 2, 3, 4)] * 2 + [(BATCHES, 2, 4, 4)] * 2 + [(BATCHES, 4, rotary_dim)] * 2
    inputs = [random(*shape).detach().to(device).requires_grad_() for shape in shapes]
    position = torch.tensor(entries, device=device, dtype=torch.int32)
    assert gradgradcheck(lambda *t: rope.update_kv_cache(*t, position), inputs, **TOLERANCE)


def test_update_kv_cache_without_tables() -> None:
    caches = [random(1, 1, 3, 4) for _ in range(2)]
    states = [random(1, 1, 2, 4) for _ in range(2)]
    cos, sin = random(2, 4).detach(), random(2, 4).detach()
    check(lambda *t: rope.update_kv_cache(*t, cos, sin, torch.tensor([1, 0])), *caches, *states)


def test_rope_2d() -> None:
    check(rope.rope_2d, random(2, 3, 4))
    check(rope.rope_2d, random(3, 4))


@pytest.mark.parametrize("batches", [0, BATCHES])
@pytest.mark.parametrize(
    "needed", [(True, True, True), (True, False, False), (False, True, False), (False, False, True)]
)
def test_rotary_embedding(needed: tuple[bool, ...], batches: int) -> None:
    frequencies = random(batches, 2) if batches else random(2)
    inputs = [random(BATCHES, 3), frequencies, random(1)]
    for tensor, needs in zip(inputs, needed):
        tensor.requires_grad_(needs)
    check(rope.rotary_embedding, *inputs)
    if needed != (False, False, True):
        check(lambda *t: rope.rotary_embedding(*t, 1.3), *inputs[:2])


def test_rotary_embedding_of_one_row() -> None:
    check(lambda *t: rope.rotary_embedding(*t, 0.7), random(3), random(2))


def test_vision_rotary() -> None:
    pos_ids = torch.randint(0, 5, (6, 2))
    check(lambda f: rope.vision_rotary(pos_ids, f), random(3))


def test_from_positions_to_attention() -> None:
    """Learned frequencies: the gradient passes through the tables and their use, and is the sum of both uses."""
    q, k, _, _ = rope_inputs(4, 1, "each")

    def function(position_ids: Tensor, inv_freq: Tensor, q: Tensor, k: Tensor) -> Tensor:
        cos, sin = rope.rotary_embedding(position_ids, inv_freq, 1.1)
        q_embed, k_embed = rope.apply_rotary_pos_emb(q, k, cos, sin)
        return q_embed @ k_embed.transpose(-1, -2)

    check(function, random(BATCHES, POSITIONS), random(2), q, k)


def test_a_wrong_gradient_is_found() -> None:
    """gradcheck here is able to fail: a forward pass whose gradient is that of another one."""
    q, k, cos, sin = rope_inputs(4, 1, "each")

    def function(*t: Tensor) -> Tensor:
        right = rope.apply_rotary_pos_emb(*t)[0]
        return right.detach() + 1.001 * (right - right.detach())

    with pytest.raises(RuntimeError, match="Jacobian mismatch"):
        gradcheck(function, (q, k, cos, sin), **TOLERANCE)
