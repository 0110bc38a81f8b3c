"""Reads a suite, a JSON file that lists cases. Needs neither torch nor numpy."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from difflib import get_close_matches
from math import prod
from pathlib import Path

from peers.operators import DTYPE_BYTES, OPERATORS, PAYLOAD_DTYPES, Operator

SUITES = Path(__file__).resolve().parent.parent / "suites"


class BadInput(Exception):
    """A file or an option that cannot be used; the text is one line that says where and why."""


class Lacking(Exception):
    """This machine or build lacks what was asked."""


@dataclass(frozen=True)
class Case:
    op: Operator
    name: str
    dims: dict[str, int]
    options: dict[str, object]
    dtypes: dict[str, str]
    unsupported: str = ""  # why it is not compared here; "": it is

    @property
    def in_place(self) -> bool:
        return bool(self.options.get("in_place", False))

    @property
    def title(self) -> str:
        return f"{self.op.name} {self.name}" + (" in place" if self.in_place else "")

    def shape(self, tensor: str) -> tuple[int, ...]:
        return next(t for t in self.op.tensors if t.name == tensor).shape(self.dims)

    def bytes(self) -> int:
        """Of all tensors together, each in-place pair once."""
        owned = [t for t in self.op.tensors if not (self.in_place and t.name in self.op.replaced)]
        return sum(prod(t.shape(self.dims)) * DTYPE_BYTES[self.dtypes[t.name]] for t in owned)

    def made_in_place(self) -> Case:
        return replace(self, options={**self.options, "in_place": True})


def find_suite(name: str) -> Path:
    """NAME of suites/, or a file."""
    path = Path(name)
    if path.suffix == ".json" or path.exists():
        return path
    return SUITES / f"{name}.json"


def load_suite(name: str) -> tuple[str, list[Case]]:
    """The suite's name and its cases, unsupported ones among them."""
    path = find_suite(name)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        known = ", ".join(sorted(p.stem for p in SUITES.glob("*.json")))
        raise BadInput(f"suite '{name}': {error.strerror} ({path.name}); suites/ has {known}") from error
    except ValueError as error:
        raise BadInput(f"{path.name}: no JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("cases"), list):
        raise BadInput(f"{path.name}: expected an object with a list 'cases'")
    title = document.get("suite", path.stem)
    return str(title), [_read_case(item, f"{path.name}: case {i}") for i, item in enumerate(document["cases"])]


def _read_case(item: object, place: str) -> Case:
    if not isinstance(item, dict):
        raise BadInput(f"{place}: expected an object")
    name = item.get("op")
    if name not in OPERATORS:
        raise BadInput(f"{place}: op: no operator '{name}'{_nearest(str(name), OPERATORS)}")
    op = OPERATORS[name]
    dims = item.get("dims")
    if not isinstance(dims, dict):
        raise BadInput(f"{place}: dims: expected an object")
    for dim, size in dims.items():
        if dim not in op.dims:
            raise BadInput(f"{place}: dims.{dim}: not a dim of {op.name}{_nearest(dim, op.dims)}")
        if not isinstance(size, int) or isinstance(size, bool) or size < 0:
            raise BadInput(f"{place}: dims.{dim}: expected a size, got {size!r}")
    needed = {axis.partition("/")[0] for t in op.tensors for axis in t.axes}
    for dim in sorted(d for d in needed if not d.isdigit()):
        if dim not in dims:
            raise BadInput(f"{place}: dims.{dim}: missing")
    options, why_not = _read_options(op, item.get("params", {}))
    dtypes = _read_dtypes(op, item.get("dtypes", {}), place)
    for key in ("layouts", "inputs", "unwanted", "shared"):
        if item.get(key):
            why_not = why_not or f"'{key}' is not compared here: dense tensors and all outputs only"
    if any(prod(t.shape(dims)) == 0 for t in op.tensors):
        why_not = why_not or "an empty tensor"
    return Case(op, str(item.get("name", "")), dims, options, dtypes, why_not)


def _read_options(op: Operator, params: dict[str, object]) -> tuple[dict[str, object], str]:
    """The options that the plain implementations know; the second value says which one they do not."""
    options, why_not = dict(op.options), ""
    usual = {"style": "rotate_half", "rotary_dim": 0, "rounding": "once", "cache_position": "arange"}
    for key, value in params.items():
        if key in options:
            options[key] = value
        elif usual.get(key) != value:
            why_not = f"{key} = {value} is not compared here"
    return options, why_not


def _read_dtypes(op: Operator, given: dict[str, str], place: str) -> dict[str, str]:
    """A dtype given for one tensor holds for its whole group."""
    groups = {t.group: t.dtype for t in op.tensors}
    named = {t.name: t for t in op.tensors}
    for name, dtype in given.items():
        if name not in named:
            raise BadInput(f"{place}: dtypes.{name}: not a tensor of {op.name}{_nearest(name, named)}")
        if dtype not in PAYLOAD_DTYPES and dtype not in ("int64", "int32"):
            raise BadInput(f"{place}: dtypes.{name}: no dtype '{dtype}'")
        groups[named[name].group] = dtype
    return {t.name: groups[t.group] for t in op.tensors}


def _nearest(name: str, known: object) -> str:
    found = get_close_matches(name, list(known), 1)  # type: ignore[call-overload]
    return f"; did you mean '{found[0]}'?" if found else ""


def select(cases: list[Case], ops: list[str], names: list[str], in_place: str, max_bytes: int | None) -> list[Case]:
    """The cases asked for. in_place: "no", "only", or "both" (each case that can work in place then comes twice)."""
    for op in ops:
        if op not in OPERATORS:
            raise BadInput(f"--op: no operator '{op}'{_nearest(op, OPERATORS)}")
    for name in names:
        if not any(case.name == name for case in cases):
            raise BadInput(f"--case: the suite has no case '{name}'{_nearest(name, [c.name for c in cases])}")
    chosen: list[Case] = []
    for case in cases:
        if (ops and case.op.name not in ops) or (names and case.name not in names):
            continue
        if max_bytes is not None and case.bytes() > max_bytes:
            continue
        if in_place != "only" or case.in_place:
            chosen.append(case)
        if in_place != "no" and case.op.replaced and not case.in_place:
            chosen.append(case.made_in_place())
    if not chosen:
        raise BadInput("no case of the suite is left by --op, --case, --in-place and --max-bytes")
    return sorted(chosen, key=lambda c: (list(OPERATORS).index(c.op.name), c.in_place))
