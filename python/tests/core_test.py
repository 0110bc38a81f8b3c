"""The extension module by itself: contexts, contracts, threads, a fork."""

from __future__ import annotations

import inspect
import os
import sys
import threading
from typing import Any

import numpy
import pytest

import ropegrad
import ropegrad.numpy
from cases import Draw
from ropegrad import _core
from ropegrad._contract import CONTRACTS
from ropegrad.errors import ArgumentError, UnsupportedError


def test_version() -> None:
    assert ropegrad.__version__ == _core.VERSION
    assert ropegrad.__version__.count(".") == 2


def test_contracts() -> None:
    """Both passes of each operator, and functions that take exactly their tensors and options."""
    directions = [spec["direction"] for spec in _core.operators()]
    assert directions == sorted(directions)
    assert directions.count("forward") == directions.count("backward") > 0
    for name, contract in CONTRACTS.items():
        assert _core.operators()[contract.index]["function"] == contract.spec["function"]
        parameters = inspect.signature(getattr(ropegrad.numpy, name)).parameters
        expected = [contract.tensors[t]["name"] for t in contract.inputs] + [p["name"] for p in contract.params]
        assert list(parameters)[: len(expected)] == expected
        assert set(parameters) - set(expected) <= {"wanted", "out", "dtype"}


def test_context_errors() -> None:
    with pytest.raises(ArgumentError, match="neither the CPU nor a CUDA device"):
        _core.Context(99, 0)
    with pytest.raises(ArgumentError) as raised:
        _core.Context(_core.CPU, 0, -1)
    assert raised.value.status == 16
    with pytest.raises(UnsupportedError):
        _core.Context(_core.CPU, 0, variant="cpu.none")
    with pytest.raises(ArgumentError, match="a context of the CPU has no stream"):
        _core.Context(_core.CPU, 0).set_stream(0)
    _core.Context(_core.CPU, 0).check()
    assert _core.Context(_core.CPU, 0, variant="cpu.scalar").variant == "cpu.scalar"


def good_call() -> tuple[int, list[Any], tuple[int | float, ...]]:
    contract = CONTRACTS["rope_2d"]
    array = numpy.zeros((1, 1, 2), "float32")
    tensors = [(array.ctypes.data, _core.DTYPES["float32"], array.shape, None) for _ in contract.tensors]
    return contract.index, tensors, ()


@pytest.mark.parametrize(
    ("place", "wrong", "kind"),
    [
        (0, (0, 1, (1, 1, 2)), TypeError),
        (0, (0, 1, [1, 1, 2], None), TypeError),
        (0, (0, 1, (1, 1, 2), (1, 1)), TypeError),
        (0, (0, 1, (1, 1, "2"), None), TypeError),
        (0, ("0", 1, (1, 1, 2), None), TypeError),
        (0, (0, 99, (1, 1, 2), None), ValueError),
        (0, (0, 0, (1, 1, 2), None), ValueError),
        (0, (0, 1, (1, 1, 1 << 64), None), OverflowError),
        (0, 5, TypeError),
    ],
)
def test_call_arguments(place: int, wrong: Any, kind: type[Exception]) -> None:
    index, tensors, params = good_call()
    tensors[place] = wrong
    with pytest.raises(kind):
        _core.Context(_core.CPU, 0).call(index, tuple(tensors), params)


def test_call_counts() -> None:
    index, tensors, params = good_call()
    context = _core.Context(_core.CPU, 0)
    with pytest.raises(TypeError, match="expected 3 tensors and 0 params, got 2 and 0"):
        context.call(index, tuple(tensors[:2]), params)
    with pytest.raises(TypeError, match="got 3 and 1"):
        context.call(index, tuple(tensors), (1,))
    for wrong in (-1, len(CONTRACTS)):
        with pytest.raises(IndexError):
            context.call(wrong, tuple(tensors), params)


def test_no_reference_is_lost_or_kept() -> None:
    index, tensors, params = good_call()
    tensors[0] = (0, 1, (1, 1, 2), (2, 2, 99))
    given = tuple(tensors)
    context = _core.Context(_core.CPU, 0)
    watched = (given, tensors[0], tensors[0][2], tensors[0][3], context, type(context), ArgumentError)
    before = [sys.getrefcount(item) for item in watched]
    for _ in range(100):
        with pytest.raises(ArgumentError):
            context.call(index, given, params)
        with pytest.raises(ArgumentError):
            context.sizes(index, (tensors[1], None, (0, 5, (1,), None)), params)
        _core.Context(_core.CPU, 0)
    assert [sys.getrefcount(item) for item in watched] == before


def test_threads() -> None:
    """Each thread has a context of its own, and all get the same bits."""
    given = Draw().rope_apply_backward("float32", "float32", "float32", S=64, D=64)
    expected = ropegrad.numpy.rope_apply_backward(**given)
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                for array, same in zip(ropegrad.numpy.rope_apply_backward(**given), expected):
                    numpy.testing.assert_array_equal(array, same)
        except BaseException as failure:  # noqa: BLE001  # handed to the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_one_context_in_two_threads() -> None:
    """The second of two calls at once is refused."""
    contract = CONTRACTS["rope_2d"]
    angles = numpy.zeros((1, 1 << 16, 64), "float32")
    outputs = [numpy.empty_like(angles), numpy.empty_like(angles)]
    float32 = _core.DTYPES["float32"]
    tensors = tuple((array.ctypes.data, float32, array.shape, None) for array in (angles, *outputs))
    context = _core.Context(_core.CPU, 0, 1)
    done = threading.Event()

    def work() -> None:
        context.call(contract.index, tensors, ())
        done.set()

    refused = 0
    for _ in range(100):
        done.clear()
        thread = threading.Thread(target=work)
        thread.start()
        while not done.is_set():
            try:
                context.check()
            except RuntimeError as error:
                assert "in use by another thread" in str(error)
                refused += 1
        thread.join()
        if refused:
            break
    assert refused > 0


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # Python's own, of just what is tried here
def test_fork() -> None:
    """A child of a process that has computed with several threads computes too."""
    given = Draw().rope_2d("float32", S=4096, D=64)
    expected = ropegrad.numpy.rope_2d(**given)
    child = os.fork()
    if child == 0:
        result = ropegrad.numpy.rope_2d(**given)
        os._exit(0 if (result.cos == expected.cos).all() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
