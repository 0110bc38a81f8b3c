"""Contexts, made when they are first asked for: one for each host thread, device and stream.

One for each stream, because calls of one context share a workspace and must not overlap on the GPU.
"""

from __future__ import annotations

import os
import threading

from ropegrad import _core


class _Threads(threading.local):
    def __init__(self) -> None:
        self.contexts: dict[tuple[int, int, int], _core.Context] = {}


_threads = _Threads()
_cpu_threads = 0  # as many as the process may use
_left_behind: list[_core.Context] = []


def context_of(device_type: int, device_id: int, stream: int = 0) -> _core.Context:
    """The calling thread's context of a device; on CUDA with its calls on `stream`."""
    key = (device_type, device_id, stream)
    context = _threads.contexts.get(key)
    if context is None:
        context = _core.Context(device_type, device_id, _cpu_threads)
        if device_type == _core.CUDA:
            context.set_stream(stream)
        _threads.contexts[key] = context
    return context


def _in_forked_child() -> None:
    """OpenMP's threads and CUDA do not survive a fork: a child computes alone, and destroys nothing of its parent's."""
    global _cpu_threads
    _cpu_threads = 1
    _left_behind.extend(_threads.contexts.values())
    _threads.contexts = {}


os.register_at_fork(after_in_child=_in_forked_child)
