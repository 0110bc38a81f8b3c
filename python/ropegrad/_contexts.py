"""Contexts of the CPU, made when they are first asked for: one for each host thread."""

from __future__ import annotations

import os
import threading

from ropegrad import _core

_mine = threading.local()
_threads_of_a_call = 0  # as many as the process may use


def cpu_context() -> _core.Context:
    """The calling thread's."""
    try:
        context: _core.Context = _mine.context
    except AttributeError:
        context = _mine.context = _core.Context(_core.CPU, 0, _threads_of_a_call)
    return context


def _in_forked_child() -> None:
    """OpenMP's threads do not survive a fork, so that a child must compute alone."""
    global _mine, _threads_of_a_call
    _mine = threading.local()
    _threads_of_a_call = 1


os.register_at_fork(after_in_child=_in_forked_child)
