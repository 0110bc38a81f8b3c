"""Which context a call runs on.

A context serves one host thread at a time, and its calls must not overlap on the GPU: so there is one for each thread
and, on CUDA, for each stream of each device. On the CPU there is one for each number of threads, which is PyTorch's.
"""

from __future__ import annotations

import threading
import weakref

import torch

from ropegrad import _core


class _Contexts(threading.local):
    """Of one thread: by the number of threads on the CPU, by (device, stream) on CUDA."""

    def __init__(self) -> None:
        self.by_place: dict[int | tuple[int, int], _core.Context] = {}
        self.kept: list[_CudaContext] = []


class _CudaContext:
    """A context that check_device can find."""

    def __init__(self, device: int) -> None:
        self.device = device
        self.core = _core.Context(_core.CUDA, device)
        _ALL_CUDA.add(self)


_MINE = _Contexts()
_ALL_CUDA: weakref.WeakSet[_CudaContext] = weakref.WeakSet()

# Making a context allocates memory of the GPU, which must not happen while a stream is captured, and a capture usually
# runs on a stream of its own. So one context of each device is made ahead.
_SPARES: dict[int, list[_CudaContext]] = {}

try:  # the handle alone, in a tenth of the time
    _current_stream = torch._C._cuda_getCurrentRawStream
except AttributeError:  # a build without CUDA

    def _current_stream(device: int) -> int:
        return int(torch.cuda.current_stream(device).cuda_stream)


def context_of(device: int) -> _core.Context:
    """For calls of this thread, now, on tensors of a device: its CUDA index, or -1 for the CPU."""
    place = torch.get_num_threads() if device < 0 else (device, _current_stream(device))
    try:
        return _MINE.by_place[place]
    except KeyError:
        return _make(place)


def _make(place: int | tuple[int, int]) -> _core.Context:
    if isinstance(place, int):
        core = _core.Context(_core.CPU, 0, threads=place)
    else:
        device, stream = place
        made = _make_cuda(device)
        _MINE.kept.append(made)
        core = made.core
        core.set_stream(stream)
    _MINE.by_place[place] = core
    return core


def _make_cuda(device: int) -> _CudaContext:
    spares = _SPARES.setdefault(device, [])
    with torch.cuda.device(device):
        capturing = torch.cuda.is_current_stream_capturing()
    if not capturing:
        if not spares:
            spares.append(_CudaContext(device))
        return _CudaContext(device)
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
