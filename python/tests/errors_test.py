"""What is wrong is named: tensor, dimension, expected, given; and nothing is written."""

from __future__ import annotations

import pickle
from typing import Any

import numpy
import pytest

import ropegrad
import ropegrad.numpy
from cases import Array, Draw
from ropegrad.errors import (
    ArgumentError,
    DeviceError,
    InternalError,
    OutOfMemoryError,
    UnsupportedError,
    error_of,
)


def zeros(*shape: int, dtype: str = "float32") -> Array:
    return numpy.zeros(shape, dtype)


def rope_apply(**changes: Any) -> Any:
    return ropegrad.numpy.rope_apply(**{**Draw().rope_apply("float32", "float32", "float32"), **changes})


WRONG = [
    ({"q": zeros(2, 4, 5)}, "q: expected 4 dimensions, got 3"),
    ({"q": zeros(2, 4, 5, 16, 1, 1)}, "q: expected 4 dimensions, got 6"),
    ({"k": zeros(2, 2, 6, 16)}, r"k: dimension 2 \(seq_len\): expected 5 as in q, got 6"),
    ({"cos": zeros(3, 5, 16)}, r"cos: dimension 0 \(batch_size\): expected 2 as in q, got 3"),
    ({"q": zeros(2, 4, 5, 15)}, r"q: dimension 3 \(head_dim\) must be a positive multiple of 2, got 15"),
    ({"sin": zeros(2, 5, 16, dtype="float16")}, "sin: expected float32 as cos, got float16"),
    ({"k": zeros(2, 2, 5, 16, dtype="int64")}, "k: expected float32, bfloat16, float16 or float64, got int64"),
    ({"q": zeros(2, 4, 5, 16, dtype="float64")}, "expected float64 as q, got float32"),
    ({"rotary_dim": 7}, "rotary_dim"),
    ({"sin": None, "wanted": ["q_embed"]}, "sin: it is NULL, but q_embed needs it"),
    ({"q": None, "k": None}, "q: it is NULL, but q_embed needs it"),
    ({"k": None, "cos": None}, "cos: it is NULL, but q_embed needs it"),
]


@pytest.mark.parametrize(("changes", "text"), WRONG)
def test_arguments(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text) as raised:
        rope_apply(**changes)
    assert str(raised.value).startswith("rg_rope_apply_forward: ")
    assert isinstance(raised.value, ValueError)
    assert isinstance(raised.value, ropegrad.Error)
    assert 10 <= raised.value.status < 20


def test_shared_memory() -> None:
    given = Draw().rope_apply("float32", "float32", "float32")
    with pytest.raises(ArgumentError, match="q_embed: it shares memory with q") as raised:
        ropegrad.numpy.rope_apply(**given, out={"q_embed": given["q"]}, wanted=["q_embed", "k_embed"])
    assert raised.value.status == 15
    same = numpy.broadcast_to(zeros(1, 1, 1, 16), (2, 4, 5, 16)).view()
    same.flags.writeable = True
    with pytest.raises(ArgumentError, match="q_embed: two of its indices name the same element"):
        ropegrad.numpy.rope_apply(**given, out={"q_embed": same})


def test_position_past_the_cache() -> None:
    given = Draw().kv_cache_update("float32", "float32", "float32", positions=(1, 8), M=8)
    out = {"key_cache": numpy.full_like(given["key_cache_input"], 7)}
    with pytest.raises(ArgumentError, match="cache_position: entry 1 is 8, expected less than max_seq_len = 8"):
        ropegrad.numpy.kv_cache_update(**given, out=out)
    assert (out["key_cache"] == 7).all()


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"q": [[0.0]]}, TypeError, "rope_apply: q: expected a numpy.ndarray, got list"),
        (
            {"q": zeros(2, 4, 5, 16, dtype="complex64")},
            TypeError,
            "q: expected one of float32, .*complex64",
        ),
        ({"q": zeros(2, 4, 5, 16, dtype=">f4")}, TypeError, "q: expected one of float32, .*>f4"),
        ({"style": "neox"}, ValueError, "style: expected 'rotate_half' or 'interleaved', got 'neox'"),
        ({"rotary_dim": 2.5}, TypeError, "rotary_dim: expected int64, got float"),
        ({"rotary_dim": 1 << 70}, OverflowError, "int too big"),
        ({"wanted": ["grad_q"]}, ValueError, "'grad_q' is none of its outputs, which are q_embed, k_embed"),
        ({"wanted": []}, ArgumentError, "there is nothing to compute"),
        ({"out": {"queries": zeros(1)}}, ValueError, "'queries' is none of its outputs"),
        ({"out": zeros(2, 4, 5, 16)}, TypeError, "rope_apply: out: expected a dict of arrays .*, got ndarray"),
        ({"Q": zeros(1)}, TypeError, r"rope_apply\(\) got an unexpected keyword argument 'Q'"),
    ],
)
def test_python_arguments(changes: dict[str, Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        rope_apply(**changes)


def test_split_elements() -> None:
    records = numpy.zeros((2, 4, 5, 16), [("value", "float32"), ("flag", "int8")])
    with pytest.raises(ValueError, match="q: its strides"):
        rope_apply(q=records["value"])


def test_unaligned() -> None:
    memory = numpy.zeros(2 * 4 * 5 * 16 * 4 + 1, "int8")
    with pytest.raises(ArgumentError, match="q: its first element is not aligned"):
        rope_apply(q=memory[1:].view("float32").reshape(2, 4, 5, 16))


def test_hierarchy() -> None:
    for status, kind, builtin in (
        (11, ArgumentError, ValueError),
        (31, UnsupportedError, NotImplementedError),
        (50, OutOfMemoryError, MemoryError),
        (70, DeviceError, RuntimeError),
        (90, InternalError, RuntimeError),
    ):
        error = error_of(status, "text")
        assert type(error) is kind
        assert isinstance(error, builtin)
        assert isinstance(error, ropegrad.Error)
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), again.status, str(again)) == (kind, status, "text")
