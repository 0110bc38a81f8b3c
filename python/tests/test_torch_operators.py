"""The operators under torch.ops.ropegrad: PyTorch's own checks of custom operators, and compiling."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch._dynamo
from torch import Tensor
from torch._dynamo.utils import counters
from torch_contract import DEVICES

import ropegrad.torch as rope

pytestmark = pytest.mark.parametrize("device", DEVICES)
OPS = torch.ops.ropegrad


@pytest.fixture(autouse=True)
def fresh() -> None:
    torch.manual_seed(5)
    torch._dynamo.reset()
    counters.clear()


# ---- torch.library.opcheck ----


def operator_calls(device: str, requires_grad: bool) -> list[tuple[str, tuple[Any, ...]]]:
    """Every operator, with arguments for each of its forms."""

    def t(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, device=device, requires_grad=requires_grad)

    def plain(*shape: int) -> Tensor:
        return t(*shape).detach()

    q, k, table, cache, states = (2, 3, 2, 6), (2, 1, 2, 6), (2, 2, 4), (2, 2, 4, 6), (2, 2, 2, 6)
    tables, position = (t(*table), t(*table)), torch.tensor([2, 0], device=device)
    plain_tables = (plain(*table), plain(*table))
    pos_ids = torch.randint(0, 4, (6, 2), device=device)
    return [
        ("rope_apply", (t(*q), t(*k), *tables, False, 1)),
        ("rope_apply", (t(2, 2, 3, 6), None, *tables, True, 2)),
        ("rope_apply", (t(2, 2, 3, 6).transpose(1, 2), None, t(2, 4), t(2, 4), False, 1)),
        ("rope_apply_", (plain(*q), plain(*k), *plain_tables, False, 1)),
        ("rope_apply_", (plain(*q), None, *plain_tables, True, 1)),
        ("rope_apply_backward", (t(*q), t(*k), t(*q), t(*k), *tables, False, 1, [True] * 4)),
        ("rope_apply_backward", (t(*q), t(*k), None, None, *tables, False, 1, [True, True, False, False])),
        ("rope_apply_backward", (None, t(*k), None, t(*k), *tables, True, 1, [False, False, True, False])),
        ("kv_cache_update", (t(*cache), t(*cache), t(*states), t(*states), *tables, position, False)),
        ("kv_cache_update", (None, t(*cache), None, t(*states), None, None, position, False)),
        ("kv_cache_update_", (*(plain(*s) for s in (cache, cache, states, states)), *plain_tables, position, True)),
        ("kv_cache_update_backward", (t(*cache), t(*cache), t(*states), *tables, position, False, [True] * 6)),
        ("kv_cache_update_backward",
         (t(*cache), None, None, *tables, position, True, [True, False, True, False, False, False])),
        ("rope_2d", (t(2, 3, 4), torch.float64)),
        ("rope_2d", (t(2, 4, 3).transpose(1, 2), torch.float64)),
        ("rope_2d_backward", (t(2, 3, 4), t(2, 3, 4), t(2, 3, 4))),
        ("rotary_embedding", (t(2, 3), t(2), 1.5, torch.float64)),
        ("rotary_embedding", (torch.arange(3, device=device).expand(2, 3), t(2, 2), 1.5, torch.float64)),
        ("rotary_embedding_backward", (t(2, 3, 4), t(2, 3, 4), t(2, 3), t(2), 1.5)),
        ("vision_rotary", (t(3), pos_ids, torch.float64)),
        ("vision_rotary_backward", (t(6, 12), t(6, 12), t(3), pos_ids)),
    ]  # fmt: skip


@pytest.mark.parametrize("number", range(21))
@pytest.mark.parametrize("requires_grad", [False, True])
def test_opcheck(device: str, number: int, requires_grad: bool) -> None:
    name, arguments = operator_calls(device, requires_grad)[number]
    results = torch.library.opcheck(getattr(OPS, name).default, arguments)
    assert set(results.values()) == {"SUCCESS"}


def test_every_operator_is_checked(device: str) -> None:
    names = {name for name, _ in operator_calls(device, False)}
    registered = {
        str(schema.name) for schema in torch._C._jit_get_all_schemas() if schema.name.startswith("ropegrad::")
    }
    assert {f"ropegrad::{name}" for name in names} == registered


# ---- torch.compile ----


def train(function: Callable[..., Any], inputs: list[Tensor]) -> list[Tensor]:
    """Results, then gradients."""
    torch.manual_seed(11)
    made = function(*inputs)
    needed = [t for t in inputs if t.requires_grad]
    grads = torch.autograd.grad(made, needed, [torch.randn_like(y) for y in made]) if needed else ()
    return [y.detach() for y in made] + list(grads)


def rope_inputs(device: str, size: int, dtype: torch.dtype = torch.float32) -> list[Tensor]:
    q, k = (torch.randn(2, size, h, 16, device=device).to(dtype).transpose(1, 2) for h in (4, 2))
    cos, sin = (torch.randn(2, size, 16, device=device).to(dtype) for _ in range(2))
    return [t.detach().requires_grad_() for t in (q, k, cos, sin)]


def cache_inputs(device: str, size: int) -> list[Tensor]:
    caches = [torch.randn(2, 2, 40, 16, device=device) for _ in range(2)]
    states = [torch.randn(2, 2, size, 16, device=device) for _ in range(2)]
    tables = [torch.randn(2, size, 16, device=device) for _ in range(2)]
    return [t.requires_grad_() for t in (*caches, *states, *tables)]


def apply_in_place(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
    return rope.apply_rotary_pos_emb(q * 2, k * 2, cos.detach(), sin.detach(), in_place=True)


def update(*tensors: Tensor) -> tuple[Tensor, Tensor]:
    return rope.update_kv_cache(*tensors, torch.arange(tensors[2].shape[2], device=tensors[0].device))


def update_in_place(key_cache: Tensor, value_cache: Tensor, *rest: Tensor) -> tuple[Tensor, Tensor]:
    position = torch.arange(rest[0].shape[2], device=key_cache.device)
    return rope.update_kv_cache(key_cache * 1, value_cache * 1, *rest, position, True)


def embed(positions: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    return rope.rotary_embedding(positions, inv_freq, 1.25)


def embed_grid(positions: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    return rope.vision_rotary(positions.detach().long().view(-1, 2), inv_freq)


def turn(positions: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    return rope.rope_2d(positions.unsqueeze(-1) * inv_freq)


def embedding_inputs(device: str, size: int) -> list[Tensor]:
    return [
        torch.rand(2, 2 * size, device=device, requires_grad=True),
        torch.rand(4, device=device, requires_grad=True),
    ]


FUNCTIONS: list[tuple[Callable[..., Any], Callable[..., list[Tensor]]]] = [
    (rope.apply_rotary_pos_emb, rope_inputs),
    (apply_in_place, rope_inputs),
    (update, cache_inputs),
    (update_in_place, cache_inputs),
    (embed, embedding_inputs),
    (turn, embedding_inputs),
]


@pytest.mark.parametrize("with_gradients", [True, False])
@pytest.mark.parametrize(("function", "make"), FUNCTIONS, ids=[f.__name__ for f, _ in FUNCTIONS])
def test_compiled_once_for_every_size(
    device: str, function: Callable[..., Any], make: Callable[..., list[Tensor]], with_gradients: bool
) -> None:
    compiled = torch.compile(function, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (3, 5, 8, 21):
        inputs = make(device, size)
        if function is apply_in_place or not with_gradients:
            for t in inputs[0 if not with_gradients else 2 :]:
                t.requires_grad_(False)
        got, expected = train(compiled, inputs), train(function, inputs)
        assert len(got) == len(expected) and all(map(torch.equal, got, expected))
        # Of the gradients torch.compile chooses the strides itself.
        assert [t.stride() for t in got[:2]] == [t.stride() for t in expected[:2]]
    assert counters["stats"]["unique_graphs"] == 1, dict(counters["stats"])


def test_vision_compiled_once_for_every_size(device: str) -> None:
    compiled = torch.compile(embed_grid, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (3, 5, 8):
        positions, inv_freq = embedding_inputs(device, size)
        inputs = [(positions * 50).detach(), inv_freq]
        for got, expected in zip(train(compiled, inputs), train(embed_grid, inputs), strict=True):
            assert torch.equal(got, expected)
    assert counters["stats"]["unique_graphs"] == 1


def test_a_size_that_is_fixed_is_compiled_again(device: str) -> None:
    """The count above is able to fail."""
    compiled = torch.compile(rope.apply_rotary_pos_emb, fullgraph=True, dynamic=False, backend="aot_eager")
    for size in (3, 5):
        train(compiled, rope_inputs(device, size))
    assert counters["stats"]["unique_graphs"] == 2


@pytest.mark.parametrize("function", [rope.apply_rotary_pos_emb, apply_in_place])
def test_inductor(device: str, function: Callable[..., Any]) -> None:
    """With what is around it: views of a projection before, attention after."""

    def layer(x: Tensor, weight: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor]:
        heads = (x @ weight).view(*x.shape[:2], 6, 16)
        q, k = heads[:, :, :4].transpose(1, 2), heads[:, :, 4:].transpose(1, 2)
        q, k = function(q, k, cos, sin)
        return (q @ k.repeat_interleave(2, 1).transpose(-1, -2),)

    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    for size in (5, 9):
        inputs = [torch.randn(2, size, 8, device=device), torch.randn(8, 96, device=device)]
        inputs += [torch.randn(2, size, 16, device=device) for _ in range(2)]
        for t in inputs if function is not apply_in_place else inputs[:2]:
            t.requires_grad_()
        for got, expected in zip(train(compiled, inputs), train(layer, inputs), strict=True):
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
    assert counters["stats"]["unique_graphs"] == 1


def test_module_compiled(device: str) -> None:
    module = rope.RotaryEmbedding(8, learned=True, attention_scaling=torch.nn.Parameter(torch.tensor(1.5))).to(device)
    compiled = torch.compile(module, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (3, 7):
        positions = torch.arange(size, device=device).expand(2, size)
        results = []
        for call in (compiled, module):
            made = call(positions, positions, torch.float32)
            results.append(torch.autograd.grad(sum(t.sum() for t in made), list(module.parameters())))
        for got, expected in zip(*results, strict=True):
            torch.testing.assert_close(got, expected)
    assert counters["stats"]["unique_graphs"] == 1


def test_export(device: str) -> None:
    class Layer(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor]:
            return rope.apply_rotary_pos_emb(q, k, cos, sin)

    inputs = [t.detach() for t in rope_inputs(device, 5)]
    exported = torch.export.export(Layer(), tuple(inputs))
    for got, expected in zip(exported.module()(*inputs), Layer()(*inputs), strict=True):
        assert torch.equal(got, expected)


# ---- whoever watches ----


def test_modes_and_tracing_see_the_operator(device: str) -> None:
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils._python_dispatch import TorchDispatchMode

    seen: list[str] = []

    class Listen(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    inputs = rope_inputs(device, 4)
    with Listen():
        train(rope.apply_rotary_pos_emb, inputs)
    assert "ropegrad.rope_apply.default" in seen and "ropegrad.rope_apply_backward.default" in seen
    for before_dispatch in (False, True):
        tracer = make_fx(lambda *t: rope.apply_rotary_pos_emb(*t), pre_dispatch=before_dispatch)
        graph = tracer(*[t.detach() for t in inputs])
        assert any("rope_apply" in str(node.target) for node in graph.graph.nodes)


def test_function_modes_and_the_profiler_see_the_operator(device: str) -> None:
    from torch.overrides import TorchFunctionMode

    seen: list[str] = []

    class Listen(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    inputs = [t.detach() for t in rope_inputs(device, 4)]
    with Listen():
        rope.apply_rotary_pos_emb(*inputs)
    assert "ropegrad.rope_apply.default" in seen
    with torch.profiler.profile() as profile:
        rope.apply_rotary_pos_emb(*inputs)
    assert "ropegrad::rope_apply" in [event.key for event in profile.key_averages()]


def test_a_lazily_negated_tensor(device: str) -> None:
    """PyTorch's imaginary part of a conjugate is a view whose memory has the other sign."""
    q, _, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    lazy = torch.complex(q, q).conj().imag
    assert lazy.is_neg() and torch.equal(lazy, -q)
    expected = rope.apply_rotary(-q, cos, sin)
    assert torch.equal(rope.apply_rotary(lazy, cos, sin), expected)
    rope.apply_rotary(lazy, cos, sin, in_place=True)
    assert torch.equal(lazy, expected)
    # A table too, also where the call is recorded.
    lazy = torch.complex(cos, cos).conj().imag
    expected = rope.apply_rotary(q, -cos, sin)
    changed = q.clone().requires_grad_() * 1
    rope.apply_rotary(changed, lazy, sin, in_place=True)
    assert torch.equal(changed, expected)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("lazy", [(True, True), (True, False), (False, True)])
def test_lazily_negated_caches(device: str, lazy: tuple[bool, bool], recorded: bool) -> None:
    states, _, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    caches = [torch.randn(2, 4, 6, 16, device=device) for _ in range(2)]
    position = torch.tensor([5, 0, -1, 2], device=device)
    given = [torch.complex(c, c).conj().imag if negated else c.clone() for c, negated in zip(caches, lazy)]
    values = [-c if negated else c for c, negated in zip(caches, lazy)]
    assert [g.is_neg() for g in given] == [*lazy] and all(map(torch.equal, given, values))
    new = [states.clone().requires_grad_(recorded) for _ in range(2)]
    expected = rope.update_kv_cache(*values, *new, cos, sin, position)
    made = rope.update_kv_cache(*given, *new, cos, sin, position, in_place=True)
    assert all(map(torch.equal, given, expected)) and all(map(torch.equal, made, expected))
    if recorded:
        grads = [torch.randn_like(t) for t in expected]
        for got, wanted in zip(*(torch.autograd.grad(y, new, grads) for y in (made, expected)), strict=True):
            assert torch.equal(got, wanted)


def test_tensors_without_memory_are_the_dispatchers(device: str) -> None:
    """It says what they are, of a sparse tensor and of gradients in batches."""
    q, _, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    with pytest.raises(NotImplementedError, match=r"rope_apply.*Sparse"):
        rope.apply_rotary(q.to_sparse(), cos, sin)
    q.requires_grad_()
    turned = rope.apply_rotary(q, cos, sin)
    with pytest.raises(RuntimeError, match="Batching rule not implemented for ropegrad::rope_apply_backward"):
        torch.autograd.grad(turned, q, torch.ones(3, *turned.shape, device=device), is_grads_batched=True)


def test_shapes_are_checked_without_values(device: str) -> None:
    """With the words of the kernel."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    q, k, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    position, wide, angles = torch.arange(4, device=device), torch.rand(3, 8, device=device), torch.rand(2, 3, 5)
    calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
        (rope.apply_rotary_pos_emb, (q, k[:, :, :3].clone(), cos, sin)),
        (rope.apply_rotary_pos_emb, (q, k, cos[:, :3].clone(), sin)),
        (rope.apply_rotary_pos_emb, (q, k, cos[0, :3].clone(), sin[0].clone())),
        (lambda *t: rope.apply_rotary_pos_emb(*t, unsqueeze_dim=2), (q, k, cos, sin)),
        (lambda *t: rope.apply_rotary_pos_emb(*t, in_place=True), (q, k[:1].clone(), cos, sin)),
        (rope.apply_rotary, (q.long(), cos, sin)),
        (rope.update_kv_cache, (q, q, q, q[..., :8].clone(), cos, sin, position)),
        (rope.update_kv_cache, (q, q, q, q, cos, sin, position[:3].clone(), True)),
        (rope.rotary_embedding, (position.expand(2, 4).clone(), wide)),
        (rope.rope_2d, (angles.to(device),)),
        (rope.vision_rotary, (torch.ones(4, 3, dtype=torch.int64, device=device), wide[0].clone())),
    ]
    for function, arguments in calls:
        said = []
        for mode in (None, FakeTensorMode()):
            with pytest.raises(ValueError) as raised:
                if mode is None:
                    function(*arguments)
                else:
                    with mode:
                        function(*(mode.from_tensor(t) if isinstance(t, Tensor) else t for t in arguments))
            said.append(str(raised.value))
        assert said[0] == said[1] and said[0].startswith("rg_")


def test_meta_tensors(device: str) -> None:
    q = torch.empty(2, 4, 9, 8, device="meta")
    cos = torch.empty(2, 9, 8, device="meta")
    made = rope.apply_rotary(q, cos, cos)
    assert made.device.type == "meta" and made.shape == q.shape
    keys, _ = rope.update_kv_cache(q, q, q, q, cos, cos, torch.arange(9, device="meta"))
    assert keys.device.type == "meta" and keys.shape == q.shape
    with pytest.raises(ValueError, match="expected all tensors on .*, got .* on .*meta"):
        rope.apply_rotary(torch.ones(2, 4, 9, 8, device=device), cos, cos)


def test_transforms_say_that_they_are_not_supported(device: str) -> None:
    q, _, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    with pytest.raises(RuntimeError):
        torch.func.vmap(lambda x: rope.apply_rotary(x, cos, sin))(q[None])
    with pytest.raises(RuntimeError):
        torch.func.grad(lambda x: rope.apply_rotary(x, cos, sin).sum())(q)
    with pytest.raises(NotImplementedError, match="rope_apply has no derivative in forward mode"):
        torch.func.jvp(lambda x: rope.apply_rotary(x, cos, sin), (q,), (q,))


def test_forward_mode_loses_no_tangent(device: str) -> None:
    q, k, cos, sin = (t.detach() for t in rope_inputs(device, 4))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(q, q)
        for tensor in (dual, dual * 1):
            with pytest.raises(NotImplementedError, match="forward mode"):
                rope.apply_rotary_pos_emb(tensor, k, cos, sin)
            with pytest.raises(NotImplementedError, match="forward mode"):
                rope.apply_rotary(tensor, cos, sin, in_place=True)
        constant = rope.apply_rotary(q.requires_grad_(), cos, sin)
    assert torch.equal(constant, rope.apply_rotary(q, cos, sin))
