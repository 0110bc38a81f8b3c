"""Which context a call runs on.

A context serves one host thread at a time, and its calls must not overlap on the GPU. On the CPU, where a call lets go
of the GIL, each thread has its own, one for each number of threads that PyTorch may be set to. On CUDA, where a call
holds the GIL and only launches, there is one for each stream of each device.
"""

from __future__ import annotations

import threading

import torch

from ropegrad import _core


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.by_count: dict[int, _core.Context] = {}


_CPU = _OfThread()
_CUDA: dict[tuple[int, int], _core.Context] = {}  # by device and stream
_LOCK = threading.Lock()

# Making a context allocates memory of the GPU, which must not happen while a stream is captured, and a capture usually
# runs on a stream of its own. So one context of each device is made ahead; of these devices it has been taken.
_SPARES: dict[int, _core.Context] = {}
_LACKING: set[int] = set()

try:  # the handle alone, in a tenth of the time
    _current_stream = torch._C._cuda_getCurrentRawStream
except AttributeError:  # a build without CUDA

    def _current_stream(device: int) -> int:
        return int(torch.cuda.current_stream(device).cuda_stream)


def context_of(device: int) -> _core.Context:
    """For calls of this thread, now, on tensors of a device: its CUDA index, or -1 for the CPU."""
    if device < 0:
        threads = torch.get_num_threads()
        return _CPU.by_count.get(threads) or _make_cpu(threads)
    if _LACKING:
        _replace_spares()
    place = (device, _current_stream(device))
    return _CUDA.get(place) or _make_cuda(place)


# Newer versions of PyTorch let C read their tensors; of older ones a call is told address, shape and strides.
_EXCHANGE = getattr(torch.Tensor, "__dlpack_c_exchange_api__", None)


def _new(device_type: int, device: int, threads: int = 0) -> _core.Context:
    context = _core.Context(device_type, device, threads=threads)
    if READS_TENSORS:
        context.read_tensors_by(_EXCHANGE)
    return context


def _reads_tensors() -> bool:
    if _EXCHANGE is None:
        return False
    try:
        _core.Context(_core.CPU, 0, threads=1).read_tensors_by(_EXCHANGE)
    except ValueError:  # of a later version than the extension module knows
        return False
    return True


READS_TENSORS = _reads_tensors()  # Does a call take tensors as they are?


def _make_cpu(threads: int) -> _core.Context:
    context = _CPU.by_count[threads] = _new(_core.CPU, 0, threads)
    return context


def _is_capturing(device: int) -> bool:
    with torch.cuda.device(device):
        return torch.cuda.is_current_stream_capturing()


def _make_cuda(place: tuple[int, int]) -> _core.Context:
    device, stream = place
    with _LOCK:
        if place in _CUDA:  # another thread was faster
            return _CUDA[place]
        if _is_capturing(device):
            if device not in _SPARES:
                raise RuntimeError(
                    "ropegrad: the first call on a stream must not be captured in a CUDA graph if no call was made "
                    "before: run it once outside of the capture, as PyTorch asks for any graph"
                )
            context = _SPARES.pop(device)
            _LACKING.add(device)
        else:
            context = _new(_core.CUDA, device)
            _SPARES.setdefault(device, _new(_core.CUDA, device))
        context.set_stream(stream)
        _CUDA[place] = context
    return context


def _replace_spares() -> None:
    with _LOCK:
        for device in list(_LACKING):
            if not _is_capturing(device):
                _SPARES[device] = _new(_core.CUDA, device)
                _LACKING.discard(device)


def check_device(device: torch.device | int | str | None = None) -> None:
    """Waits for the calls made on a CUDA device and raises the error that one of them has left behind: an entry of
    `cache_position` past the end of the cache, which only the GPU can see. Not while a graph is captured. Of the CPU,
    where every call says so itself, there is nothing to check."""
    chosen = torch.device("cuda" if device is None else device)
    if chosen.type != "cuda":
        return
    index = torch.cuda.current_device() if chosen.index is None else chosen.index
    torch.cuda.synchronize(index)
    for (place, _), context in list(_CUDA.items()):
        if place == index:
            context.check()
