"""How the functions behave among the rest of PyTorch: memory, autocast, inference mode, errors, modules."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch import Tensor
from torch_contract import DEVICES

import ropegrad.torch as rope
from ropegrad.torch import _kv_cache, _rope_apply

pytestmark = pytest.mark.parametrize("device", DEVICES)
B, H, S, D = 2, 3, 5, 8


@pytest.fixture(autouse=True)
def seed() -> None:
    torch.manual_seed(1)


def inputs(device: str, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    shapes = ((B, H, S, D), (B, 1, S, D), (B, S, D), (B, S, D))
    return [torch.randn(shape, device=device).to(dtype) for shape in shapes]


# ---- only what is needed ----


@pytest.mark.parametrize("needed", range(1, 16))
def test_only_needed_gradients_are_asked_of_the_kernel(
    device: str, needed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[list[bool], list[bool]]] = []
    operator, kernel = _rope_apply.rope_apply_backward, _rope_apply._backward

    def listen(*arguments: Any) -> Any:
        asked.append((arguments[-1], [t is not None for t in arguments[:6]]))
        return kernel(*arguments)

    monkeypatch.setattr(operator, "eager", operator.eager_by(listen))
    tensors = inputs(device)
    wanted = [bool(needed >> i & 1) for i in range(4)]
    for tensor, want in zip(tensors, wanted):
        tensor.requires_grad_(want)
    q_embed, k_embed = rope.apply_rotary_pos_emb(*tensors)
    (q_embed.sum() + k_embed.sum()).backward()
    assert [t.grad is not None for t in tensors] == wanted
    (call,) = asked
    assert call[0] == wanted
    assert call[1][2:4] == [wanted[2] or wanted[3]] * 2, "q and k are read for the gradients of the tables alone"


def test_q_and_k_are_kept_for_the_tables_alone(device: str) -> None:
    q, k, cos, sin = inputs(device)
    kept: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.data_ptr()) or t, lambda t: t):
        rope.apply_rotary_pos_emb(q.requires_grad_(), k, cos, sin)
    assert kept == [cos.data_ptr(), sin.data_ptr()]


def test_no_graph_without_need(device: str) -> None:
    q, k, cos, sin = inputs(device)
    made = rope.apply_rotary_pos_emb(q.requires_grad_(), k, cos, sin)
    assert [t.requires_grad for t in made] == [True, False]
    made = rope.update_kv_cache(k, k, k, k * q[:, :1], cos, sin, torch.arange(S, device=device))
    assert [t.requires_grad for t in made] == [False, True]
    made = rope.apply_rotary_pos_emb(*inputs(device))
    assert not any(t.requires_grad for t in made)
    q, *rest = inputs(device)
    with torch.no_grad():
        assert not rope.apply_rotary_pos_emb(q.requires_grad_(), *rest)[0].requires_grad


def test_tables_of_integers_are_refused(device: str) -> None:
    q, k, cos, sin = inputs(device)
    for dtype in (torch.int64, torch.complex64, torch.bool):
        with pytest.raises(TypeError, match=f"expected tables of floating-point numbers, got {dtype}"):
            rope.apply_rotary_pos_emb(q, k, cos.to(dtype), sin)


# ---- in place ----


def test_in_place_is_declared(device: str) -> None:
    for tensors in (inputs(device), [t.requires_grad_(i < 2) for i, t in enumerate(inputs(device))]):
        q, k = tensors[0] * 1, tensors[1] * 1
        versions = q._version, k._version
        rope.apply_rotary_pos_emb(q, k, *tensors[2:], in_place=True)
        assert q._version > versions[0] and k._version > versions[1]
    assert "(a!)" in str(torch.ops.ropegrad.rope_apply_.default._schema)
    assert "(b!)" in str(torch.ops.ropegrad.kv_cache_update_.default._schema)


def test_a_value_that_autograd_kept_is_not_overwritten_unnoticed(device: str) -> None:
    q, _k, cos, sin = inputs(device)
    x = q.requires_grad_() * 1
    square = x * x
    rope.apply_rotary(x, cos, sin, in_place=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        square.sum().backward()


def test_in_place_refuses_what_it_cannot_do(device: str) -> None:
    q, k, cos, sin = inputs(device)
    with pytest.raises(ValueError, match=r"in_place: cos and sin must not require gradients"):
        rope.apply_rotary_pos_emb(q, k, cos.requires_grad_(), sin, in_place=True)
    with pytest.raises(RuntimeError, match="leaf"):
        rope.apply_rotary(q.requires_grad_(), cos.detach(), sin, in_place=True)
    with pytest.raises(RuntimeError, match="has no gradient"):
        torch.ops.ropegrad.rope_apply_(q, None, cos.detach(), sin, False, 1)


def refused(error: type[Exception], match: str, call: Any, *tensors: Tensor) -> None:
    """And nothing was written."""
    before = [t.detach().clone() for t in tensors]
    with pytest.raises(error, match=match):
        call()
    assert all(torch.equal(t.detach(), b) for t, b in zip(tensors, before))


def test_in_place_writes_nothing_when_it_refuses(device: str) -> None:
    q, k, cos, sin = inputs(device)
    leaf, inner = q.clone().requires_grad_(), q.clone().requires_grad_() * 1

    def rotate(*tensors: Tensor) -> Any:
        return lambda: rope.apply_rotary_pos_emb(*tensors, cos, sin, in_place=True)

    refused(RuntimeError, "a leaf", rotate(leaf, k), leaf, k)
    refused(RuntimeError, "a leaf", rotate(inner, leaf), inner, leaf)
    refused(RuntimeError, "a leaf", rotate(leaf[:, :2], k), leaf)
    refused(RuntimeError, "as by split", rotate(*inner.split([2, 1], 1)), inner)
    refused(ValueError, "shares memory", rotate(inner[:, :2], inner[:, 1:]), inner)
    refused(ValueError, r"k: dimension 2 \(seq_len\): expected 5 as in q, got 4", rotate(inner, k[:, :, :4]), inner)


def test_cache_in_place_writes_nothing_when_it_refuses(device: str) -> None:
    _q, k, cos, sin = inputs(device)
    k.requires_grad_()
    position = torch.arange(S, device=device)
    keys, values = (torch.zeros(B, 1, 6, D, device=device) for _ in range(2))

    def update(values: Tensor, value_states: Tensor) -> Any:
        return lambda: rope.update_kv_cache(keys, values, k, value_states, cos, sin, position, in_place=True)

    refused(ValueError, r"value_states: dimension 2 .*expected 5", update(values, k[:, :, :4]), keys, values)
    refused(ValueError, "shares memory", update(keys, k), keys)
    refused(RuntimeError, "a leaf", update(values.requires_grad_(), k), keys, values)


def test_cache_in_place_under_gradients(device: str) -> None:
    cache = torch.zeros(B, H, 6, D, device=device)
    states = torch.randn(B, H, S, D, device=device, requires_grad=True)
    cos, sin = inputs(device)[2:]
    position = torch.arange(S, device=device)
    keys, values = cache.clone(), cache.clone()
    rope.update_kv_cache(keys, values, states, states, cos, sin, position, True)
    (keys.sum() + values.sum()).backward()
    again = states.detach().requires_grad_()
    made = rope.update_kv_cache(cache, cache, again, again, cos, sin, position)
    (made[0].sum() + made[1].sum()).backward()
    assert torch.equal(states.grad, again.grad) and torch.equal(keys, made[0]) and torch.equal(values, made[1])


# ---- autocast, inference mode ----


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_keeps_dtypes(device: str, dtype: torch.dtype) -> None:
    """q and k come from matrix products in the short dtype, the tables stay in float32: no cast of either."""
    q, k, cos, sin = inputs(device)
    cache = torch.zeros(B, 1, S, D, device=device, dtype=dtype)
    rotary = rope.RotaryEmbedding(D).to(device)
    with torch.autocast(device, dtype):
        weight = torch.eye(D, device=device)
        turned = rope.apply_rotary_pos_emb(q @ weight, k @ weight, cos, sin)
        unchanged = rope.apply_rotary_pos_emb(q, k, cos, sin)
        keys, _ = rope.update_kv_cache(cache, cache, k, k @ weight, cos, sin, torch.arange(S, device=device))
        table, _ = rotary(q, torch.arange(70000, 70000 + S, device=device)[None])
    assert [t.dtype for t in turned] == [dtype] * 2 and [t.dtype for t in unchanged] == [torch.float32] * 2
    assert torch.equal(turned[0], rope.apply_rotary(q.to(dtype), cos, sin))
    assert torch.equal(keys, rope.apply_rotary(k.to(dtype), cos, sin))
    assert table.dtype == torch.float32 and torch.equal(
        table, rotary(q, torch.arange(70000, 70000 + S, device=device)[None])[0]
    )


def test_tables_of_inference_mode(device: str) -> None:
    rotary = rope.RotaryEmbedding(D).to(device)
    positions = torch.arange(S, device=device).expand(B, S)
    with torch.inference_mode():
        cos, sin = rotary(torch.empty(0), positions)
        k = inputs(device)[1]
    assert cos.is_inference()
    q = inputs(device)[0].requires_grad_()
    q_embed, k_embed = rope.apply_rotary_pos_emb(q, k, cos, sin)
    (grad,) = torch.autograd.grad(q_embed.sum(), q)
    plain = q.detach().requires_grad_()
    (expected,) = torch.autograd.grad(rope.apply_rotary(plain, *rotary(q, positions)).sum(), plain)
    assert torch.equal(grad, expected) and not k_embed.requires_grad
    with torch.inference_mode():
        assert rope.apply_rotary(q, cos, sin).is_inference()


# ---- what is refused, and what it says ----


def test_errors_name_what_is_wrong(device: str) -> None:
    q, k, cos, sin = inputs(device)
    with pytest.raises(ValueError, match="cos: dimension 1"):
        rope.apply_rotary_pos_emb(q, k, cos[:, 1:], sin)
    with pytest.raises(ValueError, match="unsqueeze_dim: expected 1"):
        rope.apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=3)
    with pytest.raises(ValueError, match="rotary_dim"):
        rope.apply_rotary_pos_emb(q, k, cos, sin, rotary_dim=D + 2)
    with pytest.raises(ValueError, match="rotary_dim"):
        rope.apply_rotary_pos_emb(q, k, cos, sin, rotary_dim=3)
    with pytest.raises((TypeError, ValueError), match=r"q: expected float32, .* \{code 5 \(complex\)|torch.complex64"):
        rope.apply_rotary(q.to(torch.complex64), cos, sin)
    with pytest.raises(ValueError):
        rope.apply_rotary(q[0], cos, sin)
    with pytest.raises(ValueError, match="RotaryEmbedding takes either"):
        rope.RotaryEmbedding()


def test_position_past_the_end(device: str) -> None:
    cache, states = torch.zeros(1, 1, 4, D, device=device), torch.ones(1, 1, 1, D, device=device)
    cos = torch.ones(1, D, device=device)
    position = torch.tensor([4], device=device)
    with pytest.raises(ValueError, match=r"past the end|cache_position"):
        rope.update_kv_cache(cache, cache.clone(), states, states, cos, cos, position)
        rope.check_device(device)
    rope.check_device(device)


# ---- dtypes of tables ----


def test_tables_of_another_dtype_are_widened(device: str) -> None:
    q, k, cos, sin = inputs(device)
    turned = rope.apply_rotary(q.bfloat16(), cos.half(), sin.half())
    assert torch.equal(turned, rope.apply_rotary(q.bfloat16(), cos.half().float(), sin.half().float()))
    exact = rope.apply_rotary(q.double(), cos, sin)
    assert exact.dtype == torch.float64
    mixed = rope.apply_rotary_pos_emb(q, k, cos.double(), sin.double())
    assert torch.equal(mixed[0], rope.apply_rotary(q, cos, sin))


# ---- modules ----


def test_frequencies_stay_wide(device: str) -> None:
    for learned in (False, True):
        for module in (rope.RotaryEmbedding(D, learned=learned), rope.VisionRotaryEmbedding(D, learned=learned)):
            exact = module.inv_freq.detach().clone()
            model = torch.nn.Sequential(module, torch.nn.Linear(2, 2)).to(device).bfloat16().half()
            assert model[1].weight.dtype == torch.float16
            assert module.inv_freq.dtype == torch.float32 and torch.equal(module.inv_freq.cpu(), exact)
            assert len(list(module.parameters())) == learned and module.inv_freq.device.type == device


def test_frequencies_of_transformers(device: str) -> None:
    inv_freq = 1.0 / (10000.0 ** (torch.arange(0, 64, 2).float() / 64))
    torch.testing.assert_close(rope.RotaryEmbedding(64).inv_freq, inv_freq, rtol=3e-7, atol=0)
    torch.testing.assert_close(rope.RotaryEmbedding(inv_freq=inv_freq).inv_freq, inv_freq, rtol=0, atol=0)


def test_rotary_module_in_the_dtype_of_x(device: str) -> None:
    rotary = rope.RotaryEmbedding(D, attention_scaling=1.5).to(device)
    x = torch.empty(B, S, 4, device=device, dtype=torch.bfloat16)
    positions = torch.arange(S, device=device)[None]
    cos, sin = rotary(x, positions)
    wide, _ = rotary(x, positions, torch.float32)
    assert cos.dtype == sin.dtype == torch.bfloat16 and cos.shape == (1, S, D) and wide.dtype == torch.float32
    assert float(wide[0, 0, 0]) == 1.5 and torch.equal(cos, wide.bfloat16())
    q = torch.randn(B, H, S, D, device=device, dtype=torch.bfloat16)
    assert rope.apply_rotary(q, cos, sin).shape == q.shape


def test_optimizers_keep_the_parameter(device: str) -> None:
    module = rope.RotaryEmbedding(D, learned=True).to(device)
    parameter = module.inv_freq
    module.bfloat16()
    assert module.inv_freq is parameter


def test_dim_is_one_that_can_be_turned(device: str) -> None:
    for dim in (7, 0, -2):
        with pytest.raises(ValueError, match=rf"dim: expected a positive even number, got {dim}"):
            rope.RotaryEmbedding(dim)
    for dim in (6, 0):
        with pytest.raises(ValueError, match=rf"dim: expected a positive multiple of 4, got {dim}"):
            rope.VisionRotaryEmbedding(dim)


def test_state_dict_holds_learned_frequencies(device: str) -> None:
    assert list(rope.RotaryEmbedding(D).state_dict()) == []
    assert list(rope.RotaryEmbedding(D, learned=True).state_dict()) == ["inv_freq"]


# ---- threads ----


def test_threads(device: str) -> None:
    """Each with a context of its own; PyTorch lets a backward pass run on another thread than the forward pass."""
    q, _k, cos, sin = inputs(device)
    expected = rope.apply_rotary(q, cos, sin)
    wrong: list[int] = []

    def work(number: int) -> None:
        x = q.detach().requires_grad_()
        for _ in range(50):
            made = rope.apply_rotary(x, cos, sin)
            made.sum().backward()
            if not torch.equal(made, expected):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_contracts_have_the_order_that_is_passed(device: str) -> None:
    from ropegrad import _core

    contracts = {
        op["name"]: ([t["name"] for t in op["tensors"]], [p["name"] for p in op["params"]]) for op in _core.operators()
    }
    assert contracts["rope_apply_forward"] == (
        ["q", "k", "cos", "sin", "q_embed", "k_embed"],
        ["rotary_dim", "style", "in_place"],
    )
    assert contracts["rope_apply"][1] == ["rotary_dim", "style", "sin_pairing"]
    assert contracts["kv_cache_update_forward"][1] == ["in_place", "style", "rotary_dim"]
    assert contracts["kv_cache_update"][1] == ["in_place", "rounding", "style", "rotary_dim"]
    assert contracts["kv_cache_update"][0][6:] == [
        "grad_key_states", "grad_value_states", "grad_cos", "grad_sin", "grad_key_cache_input", "grad_value_cache_input"
    ]  # fmt: skip
    assert _kv_cache.ONCE == 0
