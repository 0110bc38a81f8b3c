"""Which context a call on CUDA gets, within and outside of captures: the rules alone, without a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from ropegrad.torch import _contexts


class Gpu:
    """What a GPU and PyTorch would say, and the contexts that were made on it."""

    def __init__(self) -> None:
        self.stream, self.capturing = 7, False
        self.made: list[Any] = []

    def make(self, device_type: int, device: int, threads: int = 0) -> Any:
        assert not self.capturing, "a context is made while a graph is captured"
        context = SimpleNamespace(device=device, streams=[])
        context.set_stream = context.streams.append
        self.made.append(context)
        return context


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    fake = Gpu()
    monkeypatch.setattr(_contexts, "_new", fake.make)
    monkeypatch.setattr(_contexts, "_is_capturing", lambda device: fake.capturing)
    monkeypatch.setattr(_contexts, "_current_stream", lambda device: fake.stream)
    for name, empty in (("_CUDA", {}), ("_SPARES", {}), ("_LACKING", set())):
        monkeypatch.setattr(_contexts, name, empty)
    return fake


def test_one_for_each_stream_of_each_device(gpu: Gpu) -> None:
    first = _contexts.context_of(0)
    assert _contexts.context_of(0) is first and first.streams == [7]
    gpu.stream = 8
    second = _contexts.context_of(0)
    other = _contexts.context_of(1)
    assert len({id(c) for c in (first, second, other)}) == 3
    assert second.streams == [8] and other.device == 1 and other.streams == [8]
    gpu.stream = 7
    assert _contexts.context_of(0) is first and first.streams == [7]


def test_a_capture_takes_what_was_made_ahead(gpu: Gpu) -> None:
    _contexts.context_of(0)
    gpu.stream, gpu.capturing = 8, True
    captured = _contexts.context_of(0)
    assert captured.streams == [8] and _contexts.context_of(0) is captured and len(gpu.made) == 2
    gpu.stream, gpu.capturing = 7, False
    _contexts.context_of(0)  # and the next call makes another one ahead
    assert len(gpu.made) == 3
    gpu.stream, gpu.capturing = 9, True
    assert _contexts.context_of(0) is gpu.made[2]


def test_a_capture_without_any_call_before(gpu: Gpu) -> None:
    gpu.capturing = True
    with pytest.raises(RuntimeError, match="run it once outside of the capture"):
        _contexts.context_of(0)
