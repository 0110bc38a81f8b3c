"""Where arrays lie and which outputs there are: strides, out, wanted, in_place, read-only arrays."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import ropegrad.numpy
from cases import Array, Draw, check

BACKWARDS = [
    ("rope_apply_backward", ("float32", "float32", "float32")),
    ("kv_cache_update_backward", ("float32", "float32", "float32")),
    ("rotary_embedding_backward", ("float16", "float32")),
    ("rope_2d_backward", ("float16", "float32")),
    ("vision_rotary_backward", ("float16", "float32")),
]
FORWARDS = [
    ("rope_apply", ("float32", "float32", "float32")),
    ("kv_cache_update", ("float32", "float32", "float32")),
    ("rotary_embedding", ("int64", "float32")),
    ("rope_2d", ("float32",)),
    ("vision_rotary", ("float32",)),
]
EVERY_OPERATOR = pytest.mark.parametrize(("name", "dtypes"), BACKWARDS + FORWARDS)


def call(name: str, **keywords: Any) -> Any:
    return getattr(ropegrad.numpy, name)(**keywords)


def draw(name: str, dtypes: tuple[str, ...]) -> dict[str, Array]:
    given: dict[str, Array] = getattr(Draw(), name)(*dtypes)
    return given


def spread(array: Array) -> Array:
    """The same values with gaps, from an odd offset on, the last axis backwards, the first two exchanged in memory."""
    order = (1, 0, *range(2, array.ndim)) if array.ndim > 1 else (0,)
    memory = numpy.zeros([size * 2 + 3 for size in array.transpose(order).shape], array.dtype)
    view = memory[tuple(slice(3, None, 2) for _ in memory.shape)].transpose(order)[..., ::-1]
    view[...] = array
    return view


@EVERY_OPERATOR
def test_strided_inputs(name: str, dtypes: tuple[str, ...]) -> None:
    given = draw(name, dtypes)
    dense = call(name, **given)
    strided = check(name, {of: spread(array) for of, array in given.items()})
    for output in dense._fields:
        numpy.testing.assert_array_equal(getattr(strided, output), getattr(dense, output))


@EVERY_OPERATOR
def test_strided_outputs(name: str, dtypes: tuple[str, ...]) -> None:
    given = draw(name, dtypes)
    dense = call(name, **given)
    out = {of: spread(numpy.zeros_like(array)) for of, array in dense._asdict().items()}
    result = call(name, **given, out=out)
    for output, array in out.items():
        assert getattr(result, output) is array
        numpy.testing.assert_array_equal(array, getattr(dense, output))
        memory = array.base
        while memory.base is not None:
            memory = memory.base
        touched = numpy.zeros(memory.shape, bool)
        touched[tuple(slice(3, None, 2) for _ in memory.shape)] = True
        assert not memory[~touched].any(), f"{output}: the gaps were written"


@EVERY_OPERATOR
def test_wanted(name: str, dtypes: tuple[str, ...]) -> None:
    """Each output alone is what it is among all."""
    given = draw(name, dtypes)
    full = call(name, **given)
    for output in full._fields:
        alone = call(name, **given, wanted=[output])
        numpy.testing.assert_array_equal(getattr(alone, output), getattr(full, output))
        assert [of for of in full._fields if getattr(alone, of) is not None] == [output]
        out = numpy.empty_like(getattr(full, output))
        assert getattr(call(name, **given, out={output: out}), output) is out
        numpy.testing.assert_array_equal(out, getattr(full, output))


def test_expanded_inputs() -> None:
    """Strides of 0, as broadcasting makes them; one table for both batches has a gradient for each."""
    given = draw("rope_apply_backward", ("float32", "float32", "float32"))
    given["grad_q_embed"] = numpy.broadcast_to(numpy.float32(1), given["q"].shape)
    given["cos"] = numpy.broadcast_to(given["cos"][:1], given["cos"].shape)
    result = check("rope_apply_backward", given)
    assert result.grad_cos.shape == (2, 5, 16)


def test_outputs_by_their_inputs() -> None:
    """Without `wanted`, what can be computed is."""
    given = draw("rope_apply_backward", ("float32", "float32", "float32"))
    full = call("rope_apply_backward", **given)
    tables = {of: given[of] for of in ("q", "k", "grad_q_embed", "grad_k_embed")}
    result = call("rope_apply_backward", **tables)
    assert result.grad_q is None
    assert result.grad_k is None
    numpy.testing.assert_array_equal(result.grad_cos, full.grad_cos)
    turned = call("rope_apply", q=given["q"], cos=given["cos"], sin=given["sin"])
    assert turned.k_embed is None
    assert turned.q_embed.shape == given["q"].shape


def test_table_gradient_needs_rotary_dim() -> None:
    """Without tables, the option alone says how many columns turned."""
    given = draw("rope_apply_backward", ("float32", "float32", "float32"))
    tables = {of: given[of] for of in ("q", "k", "grad_q_embed", "grad_k_embed")}
    assert call("rope_apply_backward", **tables, rotary_dim=6).grad_cos.shape == (2, 5, 6)


@pytest.mark.parametrize("name", ["rope_apply", "kv_cache_update", "kv_cache_update_backward"])
def test_in_place(name: str) -> None:
    given = draw(name, ("float32", "float32", "float32"))
    expected = call(name, **{of: array.copy() for of, array in given.items()})
    replaced = {"rope_apply": ("q", "k"), "kv_cache_update": ("key_cache_input", "value_cache_input"),
                "kv_cache_update_backward": ("grad_key_cache", "grad_value_cache")}[name]  # fmt: skip
    result = check(name, given, in_place=True)
    for array, of in zip(result[-2:], replaced):
        assert array is given[of]
    for output in expected._fields:
        numpy.testing.assert_array_equal(getattr(result, output), getattr(expected, output))


def test_read_only_output() -> None:
    given = draw("rope_2d", ("float32",))
    out = numpy.zeros((2, 5, 16), "float32")
    out.flags.writeable = False
    with pytest.raises(ValueError, match="rope_2d: cos: the array is read-only"):
        call("rope_2d", **given, out={"cos": out})
    given = draw("rope_apply", ("float32", "float32", "float32"))
    given["q"].flags.writeable = False
    with pytest.raises(ValueError, match="rope_apply: q_embed: the array is read-only"):
        call("rope_apply", **given, in_place=True)


def test_numbers_of_numpy_are_options() -> None:
    given = Draw().rope_apply("float32", "float32", "float32")
    expected = ropegrad.numpy.rope_apply(**given)
    whole = given["cos"].shape[-1]
    for dim in (numpy.int64(whole), numpy.int32(whole)):
        made = ropegrad.numpy.rope_apply(**{**given, "rotary_dim": dim})
        assert numpy.array_equal(made.q_embed, expected.q_embed)
    table = Draw().rotary_embedding("float32", "float32")
    twice = [ropegrad.numpy.rotary_embedding(**{**table, "attention_scaling": a}).cos for a in (2.0, numpy.float32(2))]
    assert numpy.array_equal(*twice)


def test_one_wanted_name() -> None:
    given = Draw().rope_apply("float32", "float32", "float32")
    made = ropegrad.numpy.rope_apply(**given, wanted="k_embed")
    assert made.q_embed is None and numpy.array_equal(made.k_embed, ropegrad.numpy.rope_apply(**given).k_embed)
