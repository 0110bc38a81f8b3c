"""Context.read_tensors_by, with a framework that is made here: DLPack's C exchange API through ctypes."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from ropegrad import _core

NAME = b"dlpack_exchange_api"
FLOAT, ROWS, COLUMNS = 2, 3, 4  # kDLFloat
RESULT = ctypes.c_float * (ROWS * COLUMNS)


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int), ("device_id", ctypes.c_int), ("ndim", ctypes.c_int),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]  # fmt: skip


READER = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.POINTER(Tensor))


class Api(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("previous", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p), ("managed_from_object", ctypes.c_void_p), ("managed_to_object", ctypes.c_void_p),
        ("read", READER), ("current_stream", ctypes.c_void_p),
    ]  # fmt: skip


def capsule_of(api: Api, name: bytes = NAME) -> Any:
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return new(ctypes.addressof(api), name, None)


class Array:
    """A float32 [1, ROWS, COLUMNS]."""

    def __init__(self, *values: float) -> None:
        self.memory = RESULT(*values)
        self.shape = (ctypes.c_int64 * 3)(1, ROWS, COLUMNS)
        self.strides = (ctypes.c_int64 * 3)(ROWS * COLUMNS, COLUMNS, 1)


def read(array: Array, out: Any) -> int:
    if not isinstance(array, Array):
        return -1
    out[0] = Tensor(ctypes.addressof(array.memory), _core.CPU, 0, 3, FLOAT, 32, 1, array.shape, array.strides, 0)
    return 0


def context_with(reader: Callable[..., int]) -> tuple[_core.Context, Api]:
    api = Api(major=1, minor=3, read=READER(reader))
    context = _core.Context(_core.CPU, 0, threads=1)
    context.read_tensors_by(capsule_of(api))
    return context, api


def rope_2d() -> int:
    return next(op["index"] for op in _core.operators() if op["name"] == "rope_2d_forward")


def test_a_call_on_a_frameworks_tensors() -> None:
    context, _api = context_with(read)
    angles, cos, sin = Array(), Array(*[9] * 12), Array(*[9] * 12)
    context.call(rope_2d(), (angles, cos, sin), ())
    assert list(cos.memory) == [1.0] * 12 and list(sin.memory) == [0.0] * 12


def test_tuples_are_still_read() -> None:
    context, _api = context_with(read)
    angles, cos = Array(), Array(*[9] * 12)
    described = (ctypes.addressof(cos.memory), _core.DTYPES["float32"], (1, ROWS, COLUMNS), None)
    context.call(rope_2d(), (angles, described, None), ())
    assert list(cos.memory) == [1.0] * 12


def test_what_the_framework_cannot_describe() -> None:
    context, _api = context_with(read)
    with pytest.raises(BufferError, match="idx_theta: no tensor that DLPack can describe"):
        context.call(rope_2d(), (object(), Array(), None), ())


def test_without_a_reader_only_tuples_are_read() -> None:
    with pytest.raises(TypeError, match="idx_theta: expected None or"):
        _core.Context(_core.CPU, 0, threads=1).call(rope_2d(), (Array(), Array(), None), ())


def test_what_is_no_exchange_api() -> None:
    context = _core.Context(_core.CPU, 0, threads=1)
    later, empty = Api(major=2, read=READER(read)), Api(major=1)
    for wrong in (
        object(),
        capsule_of(later),
        capsule_of(empty),
        capsule_of(Api(major=1, read=READER(read)), b"other"),
    ):
        with pytest.raises(ValueError):
            context.read_tensors_by(wrong)
