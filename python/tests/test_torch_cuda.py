"""What only CUDA has: streams, graphs, devices, and calls that wait for nothing."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import ropegrad.torch as rope

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no CUDA device here")
B, H, S, D = 2, 8, 256, 128


def inputs(device: str = "cuda", size: int = S) -> list[Tensor]:
    generator = torch.Generator().manual_seed(2)
    shapes = ((B, H, size, D), (B, 2, size, D), (B, size, D), (B, size, D))
    return [torch.randn(shape, generator=generator).to(device).requires_grad_() for shape in shapes]


def train(tensors: list[Tensor]) -> list[Tensor]:
    made = rope.apply_rotary_pos_emb(*tensors)
    return [*made, *torch.autograd.grad(made, tensors, [y.detach() for y in made])]


def all_equal(got: list[Tensor], expected: list[Tensor]) -> bool:
    return len(got) == len(expected) and all(torch.equal(a.cpu(), b.cpu()) for a, b in zip(got, expected))


def test_calls_run_on_the_current_stream() -> None:
    """Behind a long wait on a side stream lie the inputs' true values; a call on another stream would miss them."""
    tensors = inputs()
    expected = train(tensors)
    stream = torch.cuda.Stream()
    late = [torch.zeros_like(t).requires_grad_() for t in tensors]
    with torch.cuda.stream(stream):
        train(tensors)  # makes the stream's context, which waits
    torch.cuda.synchronize()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(200_000_000)
        with torch.no_grad():
            for target, source in zip(late, tensors):
                target.copy_(source)
        got = train(late)
    assert not stream.query(), "the wait ended too early for this test to mean anything"
    stream.synchronize()
    assert all_equal(got, expected)


def test_nothing_waits() -> None:
    q = torch.randn(B, H, S, D, device="cuda", requires_grad=True)
    positions, pos_ids = torch.arange(S, device="cuda"), torch.ones(6, 2, dtype=torch.int64, device="cuda")
    rotary, frequencies = rope.RotaryEmbedding(D, learned=True).cuda(), torch.rand(D, device="cuda", requires_grad=True)
    cache = torch.zeros(B, H, S, D, device="cuda")

    def step() -> None:
        cos, sin = rotary(q, positions.expand(B, S))
        rope.apply_rotary(q, cos, sin).sum().backward()
        rope.update_kv_cache(cache, cache.clone(), q.detach(), q.detach(), cos.detach(), sin.detach(), positions)
        rope.vision_rotary(pos_ids, frequencies)[0].sum().backward()

    step()  # makes the contexts
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")  # at whatever waits for the GPU
    try:
        step()
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("stream_of_its_own", [False, True])
def test_graph_of_forward_and_backward(stream_of_its_own: bool) -> None:
    tensors = inputs()
    warm_up = torch.cuda.Stream()
    warm_up.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(warm_up):
        train(tensors)
    torch.cuda.current_stream().wait_stream(warm_up)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.Stream() if stream_of_its_own else None):
        captured = train(tensors)
    for seed in (1, 2):
        torch.manual_seed(seed)
        with torch.no_grad():
            for tensor in tensors:
                tensor.copy_(torch.randn_like(tensor))
        graph.replay()
        assert all_equal(captured, train(tensors))


def test_graphs_of_tables() -> None:
    positions, pos_ids = torch.rand(B, S, device="cuda", requires_grad=True), torch.randint(0, 9, (S, 2), device="cuda")
    frequencies = torch.rand(D // 4, device="cuda", requires_grad=True)

    def step() -> list[Tensor]:
        rotary, grid = rope.rotary_embedding(positions, frequencies), rope.vision_rotary(pos_ids, frequencies)
        made = [*rotary, *grid]
        return [*made, *torch.autograd.grad(made, [positions, frequencies], [y.detach() for y in made])]

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    with torch.no_grad():
        positions.mul_(3)
        frequencies.add_(0.5)
    graph.replay()
    assert all_equal(captured, step())


def test_graphed_callables() -> None:
    q, k, cos, sin = inputs()

    class Rotate(torch.nn.Module):
        def forward(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            return rope.apply_rotary_pos_emb(q, k, cos.detach(), sin.detach())

    expected = [*Rotate()(q, k)]
    expected += torch.autograd.grad(expected, [q, k], [y.detach() for y in expected])
    graphed = torch.cuda.make_graphed_callables(
        Rotate(), (q.detach().clone().requires_grad_(), k.detach().clone().requires_grad_())
    )
    got = [*graphed(q, k)]
    got += torch.autograd.grad(got, [q, k], [y.detach() for y in got])
    assert all_equal(got, expected)


def test_reduce_overhead_mode() -> None:
    """torch.compile with CUDA graphs of its own."""
    compiled = torch.compile(rope.apply_rotary_pos_emb, fullgraph=True, mode="reduce-overhead")
    tensors = inputs()
    expected = train(tensors)
    for _ in range(3):
        torch.compiler.cudagraph_mark_step_begin()
        made = compiled(*tensors)
        got = [*made, *torch.autograd.grad(made, tensors, [y.detach() for y in expected[:2]])]
        assert all_equal([t.clone() for t in got], expected)


def test_index_error_is_told_later() -> None:
    cache, states = torch.zeros(1, 1, 4, D, device="cuda"), torch.ones(1, 1, 2, D, device="cuda")
    cos = torch.ones(2, D, device="cuda")
    position = torch.tensor([1, 4], device="cuda")
    keys, _ = rope.update_kv_cache(cache, cache.clone(), states, states, cos, torch.zeros_like(cos), position)
    with pytest.raises(ValueError, match="past the end"):
        rope.check_device("cuda")
    rope.check_device("cuda")
    assert torch.equal(keys[0, 0, 1], states[0, 0, 0]) and not keys[0, 0, 2:].any()


def test_tensors_of_two_places_are_refused() -> None:
    q, k, cos, sin = inputs()
    with pytest.raises(ValueError, match=r"cos|cpu"):
        rope.apply_rotary_pos_emb(q, k, cos.cpu(), sin)


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="there are not two CUDA devices here")
def test_several_devices() -> None:
    first, second = train(inputs("cuda:0")), train(inputs("cuda:1"))
    assert torch.cuda.current_device() == 0
    assert {t.device.index for t in second} == {1} and all_equal(second, first)
    with torch.cuda.device(1):
        assert all_equal(train(inputs("cuda:0")), first)
        assert torch.cuda.current_device() == 1
    stream = torch.cuda.Stream("cuda:1")
    tensors = inputs("cuda:1")
    torch.cuda.synchronize(1)
    with torch.cuda.stream(stream):
        got = train(tensors)
    stream.synchronize()
    assert all_equal(got, first)
