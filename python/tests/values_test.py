"""Every operator and every option, in every dtype, against the formulas."""

from __future__ import annotations

import numpy
import pytest

import ropegrad.numpy
from cases import DTYPES, Draw, check, dtype_of

ROTATED = [(dtype, dtype, dtype) for dtype in DTYPES]
ROTATED += [("float16", "float16", "float32"), ("bfloat16", "bfloat16", "float32"), ("float32", "float16", "float16")]
ANGLES = [("float32", "float32"), ("float16", "float32"), ("bfloat16", "float32"), ("float64", "float64")]
STYLES = ("rotate_half", "interleaved")


@pytest.mark.parametrize("dtypes", ROTATED)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("rotary_dim", "tables"), [(0, 0), (0, 1), (12, 0), (12, 1)])
def test_rope_apply(dtypes: tuple[str, str, str], style: str, rotary_dim: int, tables: int) -> None:
    given = Draw().rope_apply(*dtypes, R=rotary_dim, tables=tables)
    result = check("rope_apply", given, style=style, rotary_dim=rotary_dim)
    if rotary_dim:
        numpy.testing.assert_array_equal(result.q_embed[..., rotary_dim:], given["q"][..., rotary_dim:])


@pytest.mark.parametrize("dtypes", ROTATED)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("sin_pairing", ["adjoint", "same_half"])
@pytest.mark.parametrize(("rotary_dim", "tables"), [(0, 0), (12, 1)])
def test_rope_apply_backward(
    dtypes: tuple[str, str, str], style: str, sin_pairing: str, rotary_dim: int, tables: int
) -> None:
    given = Draw().rope_apply_backward(*dtypes, R=rotary_dim, tables=tables)
    check("rope_apply_backward", given, style=style, sin_pairing=sin_pairing, rotary_dim=rotary_dim)


@pytest.mark.parametrize("dtypes", ROTATED)
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(("rotary_dim", "tables"), [(0, 0), (12, 1)])
@pytest.mark.parametrize("positions", [(6, 0, 3), (2, -1, 7, -5), (4, 4, 1)])
def test_kv_cache_update(
    dtypes: tuple[str, str, str], style: str, rotary_dim: int, tables: int, positions: tuple[int, ...]
) -> None:
    options = {"style": style, "rotary_dim": rotary_dim}
    draw = Draw()
    check("kv_cache_update", draw.kv_cache_update(*dtypes, R=rotary_dim, tables=tables, positions=positions), **options)
    given = draw.kv_cache_update_backward(*dtypes, R=rotary_dim, tables=tables, positions=positions)
    check("kv_cache_update_backward", given, **options)


def test_int32_cache_positions() -> None:
    given = Draw().kv_cache_update("float32", "float32", "float32")
    given["cache_position"] = given["cache_position"].astype("int32")
    check("kv_cache_update", given)


def test_rounding_eager() -> None:
    """Each product is rounded to float16 before the two are added in float32."""
    given = Draw().kv_cache_update_backward("float16", "float16", "float16", positions=(0, 1, 2), M=3)
    g, half = given["grad_key_cache"], 8
    c, s = given["cos"][:, None], given["sin"][:, None]

    def added(x: numpy.ndarray, y: numpy.ndarray) -> numpy.ndarray:
        return x.astype("float32") + y.astype("float32")

    first = added(g[..., :half] * c[..., :half], g[..., half:] * s[..., half:])
    second = added(g[..., half:] * c[..., half:], -(g[..., :half] * s[..., :half]))
    expected = numpy.concatenate([first, second], -1).astype("float16")
    eager = ropegrad.numpy.kv_cache_update_backward(**given, rounding="eager").grad_key_states
    numpy.testing.assert_array_equal(eager, expected)
    once = ropegrad.numpy.kv_cache_update_backward(**given, rounding="once").grad_key_states
    assert (once != eager).any()


@pytest.mark.parametrize("dtypes", ANGLES)
@pytest.mark.parametrize("attention_scaling", [1.0, 1.0 / 3.0])
def test_rotary_embedding(dtypes: tuple[str, str], attention_scaling: float) -> None:
    grad, angle = dtypes
    draw = Draw()
    given = draw.rotary_embedding_backward(grad, angle)
    check("rotary_embedding_backward", given, attention_scaling=attention_scaling)
    for positions in ("int64", "int32", angle):
        check("rotary_embedding", draw.rotary_embedding(positions, angle), attention_scaling=attention_scaling)


@pytest.mark.parametrize("dtypes", ANGLES)
def test_rope_2d(dtypes: tuple[str, str]) -> None:
    draw = Draw()
    check("rope_2d", draw.rope_2d(dtypes[1]))
    check("rope_2d_backward", draw.rope_2d_backward(*dtypes))


@pytest.mark.parametrize("dtypes", ANGLES)
def test_vision_rotary(dtypes: tuple[str, str]) -> None:
    draw = Draw()
    check("vision_rotary", draw.vision_rotary(dtypes[1]))
    given = draw.vision_rotary_backward(*dtypes)
    check("vision_rotary_backward", given)
    check("vision_rotary_backward", {**given, "inv_freq": numpy.zeros(6, dtypes[1])})


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_dtype_of_tables(dtype: str) -> None:
    """Where no input decides the dtype: the caller does, by a dtype or its name."""
    draw = Draw()
    for name, given in (
        ("rope_2d", draw.rope_2d("float32")),
        ("vision_rotary", draw.vision_rotary("float32")),
        ("rotary_embedding", draw.rotary_embedding("int64", "float32")),
    ):
        wanted = dtype_of(dtype)
        function = getattr(ropegrad.numpy, name)
        full = function(**given)
        for asked in (dtype, wanted):
            result = function(**given, dtype=asked)
            assert result.cos.dtype == wanted
            numpy.testing.assert_array_equal(result.cos, full.cos.astype(wanted))
            numpy.testing.assert_array_equal(result.sin, full.sin.astype(wanted))


def test_large_angles() -> None:
    """No sine of an unreduced angle."""
    angles = numpy.array([[[131072.0, 1e6, 1e10, 3.0e38]]], "float32")
    check("rope_2d", {"idx_theta": angles})


@pytest.mark.parametrize("S", [0, 1])
def test_small_sizes(S: int) -> None:
    draw = Draw()
    check("rope_apply", draw.rope_apply("float32", "float32", "float32", S=S))
    check("rope_apply_backward", draw.rope_apply_backward("float32", "float32", "float32", S=S))
    check("rope_2d", draw.rope_2d("float32", S=S))
    check("rotary_embedding", draw.rotary_embedding("int64", "float32", S=S))
    check("vision_rotary_backward", draw.vision_rotary_backward("float32", "float32", P=S))
    check("kv_cache_update", draw.kv_cache_update("float32", "float32", "float32", positions=(3,) * S))


def test_real_sizes() -> None:
    """Long enough for every thread and every vector path."""
    draw = Draw()
    check("rope_apply", draw.rope_apply("bfloat16", "bfloat16", "bfloat16", S=131, D=128))
    check("rope_apply_backward", draw.rope_apply_backward("float32", "float32", "float32", S=131, D=128))
    check("rotary_embedding", draw.rotary_embedding("int64", "float32", S=512, D=128))
