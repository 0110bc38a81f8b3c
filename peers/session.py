"""A run: makes contenders for each case, checks them, times them, prints the tables."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from itertools import groupby
from typing import Any

import torch

from peers import compile_cache, gpu, machine, table
from peers.cases import BadInput, Case, Lacking, find_suite
from peers.check import Verdict, check
from peers.contenders import (
    COMPILED,
    COMPILES,
    CUDA_ONLY,
    PUBLIC,
    PUBLIC_NAMES,
    Contender,
    Form,
    compiled,
    eager,
    forms,
    ropegrad,
)
from peers.digest import file_digest
from peers.inputs import Arguments
from peers.record import ROPEGRAD, CaseResult, PeerResult, record_json
from peers.ropegrad_ctypes import CPU, CUDA, Context, DLDevice, Library
from peers.timing import CpuTimer, CudaTimer, Protocol, TimingError

BUSY_LOAD = 0.5  # runnable processes per CPU before this one began, beyond which times are not to be trusted
PEERS = ["eager", COMPILED, *PUBLIC_NAMES]


class Session:
    def __init__(self, options: argparse.Namespace, argv: list[str]) -> None:
        self.options = options
        for name in options.peer:
            if name not in PEERS:
                raise BadInput(f"--peer: no peer '{name}'; there are {', '.join(PEERS)}")
        self.wanted = options.peer or PEERS
        self.library = Library(options.library)
        self.device = self._choose_device(options.device)
        self.on_cuda = self.device.type == "cuda"
        self.allowed = sorted(os.sched_getaffinity(0))
        self.thread_counts = self._choose_threads(options.threads)
        self.environment = machine.environment(options.library, self.library.version(), argv, self.thread_counts[0])
        cache_bytes = (
            torch.cuda.get_device_properties(self.device).L2_cache_size
            if self.on_cuda
            else machine.last_level_cache_bytes()
        )
        self.protocol = Protocol(
            options.repetitions, options.warmups, options.calls, options.budget, 2 * cache_bytes, options.seed,
            not options.launch_gaps,
        )  # fmt: skip
        self.software()  # should it fail, then not after everything was measured
        self.begin = time.monotonic()
        self.suite = ""
        self.suite_digest = file_digest(find_suite(options.suite))
        self.results: list[CaseResult] = []
        self._dynamic: dict[tuple[object, ...], Callable[..., Any]] = {}

    # ---- what there is ----

    def _choose_device(self, text: str | None) -> torch.device:
        usable = torch.cuda.is_available() and not self.library.why_unusable(DLDevice(CUDA, 0))
        text = text or ("cuda" if usable else "cpu")
        if text != "cpu" and text != "cuda" and not (text.startswith("cuda:") and text[5:].isdigit()):
            raise BadInput(f"--device takes cpu, cuda or cuda:N, not '{text}'")
        if text == "cpu":
            return torch.device("cpu")
        index = int(text.partition(":")[2] or 0)
        if not torch.cuda.is_available() or index >= torch.cuda.device_count():
            raise Lacking(f"--device {text}: PyTorch sees no such device")
        why = self.library.why_unusable(DLDevice(CUDA, index))
        if why:
            raise Lacking(f"--device {text}: {why}")
        torch.cuda.set_device(index)
        return torch.device("cuda", index)

    def _choose_threads(self, counts: list[int] | None) -> list[int]:
        if self.on_cuda:
            if counts:
                raise BadInput("--threads is for --device cpu")
            return [len(self.allowed)]
        counts = counts or [len(self.allowed)]
        if max(counts) > len(self.allowed):
            raise Lacking(f"--threads {max(counts)}: this process may use {len(self.allowed)} CPUs")
        return counts

    def _variant(self, dl_device: DLDevice) -> str:
        """The name of what the library chooses: the last of these that runs here."""
        if self.options.variant:
            return str(self.options.variant)
        names = (
            ("cuda.sm90.dense", "cuda.generic")
            if self.on_cuda
            else ("cpu.neon", "cpu.avx512", "cpu.avx2", "cpu.scalar")
        )
        return next((n for n in names if self.library.runs(dl_device, n)), "cuda" if self.on_cuda else "cpu")

    def software(self) -> dict[str, Any]:
        """Beside the environment that the schema names."""
        found: dict[str, Any] = {
            "python": platform.python_version(),
            "torch": torch.__version__,
            "torch_cuda": torch.version.cuda,
            "peers": self.wanted,
            "thread_counts": self.thread_counts,
        }
        for name in ("numpy", "triton", *PUBLIC_NAMES):
            try:
                found[name] = metadata.version(name.replace("_", "-"))
            except metadata.PackageNotFoundError:
                found[name] = None
        found["gpu"] = gpu.facts(self.device, self.options.library) if self.on_cuda else None
        return found

    # ---- contenders ----

    def _forms(self, case: Case) -> list[Form]:
        return forms(case, self.on_cuda) if COMPILED in self.wanted else []

    def _make(self, case: Case, context: Context) -> tuple[list[Contender], list[PeerResult]]:
        """ropegrad first; and the peers that cannot take part, with the reason."""
        made, absent = [ropegrad(case, context)], []
        if "eager" in self.wanted:
            made.append(eager(case))
        made += [compiled(case, form, self._dynamic) for form in self._forms(case)]
        for name, maker in PUBLIC.get(case.op.name, {}).items():
            if name not in self.wanted or (name in CUDA_ONLY and not self.on_cuda):
                continue
            try:
                made.append(maker(case))
            except Exception as error:  # noqa: BLE001  whatever another project's import raises
                if name in self.options.peer or not isinstance(error, ModuleNotFoundError):
                    nobody = Contender(name, (), lambda _: lambda: None, lambda _r, _t: {})
                    absent.append(PeerResult(nobody, Verdict("skip", str(error).splitlines()[0])))
        everything = case.op.output_names
        subsets = {c.outputs for c in made if c.outputs != everything}
        made += [ropegrad(case, context, outputs) for outputs in sorted(subsets)]
        return made, absent

    def _compile_ahead(self, cases: list[Case]) -> None:
        jobs: dict[tuple[object, ...], compile_cache.Job] = {}
        for threads in self.thread_counts:
            for case in cases:
                for form in self._forms(case):
                    # Of a dynamic function one compilation is enough, but sizes of 1 have code of their own.
                    ones = tuple(name for name, size in case.dims.items() if size == 1)
                    key: tuple[object, ...] = (form, case.op.name, case.in_place, case.name, threads)
                    if form.dynamic:
                        key = (form, case.op.name, case.in_place, ones, *case.dtypes.values(), threads)
                    jobs.setdefault(key, compile_cache.Job(case, form, str(self.device), threads))
        for case in cases if self.on_cuda else []:
            for name in sorted(COMPILES & set(self.wanted) & set(PUBLIC.get(case.op.name, {}))):
                if find_spec(name):
                    jobs[(name, case.name)] = compile_cache.Job(case, name, str(self.device), 1)
        begin = time.monotonic()
        helpers = self.options.compile_jobs
        compile_cache.compile_all(list(jobs.values()), helpers, lambda n, of: self._tell(f"compiled {n} of {of}"))
        self._tell(f"compiled ahead: {len(jobs)} functions, {time.monotonic() - begin:.0f} s", last=True)

    # ---- a case ----

    def _results_of(self, contender: Contender, arguments: Arguments) -> dict[str, torch.Tensor]:
        tensors = arguments.move()
        for name in arguments.case.op.output_names:  # what a contender leaves unwritten must not pass
            if name not in arguments.replaced and tensors[name].is_floating_point():
                tensors[name].fill_(float("nan"))
        result = contender.prepare(tensors)()
        return {name: value.detach().clone() for name, value in contender.collect(result, tensors).items()}

    def _first_results(
        self, case: Case, contenders: list[Contender], arguments: Arguments, context: Context
    ) -> tuple[dict[str, torch.Tensor], dict[str, dict[str, torch.Tensor]], dict[str, Verdict]]:
        """The inputs, every contender's outputs, and the verdicts on those that could not run."""
        # All must read the same values here: the same places, and in place the caches as they were.
        shift = {name: memory.shifts[:1] or [0] for name, memory in arguments.memory.items()}
        start = {name: memory.at(shift[name][0]) for name, memory in arguments.memory.items()}
        for output, source in arguments.replaced.items():
            start[output] = start[source]
        arguments.restore(start)
        inputs = {t.name: start[t.name].clone() for t in case.op.inputs}
        fixed = _Fixed(arguments, start, inputs)
        verdicts: dict[str, Verdict] = {}
        results: dict[str, dict[str, torch.Tensor]] = {}
        for contender in contenders:
            try:
                results[contender.name] = self._results_of(contender, fixed)
                if self.on_cuda:
                    torch.cuda.synchronize()
                    context.check()
            except Exception as error:  # noqa: BLE001  a contender that cannot run is reported, not fatal
                results.pop(contender.name, None)
                verdicts[contender.name] = Verdict("skip", f"{type(error).__name__}: {str(error).splitlines()[0]}")
        return inputs, results, verdicts

    @contextmanager
    def _all_cpus(self, threads: int) -> Iterator[None]:
        """For what is not timed."""
        if self.on_cuda:
            yield
            return
        os.sched_setaffinity(0, self.allowed)
        torch.set_num_threads(len(self.allowed))
        try:
            yield
        finally:
            torch.set_num_threads(threads)
            os.sched_setaffinity(0, machine.cpus_for(threads, self.allowed))

    def _run_case(
        self, case: Case, context: Context, variant: str, threads: int, timer: CpuTimer | CudaTimer
    ) -> CaseResult:
        result = CaseResult(case, str(self.device), variant, threads, reason=case.unsupported)
        if self.options.deadline and time.monotonic() - self.begin > self.options.deadline:
            result.reason = "not begun before --deadline"
        if result.reason:
            return result
        contenders, absent = self._make(case, context)
        try:
            with self._all_cpus(threads):
                arguments = Arguments(case, self.device, self.options.seed)
            inputs, results, verdicts = self._first_results(case, contenders, arguments, context)
            with self._all_cpus(threads):
                verdicts |= check(case, inputs, results)
            del inputs, results
        except RuntimeError as error:
            if "out of memory" not in str(error) and "can't allocate memory" not in str(error):
                raise
            result.reason = "no memory for its tensors"
            return result
        able = [c for c in contenders if verdicts[c.name].status == "pass"]
        if able:
            try:
                result.timing = timer.measure(able, arguments)
            except TimingError as error:
                result.reason = f"not timed: {error}"
        series = result.timing.series if result.timing else {}
        rivals = {c.outputs: series[c.name].us for c in able if c.name in series and c.name.startswith(ROPEGRAD)}
        entries = [PeerResult(c, verdicts[c.name], series.get(c.name), rivals.get(c.outputs)) for c in contenders]
        result.own = entries[0]
        result.peers = [e for e in entries if not e.contender.name.startswith(ROPEGRAD)] + absent
        return result

    # ---- all of them ----

    def _tell(self, text: str, last: bool = False) -> None:
        if sys.stderr.isatty():
            print(f"\r\033[K{text}", end="\n" if last else "", file=sys.stderr, flush=True)
        elif last:
            print(text, file=sys.stderr, flush=True)

    def run(self, suite: str, cases: list[Case]) -> bool:
        """Whether ropegrad was wrong, could not run, or was slower than a peer anywhere."""
        self.suite = suite
        self._print_head(suite, cases)
        self._compile_ahead([c for c in cases if not c.unsupported])
        with torch.no_grad():
            for threads in self.thread_counts:
                self._run_all(cases, threads)
        losses = table.print_losses(self.results)
        table.print_inexact(self.results)
        wrong = sum(1 for r in self.results if r.own and r.own.verdict.status != "pass")
        return losses > 0 or wrong > 0

    def _run_all(self, cases: list[Case], threads: int) -> None:
        dl_device = DLDevice(CUDA, self.device.index) if self.on_cuda else DLDevice(CPU, 0)
        compile_cache.configure(threads)
        torch._dynamo.reset()
        self._dynamic.clear()
        timer: CpuTimer | CudaTimer
        if self.on_cuda:
            timer = CudaTimer(self.protocol, self.device)
        else:
            cpus = machine.cpus_for(threads, self.allowed)
            machine.pin(cpus)
            timer = CpuTimer(self.protocol, cpus, self.allowed)
        context = Context(self.library, dl_device, 0 if self.on_cuda else threads, self.options.variant)
        if self.on_cuda:
            context.set_stream(torch.cuda.current_stream().cuda_stream)
        variant = self._variant(dl_device)
        for _, group in groupby(cases, key=lambda c: (c.op.name, c.in_place)):
            found: list[CaseResult] = []
            try:
                for case in group:
                    begin = time.monotonic()
                    found.append(self._run_case(case, context, variant, threads, timer))
                    self.results.append(found[-1])
                    self._tell(f"{case.title}: {time.monotonic() - begin:.1f} s", last=True)
            finally:
                if found:
                    table.print_group(found)
                sys.stdout.flush()
        context.close()
        machine.pin(self.allowed)

    def _print_head(self, suite: str, cases: list[Case]) -> None:
        p = self.protocol
        where = torch.cuda.get_device_name(self.device) if self.on_cuda else self.environment["cpu_model"]
        print(f"suite {suite}: {len(cases)} cases on {self.device} ({where}); PyTorch {torch.__version__}")
        budget = f" at most, {p.budget_s:g} s a case" if p.budget_s > 0 else ""
        print(f"{p.flush_bytes >> 20} MiB overwritten before every call; "
              f"{p.repetitions} x ({p.warmups} + {p.calls}) calls{budget}")  # fmt: skip
        load, cpus = self.environment["load_at_start"], self.environment["cpus_online"]
        if load > BUSY_LOAD * cpus:
            print(f"note: the load of the last minute is {load:.1f} on {cpus} CPUs; what else runs disturbs the times")
        if self.options.json and not self.environment["commit"]:
            print("note: the record will name no commit: the library's build left no ropegrad_build_info.h beside it")
        if self.on_cuda:
            ahead = "the kernels of a call are queued before the first one starts"
            print(ahead if p.launches_ahead else "within a call, the time that the GPU waits for the host counts")
        sys.stdout.flush()

    def record(self) -> dict[str, Any]:
        return record_json(
            self.suite, self.suite_digest, self.environment, self.software(), self.protocol, self.on_cuda, self.results
        )


class _Fixed(Arguments):
    """The tensors of other arguments, which do not move; what an in-place call overwrote is put back."""

    def __init__(self, other: Arguments, start: dict[str, torch.Tensor], inputs: dict[str, torch.Tensor]) -> None:
        self.case, self.replaced = other.case, other.replaced
        self._start, self._inputs = start, inputs

    def move(self) -> dict[str, torch.Tensor]:
        for source in self.replaced.values():
            self._start[source].copy_(self._inputs[source])
        return dict(self._start)
