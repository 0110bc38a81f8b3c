"""How long a call takes: one protocol for every contender of a case.

CPU: the monotonic clock before and after the call, caches flushed before.
CUDA: from the start of the call's first activity on the GPU to the end of its last, as CUPTI reports them through
torch.profiler; the second-level cache overwritten before. Contenders take turns, so that drift hits all alike.
"""

from __future__ import annotations

import gc
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import mean, median
from typing import Any

import torch

from peers.contenders import Contender, TimedCall
from peers.inputs import Arguments

MIN_WARMUPS, MIN_CALLS = 1, 5  # what a budget leaves of a repetition


@dataclass(frozen=True)
class Protocol:
    repetitions: int = 3
    warmups: int = 10
    calls: int = 50
    budget_s: float = 2.0  # of a case; 0: no limit
    flush_bytes: int = 0
    seed: int = 1
    launches_ahead: bool = True  # CUDA: see CudaTimer


@dataclass
class Series:
    """Of one contender on one case, in microseconds."""

    samples: list[list[float]] = field(default_factory=list)  # by repetition
    activities: list[int] = field(default_factory=list)  # CUDA: kernels and copies of each call
    idle: list[float] = field(default_factory=list)  # CUDA: of each call's span, the time without any activity

    @property
    def medians(self) -> list[float]:
        return [median(s) for s in self.samples]

    @property
    def us(self) -> float:
        return mean(self.medians)

    @property
    def spread(self) -> float:
        return (max(self.medians) - min(self.medians)) / self.us


@dataclass
class Timing:
    warmups: int
    calls: int
    series: dict[str, Series]


def calls_within(budget_s: float, round_s: float, protocol: Protocol) -> tuple[int, int]:
    """Warm-ups and timed calls of a repetition, from what one round of all contenders takes."""
    if budget_s <= 0:
        return protocol.warmups, protocol.calls
    rounds = int(budget_s / max(round_s, 1e-9) / protocol.repetitions)
    warmups = min(protocol.warmups, max(MIN_WARMUPS, rounds // 6))
    return warmups, min(protocol.calls, max(min(MIN_CALLS, protocol.calls), rounds - warmups))


def in_turn(contenders: list[Contender], turn: int) -> list[Contender]:
    first = turn % len(contenders)
    return contenders[first:] + contenders[:first]


class CpuTimer:
    """Of calls on some CPUs of those that the process may use."""

    TOUCH_ELEMENTS = 1 << 16  # a thread; PyTorch wakes one for half as many

    def __init__(self, protocol: Protocol, cpus: Sequence[int], allowed: Sequence[int]) -> None:
        self.protocol = protocol
        self.cpus, self.allowed = list(cpus), list(allowed)
        self.memory = torch.ones(protocol.flush_bytes // 4, dtype=torch.int32)

    def flush(self) -> None:
        """Reads and writes more than the caches hold, which leaves them full of other data; on all CPUs, as two would
        take longer for it than for most calls. Then the call's own threads, one OpenMP team for every contender, are
        woken."""
        os.sched_setaffinity(0, self.allowed)
        torch.set_num_threads(len(self.allowed))
        self.memory.add_(1)
        torch.set_num_threads(len(self.cpus))
        os.sched_setaffinity(0, self.cpus)
        self.memory[: self.TOUCH_ELEMENTS * len(self.cpus)].add_(1)

    def once(self, contender: Contender, arguments: Arguments) -> float:
        call = contender.prepare(arguments.move())
        self.flush()
        begin = time.perf_counter_ns()
        result = call()
        end = time.perf_counter_ns()
        del result  # untimed, as freeing is not a part of anybody's call
        return (end - begin) * 1e-3

    def measure(self, contenders: list[Contender], arguments: Arguments) -> Timing:
        for _ in range(2):  # the first round may still compile something
            begin = time.perf_counter()
            for contender in contenders:
                self.once(contender, arguments)
        warmups, calls = calls_within(self.protocol.budget_s, time.perf_counter() - begin, self.protocol)
        series = {c.name: Series() for c in contenders}
        gc.collect()
        gc.disable()
        try:
            for _ in range(self.protocol.repetitions):
                for s in series.values():
                    s.samples.append([])
                for turn in range(warmups + calls):
                    for contender in in_turn(contenders, turn):
                        us = self.once(contender, arguments)
                        if turn >= warmups:
                            series[contender.name].samples[-1].append(us)
        finally:
            gc.enable()
        return Timing(warmups, calls, series)


@dataclass
class Span:
    us: float
    activities: int
    idle: float


def wait_on_gpu(cycles: int) -> None:
    torch.cuda._sleep(cycles)  # type: ignore[no-untyped-call]


class TimingError(Exception):
    """The profiler's record does not match the calls that were made."""


FLUSH_KERNEL, WAIT_KERNEL = "bitwise_not", "spin_kernel"  # a part of their names


def read_spans(activities: list[tuple[int, int, str]], expected: int) -> list[Span]:
    """The calls among all activities (start and end in nanoseconds, name), which are in order of time."""
    spans: list[Span] = []
    call: list[tuple[int, int]] | None = None  # of the call being read; None: between a wait and the flush
    calls: list[list[tuple[int, int]]] = []
    for begin, end, name in activities:
        if FLUSH_KERNEL in name:
            call = []
            calls.append(call)
        elif WAIT_KERNEL in name:
            call = None
        elif call is not None:
            call.append((begin, end))
    if len(calls) != expected or not all(calls):
        found = f"{len(calls)} calls, {sum(map(bool, calls))} of them with work"
        raise TimingError(f"the profile shows {found}, where {expected} were made")
    for call in calls:
        last = max(end for _, end in call)
        busy, reached = 0, 0
        for begin, end in call:  # activities may overlap
            busy += max(0, end - max(begin, reached))
            reached = max(reached, end)
        spans.append(Span((last - call[0][0]) * 1e-3, len(call), (last - call[0][0] - busy) * 1e-3))
    return spans


class CudaTimer:
    """Many calls are recorded in one profile and told apart afterwards: before each stands the flush, a kernel that no
    contender uses, and before that a wait, which ends the call before it.

    While the GPU waits, the host launches all of the next call's kernels, so that a contender of many kernels is not
    charged with the time that Python takes between them, as it would not be in a captured graph. Without
    `launches_ahead` there is almost no wait, and such gaps count.
    """

    WAIT_US_MOST, WAIT_US_LEAST = 20_000.0, 20.0

    def __init__(self, protocol: Protocol, device: torch.device) -> None:
        self.protocol = protocol
        self.device = device
        self.flush = torch.zeros(protocol.flush_bytes // 4, dtype=torch.int32, device=device)
        self.cycles_per_us = self._measure_cycles()

    def _measure_cycles(self) -> float:
        """The wait is given in clock cycles of the GPU."""
        cycles = 20_000_000
        for _ in range(2):
            torch.cuda.synchronize()
            begin = time.perf_counter_ns()
            wait_on_gpu(cycles)
            torch.cuda.synchronize()
            us = (time.perf_counter_ns() - begin) * 1e-3
        return cycles / us

    def _launch(self, contender: Contender, arguments: Arguments, wait_us: float) -> float:
        """Returns the microseconds that the host took for everything after the wait."""
        wait_on_gpu(int(wait_us * self.cycles_per_us))
        begin = time.perf_counter_ns()
        call: TimedCall = contender.prepare(arguments.move())
        self.flush.bitwise_not_()
        call()
        return (time.perf_counter_ns() - begin) * 1e-3

    def _profiled(self, run: Callable[[], None]) -> list[tuple[int, int, str]]:
        """Start and end in nanoseconds, and name, of every activity of the GPU, in order of time."""
        profile = torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of events lost between cycles: there is one cycle
            with profile:
                run()
                torch.cuda.synchronize()
        results: Any = profile.profiler.kineto_results if profile.profiler else None
        found = [
            (e.start_ns(), e.start_ns() + e.duration_ns(), e.name())
            for e in results.events()
            if e.device_type().name == "CUDA"
        ]
        return sorted(found)

    def measure(self, contenders: list[Contender], arguments: Arguments) -> Timing:
        waits: dict[str, float] = {}

        def try_out() -> None:
            for contender in contenders:
                host: list[float] = []
                for _ in range(3):
                    torch.cuda.synchronize()
                    host.append(self._launch(contender, arguments, self.WAIT_US_LEAST))
                ahead = 1.5 * median(host) + 30 if self.protocol.launches_ahead else 0.0
                waits[contender.name] = min(self.WAIT_US_MOST, max(self.WAIT_US_LEAST, ahead))

        self._profiled(try_out)

        def one_round(turn: int) -> None:
            for contender in in_turn(contenders, turn):
                self._launch(contender, arguments, waits[contender.name])

        def all_rounds() -> None:
            for turn in range(rounds):
                one_round(turn)

        begin = time.perf_counter()
        one_round(0)
        torch.cuda.synchronize()
        warmups, calls = calls_within(self.protocol.budget_s, time.perf_counter() - begin, self.protocol)
        rounds = self.protocol.repetitions * (warmups + calls)
        gc.collect()
        gc.disable()
        try:
            activities = self._profiled(all_rounds)
        finally:
            gc.enable()
        spans = iter(read_spans(activities, rounds * len(contenders)))
        series = {c.name: Series() for c in contenders}
        for turn in range(rounds):
            place = turn % (warmups + calls)
            for contender in in_turn(contenders, turn):
                span, s = next(spans), series[contender.name]
                if place == 0:
                    s.samples.append([])
                if place >= warmups:
                    s.samples[-1].append(span.us)
                    s.activities.append(span.activities)
                    s.idle.append(span.idle)
        return Timing(warmups, calls, series)
