"""Inputs for every operator, drawn from a seed, and the check of a result against the formulas."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import formulas
import ropegrad.numpy

Array = numpy.ndarray[Any, Any]

# Payload and table, or payload and angles.
DTYPES = ("float32", "float16", "bfloat16", "float64")
UNIT_ROUNDOFF = {"float32": 2.0**-24, "float64": 2.0**-53}
STORED = {"float16": (10, -14), "bfloat16": (7, -126)}  # bits of the fraction, the least exponent


def dtype_of(name: str) -> numpy.dtype[Any]:
    if name == "bfloat16":
        return numpy.dtype(pytest.importorskip("ml_dtypes").bfloat16)
    return numpy.dtype(name)


class Draw:
    def __init__(self, seed: int = 0) -> None:
        self.random = numpy.random.default_rng(seed)

    def normal(self, *shape: int, dtype: str = "float32") -> Array:
        return self.random.standard_normal(shape).astype(dtype_of(dtype))

    def angles(self, *shape: int, dtype: str = "float32") -> Array:
        return self.random.uniform(-200, 200, shape).astype(dtype)

    def rope_apply(self, q: str, k: str, table: str, *, B: int = 2, S: int = 5, D: int = 16, R: int = 0,
                   tables: int = 0) -> dict[str, Array]:  # fmt: skip
        """q has 4 heads, k 2. `tables`: how many batches cos and sin have; 0: B."""
        shape = (tables or B, S, R or D)
        return {
            "q": self.normal(B, 4, S, D, dtype=q),
            "k": self.normal(B, 2, S, D, dtype=k),
            "cos": self.normal(*shape, dtype=table),
            "sin": self.normal(*shape, dtype=table),
        }

    def rope_apply_backward(self, q: str, k: str, table: str, **sizes: int) -> dict[str, Array]:
        given = self.rope_apply(q, k, table, **sizes)
        given["grad_q_embed"] = self.normal(*given["q"].shape, dtype=q)
        given["grad_k_embed"] = self.normal(*given["k"].shape, dtype=k)
        return given

    def kv_cache_update(self, key: str, value: str, table: str, *, positions: tuple[int, ...] = (6, 0, 3), B: int = 2,
                        M: int = 8, D: int = 16, R: int = 0, tables: int = 0) -> dict[str, Array]:  # fmt: skip
        N = len(positions)
        return {
            "key_cache_input": self.normal(B, 3, M, D, dtype=key),
            "value_cache_input": self.normal(B, 3, M, D, dtype=value),
            "key_states": self.normal(B, 3, N, D, dtype=key),
            "value_states": self.normal(B, 3, N, D, dtype=value),
            "cos": self.normal(tables or B, N, R or D, dtype=table),
            "sin": self.normal(tables or B, N, R or D, dtype=table),
            "cache_position": numpy.array(positions, "int64"),
        }

    def kv_cache_update_backward(self, key: str, value: str, table: str, **sizes: Any) -> dict[str, Array]:
        given = self.kv_cache_update(key, value, table, **sizes)
        renamed = {"grad_key_cache": given.pop("key_cache_input"), "grad_value_cache": given.pop("value_cache_input")}
        del given["value_states"]
        return {**renamed, **given}

    def rotary_embedding(self, positions: str, angle: str, *, B: int = 2, S: int = 5, D: int = 16) -> dict[str, Array]:
        return {
            "position_ids": self.random.integers(-3, 1000, (B, S)).astype(positions),
            "inv_freq_expanded": self.random.uniform(0, 1, (B, D // 2, 1)).astype(angle),
        }

    def rotary_embedding_backward(self, grad: str, angle: str, *, B: int = 2, S: int = 5, D: int = 16
                                  ) -> dict[str, Array]:  # fmt: skip
        return {
            "grad_cos": self.normal(B, S, D, dtype=grad),
            "grad_sin": self.normal(B, S, D, dtype=grad),
            "emb": self.angles(B, S, D, dtype=angle),
            "inv_freq_expanded": self.random.uniform(0, 1, (B, D // 2, 1)).astype(angle),
        }

    def rope_2d(self, angle: str, *, B: int = 2, S: int = 5, D: int = 16) -> dict[str, Array]:
        return {"idx_theta": self.angles(B, S, D, dtype=angle)}

    def rope_2d_backward(self, grad: str, angle: str, *, B: int = 2, S: int = 5, D: int = 16) -> dict[str, Array]:
        return {
            "grad_cos": self.normal(B, S, D, dtype=grad),
            "grad_sin": self.normal(B, S, D, dtype=grad),
            "idx_theta": self.angles(B, S, D, dtype=angle),
        }

    def vision_rotary(self, angle: str, *, P: int = 9, D: int = 24) -> dict[str, Array]:
        return {
            "inv_freq": self.random.uniform(0, 1, D // 4).astype(angle),
            "pos_ids": self.random.integers(0, 50, (P, 2)),
        }

    def vision_rotary_backward(self, grad: str, angle: str, *, P: int = 9, D: int = 24) -> dict[str, Array]:
        return {
            "grad_cos": self.normal(P, D, dtype=grad),
            "grad_sin": self.normal(P, D, dtype=grad),
            "emb": self.angles(P, D, dtype=angle),
            "pos_ids": self.random.integers(0, 50, (P, 2)),
        }


def assert_within(result: Array, value: Array, magnitude: Array) -> None:
    """The contract, element by element: |y - value| <= 8 u T + u |value|, and half an ulp of a 16-bit dtype. (Sums of n
    terms may take sqrt(n)/16 u T more; these tests' sums do without.)"""
    assert result.shape == value.shape
    u = UNIT_ROUNDOFF.get(result.dtype.name, 2.0**-24)
    allowance = 8 * u * magnitude + u * numpy.abs(value)
    if result.dtype.name in STORED:
        fraction, least = STORED[result.dtype.name]
        # Of the float32 result, which is rounded next: it may lie in the binade above the value's.
        largest = (numpy.abs(value) + allowance).astype(numpy.float64)
        allowance = allowance + numpy.ldexp(0.5, numpy.maximum(numpy.frexp(largest)[1] - 1, least) - fraction)
    worst = numpy.abs(formulas.wide(result) - value) - allowance
    place = numpy.unravel_index(worst.argmax(), worst.shape) if worst.size else ()
    assert not (worst > 0).any(), f"{worst[place]} past the contract at {place}"
    assert numpy.isfinite(formulas.wide(result)).all()


def check(name: str, given: dict[str, Array], **options: Any) -> Any:
    """Calls the operator and holds all its outputs against the formulas."""
    formula = getattr(formulas, name)
    value = formula(formulas.VALUE, **given, **options)
    absolute = {of: numpy.abs(array) if array.dtype.kind != "i" else array for of, array in given.items()}
    magnitude = formula(formulas.MAGNITUDE, **absolute, **options)
    before = {of: array.copy() for of, array in given.items()}
    result = getattr(ropegrad.numpy, name)(**given, **options)
    assert set(result._fields) == set(value)
    for output in result._fields:
        assert_within(getattr(result, output), value[output], numpy.abs(magnitude[output]))
    if not options.get("in_place"):
        for of, array in before.items():
            numpy.testing.assert_array_equal(given[of], array, err_msg=f"{of} was written")
    return result
