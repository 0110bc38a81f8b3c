"""One operator's call on NumPy arrays: from keywords to the library and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy

from ropegrad import _core
from ropegrad._contexts import cpu_context
from ropegrad._contract import Contract

Array = numpy.ndarray[Any, Any]


def _dtype_from(dtype: Any) -> numpy.dtype[Any]:
    """A dtype, or its name; NumPy learns bfloat16 from ml_dtypes alone."""
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    made: numpy.dtype[Any] = numpy.dtype(dtype)
    return made


class Call:
    """A call as it comes together. `arrays` and `params` are in the contract's order."""

    def __init__(self, contract: Contract, keywords: Mapping[str, object]) -> None:
        self.contract = contract
        self.arrays: list[Array | None] = [None] * len(contract.tensors)
        for t in contract.inputs:
            self._give(t, keywords.get(contract.tensors[t]["name"]))
        self.params = tuple(
            contract.number(param, keywords.get(param["name"], contract.default(param))) for param in contract.params
        )
        place = contract.spec["in_place_param"]
        self.in_place = place >= 0 and bool(self.params[place])
        self.context = cpu_context()

    def _error_text(self, t: int, text: str) -> str:
        return f"{self.contract.name}: {self.contract.tensors[t]['name']}: {text}"

    def _give(self, t: int, array: object) -> None:
        if array is None:
            return
        if not isinstance(array, numpy.ndarray):
            raise TypeError(self._error_text(t, f"expected a numpy.ndarray, got {type(array).__name__}"))
        if t in self.contract.outputs and not array.flags.writeable:
            raise ValueError(self._error_text(t, "the array is read-only"))
        self.arrays[t] = array

    def give_outputs(self, out: object, wanted: Iterable[str] | None, dtype: object) -> None:
        """Takes the wanted outputs from `out`, from the inputs that they replace, or makes them."""
        if out is None:
            out = {}
        elif not isinstance(out, Mapping):
            text = f"out: expected a dict of arrays by the outputs' names, got {type(out).__name__}"
            raise TypeError(f"{self.contract.name}: {text}")
        to_make = []
        for t in self._wanted(out, wanted):
            spec = self.contract.tensors[t]
            if spec["name"] in out:
                self._give(t, out[spec["name"]])
            elif self.in_place and spec["in_place_of"] >= 0:
                self._give(t, self.arrays[spec["in_place_of"]])
            else:
                to_make.append(t)
        if to_make:
            sizes = self.context.sizes(self.contract.index, self._tensors(), self.params)
            for t in to_make:
                self.arrays[t] = numpy.empty(self._shape(t, sizes), self._dtype(t, dtype))

    def _wanted(self, out: Mapping[str, Array], wanted: Iterable[str] | None) -> list[int]:
        names = [self.contract.tensors[t]["name"] for t in self.contract.outputs]
        if isinstance(wanted, str):  # one name, and not its letters
            wanted = (wanted,)
        asked = {*out, *(wanted if wanted is not None else ())}
        for name in asked.difference(names):
            raise ValueError(f"{self.contract.name}: {name!r} is none of its outputs, which are {', '.join(names)}")
        if wanted is not None or out:
            return [t for t, name in zip(self.contract.outputs, names) if name in asked]
        # Those that lack no input. Where each lacks some, those that lack the fewest: the library then names an input
        # that was forgotten, and not one of an output that nobody had in mind.
        missing = {t: self._missing_inputs(t) for t in self.contract.outputs}
        fewest = min(missing.values())
        return [t for t in self.contract.outputs if missing[t] == fewest]

    def _missing_inputs(self, output: int) -> int:
        needed = (t for t in self.contract.inputs if self.contract.tensors[t]["needed_for"] >> output & 1)
        return sum(self.arrays[t] is None for t in needed)

    def _shape(self, output: int, sizes: tuple[int, ...]) -> tuple[int, ...]:
        spec = self.contract.tensors[output]
        shape = [divisor if dim < 0 else sizes[dim] // divisor for dim, divisor in spec["axes"]]
        if spec["broadcast_first"]:  # the gradient of one table for every batch is one too
            table = self.arrays[self.contract.place[spec["name"][len("grad_") :]]]
            if table is not None and table.shape[0] == 1:
                shape[0] = 1
        return tuple(shape)

    def _dtype(self, output: int, dtype: object) -> numpy.dtype[Any]:
        """That of the given tensors of its group; where there is none, `dtype`, or that of the arithmetic."""
        group = self.contract.tensors[output]["dtype_group"]
        given = [(spec, array) for spec, array in zip(self.contract.tensors, self.arrays) if array is not None]
        for spec, array in given:
            if spec["dtype_group"] == group:
                return numpy.dtype(array.dtype)
        if dtype is not None:
            return _dtype_from(dtype)
        return numpy.dtype("float64" if any(array.dtype == "float64" for _, array in given) else "float32")

    def _tensors(self) -> tuple[_core.Tensor | None, ...]:
        return tuple(self._tensor(t, array) for t, array in enumerate(self.arrays))

    def _tensor(self, t: int, array: Array | None) -> _core.Tensor | None:
        if array is None:
            return None
        number = _core.DTYPES.get(array.dtype.name)
        if number is None or not array.dtype.isnative:
            raise TypeError(self._error_text(t, f"expected one of {', '.join(_core.DTYPES)}, got {array.dtype!r}"))
        strides = [
            divmod(stride, array.itemsize) if size > 1 else (0, 0) for size, stride in zip(array.shape, array.strides)
        ]
        if any(rest for _, rest in strides):
            text = f"its strides, {array.strides} bytes, are no multiples of its {array.itemsize} bytes an element"
            raise ValueError(self._error_text(t, text))
        return array.ctypes.data, number, array.shape, tuple(stride for stride, _ in strides)

    def run(self) -> list[Array | None]:
        """The outputs; None where one was not wanted."""
        self.context.call(self.contract.index, self._tensors(), self.params)
        return [self.arrays[t] for t in self.contract.outputs]
