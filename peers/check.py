"""Holds every contender's outputs against the plain implementation in float64, on the same inputs, before it is timed.

ropegrad's own contract is narrower and is checked by `ropegrad verify`. Here the question is only whether a contender
computes the right thing: the tolerances leave room for products rounded to 16 bits, and what was seen is reported.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from math import prod

import torch
from torch import Tensor

from peers.cases import Case
from peers.reference import PLAIN

# Of an output: the 2-norm of the error over that of the reference, and the largest error over the root mean square of
# the reference. By the narrowest float dtype among the case's tensors.
TOLERANCES = {
    "float64": (1e-12, 1e-10),
    "float32": (1e-5, 1e-4),
    "float16": (4e-3, 5e-2),
    "bfloat16": (3e-2, 4e-1),
}
SLICE_BYTES = 1 << 28  # of the inputs in float64 at a time


@dataclass
class OutputError:
    """Sums over the slices of one output."""

    squares: float = 0.0  # of the errors
    reference_squares: float = 0.0
    elements: int = 0
    largest: float = 0.0
    index: tuple[int, ...] = ()
    got: float = 0.0
    expected: float = 0.0
    finite: bool = True

    def add(self, got: Tensor, expected: Tensor, batch: int) -> None:
        values = got.double()
        error = (values - expected).abs()
        self.finite = self.finite and bool(torch.isfinite(error).all())
        self.squares += float(error.square().sum())
        self.reference_squares += float(expected.square().sum())
        self.elements += error.numel()
        place = int(error.argmax())
        if not self.index or float(error.flatten()[place]) > self.largest:
            self.largest = float(error.flatten()[place])
            index = [int(i) for i in torch.unravel_index(torch.tensor(place), error.shape)]
            index[0] += batch
            self.index = tuple(index)
            self.got, self.expected = float(values.flatten()[place]), float(expected.flatten()[place])

    @property
    def norm(self) -> float:
        return math.sqrt(self.squares / self.reference_squares if self.reference_squares else self.squares)

    @property
    def peak(self) -> float:
        rms = math.sqrt(self.reference_squares / max(1, self.elements))
        return self.largest / rms if rms else self.largest


@dataclass
class Verdict:
    status: str = "skip"  # "pass", "fail", "skip"
    reason: str = ""
    errors: dict[str, OutputError] = field(default_factory=dict)
    share: float | None = None  # of the tolerance, of the worst output
    worst: str = ""  # that output


def float64(tensor: Tensor) -> Tensor:
    return tensor.double() if tensor.is_floating_point() else tensor


def check(case: Case, inputs: dict[str, Tensor], results: dict[str, dict[str, Tensor]]) -> dict[str, Verdict]:
    """`results`: contender -> output -> value. The inputs are as they were before any call."""
    errors = {name: {output: OutputError() for output in found} for name, found in results.items()}
    batches = next(iter(inputs.values())).shape[0] if case.op.batched else 1
    widest = 8 * sum(prod(t.shape) for t in inputs.values())
    step = max(1, int(batches * SLICE_BYTES // max(1, widest))) if case.op.batched else 1
    options = {k: v for k, v in case.options.items() if k != "in_place"}
    if case.op.replaced:
        options["in_place"] = False
    for begin in range(0, batches, step):
        part = slice(begin, begin + step) if case.op.batched else slice(None)
        arguments = [
            float64(inputs[t.name][part] if t.axes[0] == "batch_size" or not case.op.batched else inputs[t.name])
            for t in case.op.inputs
        ]
        expected = dict(zip(case.op.output_names, PLAIN[case.op.name](*arguments, **options), strict=True))
        for name, found in results.items():
            for output, value in found.items():
                errors[name][output].add(value[part], expected[output], begin)
    return {name: judge(case, found) for name, found in errors.items()}


def judge(case: Case, errors: dict[str, OutputError]) -> Verdict:
    dtype = max((d for d in case.dtypes.values() if d in TOLERANCES), key=lambda d: TOLERANCES[d][0])
    norm_limit, peak_limit = TOLERANCES[dtype]
    exact = {t.name for t in case.op.outputs if t.exact}
    verdict = Verdict("pass", "", errors, 0.0, next(iter(errors)))
    for output, error in errors.items():
        if output in exact:
            share = 0.0 if error.largest == 0 else float("inf")
        else:
            share = max(error.norm / norm_limit, error.peak / peak_limit)
        if not error.finite:
            share = float("inf")
        assert verdict.share is not None
        if share > verdict.share:
            verdict.share, verdict.worst = share, output
    if verdict.share is not None and verdict.share > 1:
        error = errors[verdict.worst]
        index = ", ".join(str(i) for i in error.index)
        verdict.status = "fail"
        verdict.reason = f"{verdict.worst}[{index}] is {error.got:.6g}, expected {error.expected:.6g}"
    return verdict
