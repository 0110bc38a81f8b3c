"""Times a training step of RoPE through PyTorch, forward and backward together, as a user calls it: ropegrad.torch
beside torch.compile of the plain implementation and beside eager PyTorch.

    PYTHONPATH=build/python/path python3 python/benchmarks/torch_step.py --json step.json

Cases, memory, protocol and timers are those of peers/ (see peers/README.md): one process, contenders in turn, caches
overwritten before every step, on CUDA the launches queued ahead. Before it is timed, each contender's results are held
against the plain implementation in float64. Of torch.compile the faster form counts: compiled for one shape or for
any.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ropegrad.torch import apply_rotary_pos_emb, host_cost

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from peers import machine  # noqa: E402
from peers.cases import Case, load_suite  # noqa: E402
from peers.check import OutputError, Verdict, judge  # noqa: E402
from peers.compile_cache import configure, private_cache  # noqa: E402
from peers.contenders import Contender  # noqa: E402
from peers.inputs import Arguments  # noqa: E402
from peers.record import geomean, series_json, verify_json  # noqa: E402
from peers.timing import CpuTimer, CudaTimer, Protocol, Series  # noqa: E402

INPUTS = ("q", "k", "cos", "sin")
Rotate = Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]
COMPILED = {"torch.compile": False, "torch.compile dynamic": True}
FORMS = {"static": "torch.compile", "dynamic": "torch.compile dynamic"}
GRADIENTS = {"all": ("q", "k", "cos", "sin"), "qk": ("q", "k")}
BAR = 2.0  # on an H200, geometric mean over the suite, all gradients


def outputs(needed: tuple[str, ...]) -> tuple[str, ...]:
    return ("q_embed", "k_embed", *(f"grad_{name}" for name in needed))


def contender(name: str, function: Rotate, needed: tuple[str, ...], column: str) -> Contender:
    def prepare(t: dict[str, Tensor]) -> Callable[[], Any]:
        tensors = [t[n].detach().requires_grad_(n in needed) for n in INPUTS]
        leaves = [x for n, x in zip(INPUTS, tensors, strict=True) if n in needed]
        grads = (t["grad_q_embed"], t["grad_k_embed"])

        def step() -> tuple[Tensor, ...]:
            with torch.enable_grad():
                made = function(*tensors)
            return (*made, *torch.autograd.grad(made, leaves, grads))

        return step

    names = outputs(needed)
    return Contender(name, names, prepare, lambda result, _: dict(zip(names, result, strict=True)), column)


def contenders(needed: tuple[str, ...], kept: dict[str, Rotate], forms: list[str]) -> list[Contender]:
    """`kept`: the compiled functions, of which one object serves every case. forms: names of COMPILED."""
    made = [contender("ropegrad", apply_rotary_pos_emb, needed, "ropegrad")]
    for name in forms:
        if name not in kept:
            kept[name] = torch.compile(host_cost.plain, fullgraph=True, dynamic=COMPILED[name])
        made.append(contender(name, kept[name], needed, "torch.compile"))
    return [*made, contender("eager", host_cost.plain, needed, "eager")]


def check(case: Case, tensors: dict[str, Tensor], step: Contender, needed: tuple[str, ...]) -> Verdict:
    got = step.collect(step.prepare(tensors)(), tensors)
    errors = {name: OutputError() for name in step.outputs}
    for b in range(case.dims["batch_size"]):  # in float64 a batch at a time
        part = {name: t[b : b + 1].double() for name, t in tensors.items()}
        exact = contender("float64", host_cost.plain, needed, "")
        expected = exact.collect(exact.prepare(part)(), part)
        for name, error in errors.items():
            error.add(got[name][b : b + 1].detach(), expected[name].detach(), b)
    return judge(case, errors)


def run_case(
    case: Case, needed: tuple[str, ...], device: torch.device, timer: CpuTimer | CudaTimer, seed: int,
    kept: dict[str, Rotate], forms: list[str],
) -> dict[str, Any]:  # fmt: skip
    arguments = Arguments(case, device, seed)
    made = contenders(needed, kept, forms)
    tensors = arguments.move()
    verdicts = {c.name: check(case, tensors, c, needed) for c in made}
    able = [c for c in made if verdicts[c.name].status == "pass"]
    timing = timer.measure(able, arguments)
    rows = []
    for c in made:
        series: Series | None = timing.series.get(c.name)
        rows.append(
            {"name": c.name, "column": c.column, **series_json(series), "verify": verify_json(verdicts[c.name])}
        )
    fastest = {}
    for row in rows:
        if row["latency_us"] is not None:
            fastest[row["column"]] = min(row["latency_us"], fastest.get(row["column"], float("inf")))
    return {
        "name": case.name, "dims": case.dims, "gradients": list(needed), "us": fastest, "contenders": rows,
        "warmup_calls": timing.warmups, "timed_calls": timing.calls,
    }  # fmt: skip


def show(cases: list[dict[str, Any]], needed: tuple[str, ...]) -> float | None:
    """The table of one set of gradients. Returns how many times as long as ropegrad torch.compile takes."""
    columns = ("torch.compile", "eager")
    print(f"\nforward and backward, gradients of {', '.join(needed)}; microseconds")
    print(f"{'case':24}{'ropegrad':>10}" + "".join(f"{c:>15}{'ratio':>7}" for c in columns))
    ratios: dict[str, list[float]] = {c: [] for c in columns}
    for case in cases:
        own = case["us"].get("ropegrad")
        line = f"{case['name']:24}" + (f"{own:10.2f}" if own else f"{'wrong':>10}")
        for c in columns:
            us = case["us"].get(c)
            if us and own:
                ratios[c].append(us / own)
            line += f"{us:15.2f}{us / own:7.2f}" if us and own else f"{'-':>15}{'-':>7}"
        print(line)
    means = {c: geomean(r) if r else None for c, r in ratios.items()}
    own = geomean([c["us"]["ropegrad"] for c in cases if "ropegrad" in c["us"]])
    line = f"{'geometric mean':24}" + (f"{own:10.2f}" if own else f"{'-':>10}")
    print(line + "".join(f"{'':15}{means[c]:7.2f}" if means[c] else f"{'':15}{'-':>7}" for c in columns))
    return means["torch.compile"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--suite", default="sol-execbench-rope")
    parser.add_argument("--case", action="append", help="only this one (repeatable)")
    parser.add_argument(
        "--form", action="append", choices=FORMS, help="of torch.compile, whose compiling takes most time"
    )
    parser.add_argument("--gradients", action="append", choices=GRADIENTS, help="of these; default: both sets")
    parser.add_argument("--max-bytes", type=int, help="leave out cases whose tensors take more")
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--warmups", type=int, default=10)
    parser.add_argument("--calls", type=int, default=50)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each case and set of gradients; 0: none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=Path, default=ROOT / "build", help="where the build's facts are")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()

    device = torch.device(options.device)
    on_cuda = device.type == "cuda"
    name, cases = load_suite(options.suite)
    cases = [c for c in cases if c.op.name == "rope_apply" and (not options.case or c.name in options.case)]
    cases = [c for c in cases if options.max_bytes is None or c.bytes() <= options.max_bytes]
    cpus = sorted(os.sched_getaffinity(0))
    cache = torch.cuda.get_device_properties(device).L2_cache_size if on_cuda else machine.last_level_cache_bytes()
    protocol = Protocol(
        options.repetitions, options.warmups, options.calls, options.budget, 2 * cache, options.seed
    )  # fmt: skip
    environment = machine.environment(options.build / "libropegrad.so", _version(), sys.argv, len(cpus))
    environment["torch"] = torch.__version__
    environment["gpu"] = torch.cuda.get_device_name(device) if on_cuda else None

    found: list[dict[str, Any]] = []
    groups = [GRADIENTS[g] for g in options.gradients or GRADIENTS]
    forms = [FORMS[f] for f in options.form or FORMS]
    configure(len(cpus))
    with private_cache():
        timer = CudaTimer(protocol, device) if on_cuda else CpuTimer(protocol, cpus, cpus)
        for needed in groups:
            kept: dict[str, Rotate] = {}
            for case in cases:
                found.append(run_case(case, needed, device, timer, options.seed, kept, forms))
                print(f"{case.name}: {found[-1]['us']}", file=sys.stderr, flush=True)
    host_rows = host_cost.measure(device)

    print(f"suite {name}: {len(cases)} cases on {environment['gpu'] or environment['cpu_model']}; "
          f"PyTorch {torch.__version__}; {protocol.flush_bytes >> 20} MiB overwritten before every step")  # fmt: skip
    means = {needed: show([c for c in found if c["gradients"] == list(needed)], needed) for needed in groups}
    print()
    host_cost.show(host_rows, device)
    if options.json:
        record = {
            "schema": "ropegrad-torch-step-1", "suite": name, "environment": environment,
            "protocol": {"method": "cupti" if on_cuda else "monotonic_clock", **vars(protocol)},
            "cases": found, "host_cost": host_rows,
            "summary": [{"gradients": list(n), "torch_compile_over_ropegrad": m} for n, m in means.items()],
        }  # fmt: skip
        options.json.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    wrong = [c["name"] for c in found if "ropegrad" not in c["us"]]
    for needed, mean in means.items():
        if mean:
            print(f"torch.compile takes {mean:.2f} times as long as ropegrad: gradients of {', '.join(needed)}, "
                  f"geometric mean (bar on an H200: {BAR:g})")  # fmt: skip
    return 1 if wrong else 0


def _version() -> str:
    import ropegrad

    return ropegrad.__version__


if __name__ == "__main__":
    sys.exit(main())
