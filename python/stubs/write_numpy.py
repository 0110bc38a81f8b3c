"""write_numpy.py FILE: writes ropegrad/numpy.pyi, which tells type checkers what ropegrad.numpy makes at import.

Run by the build with the package it has just gathered.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ropegrad import _core
from ropegrad._contract import CONTRACTS, Contract
from ropegrad._describe import docstring, has_free_dtype, result_name

HEAD = """# Written by the build from the operators' contracts.
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple

import numpy
from numpy.typing import DTypeLike

_Array = numpy.ndarray[Any, Any]
# None where the output was not wanted: Any, so that who wants it need not ask.
_Output = _Array | Any
"""


def _param_type(param: _core.Param) -> str:
    kinds = {"double": "float", "int64": "int", "bool": "bool", "enum": f"Literal{list(param['values'])}"}
    return kinds[param["kind"]]


def _stub(contract: Contract) -> str:
    outputs = [contract.tensors[t]["name"] for t in contract.outputs]
    arguments = [f"{contract.tensors[t]['name']}: _Array | None = None" for t in contract.inputs]
    arguments += [f"{p['name']}: {_param_type(p)} = {contract.default(p)!r}" for p in contract.params]
    arguments.append(f"wanted: Iterable[Literal{outputs}] | None = None")
    arguments.append("out: Mapping[str, _Array] | None = None")
    if has_free_dtype(contract):
        arguments.append("dtype: DTypeLike | None = None")
    text = "".join(f"    {line}\n" if line else "\n" for line in docstring(contract).splitlines())
    return (
        f"class {result_name(contract)}(NamedTuple):\n"
        + "".join(f"    {name}: _Output\n" for name in outputs)
        + f"\ndef {contract.name}(\n    *,\n"
        + "".join(f"    {argument},\n" for argument in arguments)
        + f') -> {result_name(contract)}:\n    """\n{text}    """\n'
    )


if __name__ == "__main__":
    Path(sys.argv[1]).write_text("\n".join([HEAD, *map(_stub, CONTRACTS.values())]))
