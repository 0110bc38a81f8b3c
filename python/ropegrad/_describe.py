"""Documentation and signatures of the operators, made from their contracts."""

from __future__ import annotations

import textwrap

from ropegrad import _core
from ropegrad._contract import Contract

_DTYPES = {
    "payload": "float32, bfloat16, float16 or float64",
    "table": "float32, or the dtype of a tensor that it rotates",
    "angle": "float32 or float64",
    "int64": "int64",
    "index": "int64 or int32",
    "position": "int64, int32, float32 or float64",
}


_WIDTH = 100


def _wrapped(text: str, further: str) -> list[str]:
    """In lines that begin as the text does, those after the first with `further` before it."""
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(text, _WIDTH, subsequent_indent=indent + further, break_long_words=False)


def has_free_dtype(contract: Contract) -> bool:
    """Whether there are outputs whose dtype no input decides."""
    decided = {contract.tensors[t]["dtype_group"] for t in contract.inputs}
    return any(contract.tensors[t]["dtype_group"] not in decided for t in contract.outputs)


def result_name(contract: Contract) -> str:
    """RopeApplyBackwardResult"""
    return contract.name.title().replace("_", "") + "Result"


def _tensor_line(contract: Contract, t: int) -> str:
    tensor = contract.tensors[t]
    first = next(u for u in range(t + 1) if contract.tensors[u]["dtype_group"] == tensor["dtype_group"])
    dtype = _DTYPES[tensor["dtypes"]] if first == t else f"dtype of {contract.tensors[first]['name']}"
    line = f"    {tensor['name']}: {contract.shape_text(t)} {dtype}"
    users = [contract.tensors[u]["name"] for u in contract.outputs if tensor["needed_for"] >> u & 1]
    if tensor["role"] == "input":
        line += f"; for {', '.join(users)}" if users else "; only its shape and dtype are looked at"
    if tensor["in_place_of"] >= 0:
        line += f"; in place, {contract.tensors[tensor['in_place_of']]['name']} itself"
    return line


def _param_line(contract: Contract, param: _core.Param) -> str:
    kinds = {"double": "float", "int64": "int", "bool": "bool", "enum": " or ".join(map(repr, param["values"]))}
    return f"    {param['name']}: {kinds[param['kind']]}, default {contract.default(param)!r}"


def _example(contract: Contract) -> list[str]:
    """On arrays of ones and zeros, small, that fit together."""
    sizes = [8 if dim["multiple_of"] > 1 or dim["kind"] == "derived" else 2 for dim in contract.spec["dims"]]
    lines = ["    >>> import numpy", "    >>> import ropegrad.numpy"]
    shapes = {}
    for t, tensor in enumerate(contract.tensors):
        shape = tuple(divisor if dim < 0 else sizes[dim] // divisor for dim, divisor in tensor["axes"])
        shapes[t] = shape
        if t in contract.inputs:
            integer = tensor["dtypes"] in ("int64", "index", "position")
            made = f'numpy.zeros({shape}, "int64")' if integer else f'numpy.ones({shape}, "float32")'
            lines.append(f"    >>> {tensor['name']} = {made}")
    names = [contract.tensors[t]["name"] for t in contract.inputs]
    lines.append(f"    >>> result = ropegrad.numpy.{contract.name}(")
    given = ", ".join(f"{name}={name}" for name in names)
    lines += [f"    ...     {line}" for line in textwrap.wrap(given, _WIDTH - 12)]
    lines.append("    ... )")
    first = contract.outputs[0]
    return [*lines, f"    >>> result.{contract.tensors[first]['name']}.shape", f"    {shapes[first]}"]


def docstring(contract: Contract) -> str:
    """Of the operator's function of ropegrad.numpy."""
    spec = contract.spec
    used = {dim for t in contract.tensors for dim, _ in t["axes"]}
    dims = [f"{dim['symbol']} {dim['name']}" for d, dim in enumerate(spec["dims"]) if d in used]
    multiples = [
        f"{dim['symbol']} is a positive multiple of {dim['multiple_of']}"
        for dim in spec["dims"]
        if dim["multiple_of"] > 1 and dim["kind"] == "bound"
    ]
    lines = [
        f"{spec['title']}.",
        f"Sizes: {', '.join(dims)}; {', '.join(multiples)}. Angles are in radians.",
        "Inputs:",
        *(_tensor_line(contract, t) for t in contract.inputs),
    ]
    if contract.params:
        lines += ["Options:", *(_param_line(contract, param) for param in contract.params)]
    lines += ["Outputs, of which `wanted` names some:", *(_tensor_line(contract, t) for t in contract.outputs)]
    lines.append("What holds for every operator, and what is raised: see ropegrad.numpy.")
    text: list[str] = []
    for line in lines:
        # A paragraph begins wherever the indentation ends.
        text += [*([] if line.startswith(" ") or not text else [""]), *_wrapped(line, "  ")]
    formula = textwrap.wrap(spec["formula"], _WIDTH - 4, break_long_words=False)
    text[1:1] = ["", *(f"    {line}" for line in formula)]
    return "\n".join([*text, "", "Example:", *_example(contract)])
