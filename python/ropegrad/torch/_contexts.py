"""Which context a call runs on.

A context serves one host thread at a time, and its calls must not overlap on the GPU: so there is one for each thread
and, on CUDA, for each stream of each device. On the CPU there is one for each number of threads, which is PyTorch's.
"""

from __future__ import annotations

import threading
import weakref

import torch

from ropegrad import _core

_MINE = threading.local()
_ALL_CUDA: weakref.WeakSet[_Context] = weakref.WeakSet()

# Making a context allocates memory of the GPU, which must not happen while a stream is captured, and a capture usually
# runs on a stream of its own. So one context of each device is made ahead.
_SPARES: dict[int, list[_Context]] = {}

try:  # the handle alone, in a tenth of the time
    _current_stream = torch._C._cuda_getCurrentRawStream
except AttributeError:  # a build without CUDA

    def _current_stream(device: int) -> int:
        return int(torch.cuda.current_stream(device).cuda_stream)


class _Context:
    """A context of CUDA, which check_device can find."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.core = _core.Context(_core.CUDA, device)
        _ALL_CUDA.add(self)


def context_of(device: torch.device) -> _core.Context:
    """For calls of this thread on tensors of `device`, now."""
    if device.type == "cuda":
        key = (device.index, _current_stream(device.index))
    elif device.type == "cpu":
        key = (-1, torch.get_num_threads())
    else:
        raise TypeError(f"ropegrad runs on the CPU and on CUDA, not on '{device.type}'")
    try:
        return _MINE.contexts[key]
    except (AttributeError, KeyError):
        return _make(device, key)


def _make(device: torch.device, key: tuple[int, int]) -> _core.Context:
    if not hasattr(_MINE, "contexts"):
        _MINE.contexts, _MINE.kept = {}, []
    if device.type == "cpu":
        core = _core.Context(_core.CPU, 0, threads=key[1])
    else:
        made = _make_cuda(device.index)
        _MINE.kept.append(made)
        core = made.core
        core.set_stream(key[1])
    _MINE.contexts[key] = core
    return core


def _make_cuda(device: int) -> _Context:
    spares = _SPARES.setdefault(device, [])
    with torch.cuda.device(device):
        capturing = torch.cuda.is_current_stream_capturing()
    if not capturing:
        if not spares:
            spares.append(_Context(device))
        return _Context(device)
    try:
        return spares.pop()
    except IndexError:
        raise RuntimeError(
            "ropegrad: a context is needed while a CUDA graph is captured, and none was made ahead; "
            "run the call once outside of the capture, in the same thread, as PyTorch asks for any graph"
        ) from None


def check_device(device: torch.device | int | str | None = None) -> None:
    """Waits for the calls made on a CUDA device and raises the error that one of them has left behind: an entry of
    `cache_position` past the end of the cache, which only the GPU can see. Not while a graph is captured. Of the CPU,
    where every call says so itself, there is nothing to check."""
    chosen = torch.device("cuda" if device is None else device)
    if chosen.type != "cuda":
        return
    index = torch.cuda.current_device() if chosen.index is None else chosen.index
    torch.cuda.synchronize(index)
    for context in list(_ALL_CUDA):
        if context.device == index:
            context.core.check()
